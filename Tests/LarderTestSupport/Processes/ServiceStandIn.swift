import LarderPlatform

/// A stand-in for systemd: a listening socket that outlives the daemons to which it is passed (`LISTEN_FDS`), and a
/// socket for their notifications (`NOTIFY_SOCKET`).
///
/// Its files are in the directory of the daemons. Single owner: only one thread at a time may use it.
package final class ServiceStandIn {
    /// The socket to which the daemons' clients connect.
    package let socketPath: String
    /// The value of `NOTIFY_SOCKET`.
    package let notifyName: String
    package let listening: Int32
    private let notifications: Int32
    private let place: TemporaryDirectory

    /// - Parameter isAbstract: whether `NOTIFY_SOCKET` is in Linux's abstract namespace.
    package init(in place: TemporaryDirectory, isAbstract: Bool = false) throws {
        self.place = place
        socketPath = place.path + "/passed"
        notifyName = isAbstract ? "@larder-test" + place.path : place.path + "/notify"
        listening = UnixSocket.make()
        notifications = UnixSocket.makeDatagram()
        guard UnixSocket.bind(listening, to: socketPath) == 0, listen(listening, 128) == 0,
            UnixSocket.bind(notifications, toName: notifyName) == 0
        else { throw SocketClient.failure("bind", socketPath) }
    }

    deinit {
        close(listening)
        close(notifications)
    }

    /// Returns the beginning of a command line, which runs the rest of the line with these environment variables. The
    /// value `$$` stands for the pid of the started process, as needed for `LISTEN_PID`.
    package static func environment(_ variables: [String]) -> [String] {
        let names = variables.map { "export \($0.replacing("PID=$$", with: "PID=\"$$\"")); " }.joined()
        return ["sh", "-c", names + "exec \"$0\" \"$@\""]
    }

    /// Starts a daemon with the listening socket, and waits until it reports that it serves.
    package func start(_ options: [String] = [], variables: [String] = [], faults: FaultControl? = nil) throws
        -> DaemonProcess
    {
        let all = ["NOTIFY_SOCKET=\(notifyName)", "LISTEN_FDS=1", "LISTEN_PID=$$"] + variables
        let daemon = try DaemonProcess(
            options, in: place, wrapper: Self.environment(all), faults: faults, passing: listening)
        _ = try notified("READY=1")
        return daemon
    }

    /// How long a test waits before it fails, in milliseconds. Not reached in a successful run.
    private static let patienceMilliseconds: Int32 = 120_000

    /// Returns the next notification.
    package func notified() throws -> String {
        var entry = pollfd(fd: notifications, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, Self.patienceMilliseconds) > 0 else {
            throw ChildProcess.Failure(description: "the daemon tells nothing")
        }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(notifications, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// Returns the next notification with this line; earlier ones are skipped.
    package func notified(_ line: String) throws -> String {
        while true {
            let text = try notified()
            if text.split(separator: "\n").contains(where: { $0 == line || line.hasSuffix("=") && $0.hasPrefix(line) })
            {
                return text
            }
        }
    }
}
