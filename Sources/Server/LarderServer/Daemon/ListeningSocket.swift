import LarderPlatform

/// The socket on which the daemon listens. The daemon has created it, or a service manager has passed it.
///
/// While the server runs, only the thread of the first event loop uses it.
final class ListeningSocket {
    let path: String
    private(set) var descriptor: Int32
    /// The file of the socket; nil if a service manager has passed the socket, and manages the file.
    private let file: SocketFile?

    init(_ configuration: ServerConfiguration) throws(SocketFile.Failure) {
        if let passed = configuration.passedSocket {
            (path, descriptor, file) = (passed.path, passed.descriptor, nil)
            return
        }
        let file = try SocketFile(
            path: configuration.socketPath, access: configuration.socketAccess, for: ServerConfiguration.socketProgram)
        (path, descriptor, self.file) = (file.path, file.descriptor, file)
    }

    /// A line about the socket for the log at startup; nil for none.
    var note: String? {
        guard let file else { return "the socket \(path) was passed by the service manager, which keeps it" }
        return file.hasMadeDirectory
            ? "created the socket's directory \(FileSystem.parent(path)), which was missing, with mode \(directoryMode)"
            : nil
    }

    private var directoryMode: String {
        var status = stat()
        _ = stat(FileSystem.parent(path), &status)
        return "0" + String(status.st_mode & 0o777, radix: 8)
    }

    /// The last problem that was logged; nil if there is none at present.
    private var trouble: String?

    /// Checks whether the socket's file still exists. If it was removed, creates the socket again.
    /// - Parameter replace: called with the descriptor of the new socket, before the old socket is closed.
    func look(_ log: Log, replace: (Int32) -> Void) {
        guard let file else {
            let isThere = path.isEmpty || path.hasPrefix("@") || FileSystem.exists(path)
            return note(
                isThere
                    ? nil
                    : "the socket \(path) of the service manager was removed; the service manager must create it again",
                log)
        }
        switch file.presence {
        case .ours: note(nil, log)
        case .somethingElse:
            note("another file has replaced the socket \(path): new clients cannot reach this daemon", log)
        case .missing:
            do throws(SocketFile.Failure) {
                let old = try file.bindAgain()
                descriptor = file.descriptor
                replace(descriptor)
                close(old)
                log.warning("the socket \(path) was removed; it was created again")
                if let note { log.info(note) }
                trouble = nil
            } catch {
                note("the socket \(path) was removed and cannot be created again: \(error.description)", log)
            }
        }
    }

    /// Logs a problem, unless it is the same as before.
    /// - Parameter text: nil if there is no problem.
    private func note(_ text: String?, _ log: Log) {
        if let text, text != trouble { log.warning(text) }
        trouble = text
    }

    /// Removes the socket's file, unless another file has replaced it. The file of a passed socket stays for the
    /// service manager.
    func remove() { file?.remove() }

    deinit { if file == nil { close(descriptor) } }
}

/// Checks once per second whether the file of the daemon's socket still exists. Without the file, clients cannot
/// connect, and another daemon could be started. Only the thread of the first event loop uses this object.
final class SocketGuard {
    private let socket: ListeningSocket
    private let listener: Listener
    private let log: Log
    private var nextLook: Int64
    private var isOver = false

    private static let pauseMilliseconds: Int64 = 1000

    init(_ socket: ListeningSocket, _ listener: Listener, _ log: Log) {
        self.socket = socket
        self.listener = listener
        self.log = log
        nextLook = MonotonicClock.milliseconds() + Self.pauseMilliseconds
    }

    func tick() {
        let now = MonotonicClock.milliseconds()
        guard !isOver, now >= nextLook else { return }
        nextLook = now + Self.pauseMilliseconds
        socket.look(log) { listener.replace($0) }
    }

    func end() { isOver = true }
}
