import LarderPlatform

/// A listening socket that a service manager has created and passed to the daemon: see sd_listen_fds(3). Clients can
/// connect while the daemon does not run, and wait until the daemon starts.
package struct PassedSocket: Sendable {
    package struct Failure: Error {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    package let descriptor: Int32
    /// The path of the socket; `@name` for a name in the abstract namespace.
    package let path: String

    /// The number of the first passed descriptor, which is fixed by the protocol.
    private static let firstDescriptor: Int32 = 3

    /// Returns the socket that the environment variables describe, and removes these variables. Call this before any
    /// file is opened: a wrong number in the variables could otherwise refer to that file.
    /// - Returns: nil if no socket was passed to this process.
    /// - Throws: an error if the passed descriptor is not a usable socket.
    package static func take() throws(Failure) -> PassedSocket? {
        let (count, process) = (Environment.take("LISTEN_FDS"), Environment.take("LISTEN_PID"))
        _ = Environment.take("LISTEN_FDNAMES")
        // If LISTEN_PID is the number of another process, the variables were meant for that process.
        guard let count, let process, Int32(process) == getpid(), count != "0" else { return nil }
        guard count == "1" else {
            throw Failure("LISTEN_FDS=\(count): larderd accepts exactly one socket from the service manager")
        }
        return try PassedSocket(firstDescriptor)
    }

    private init(_ descriptor: Int32) throws(Failure) {
        let name = "the descriptor \(descriptor) of LISTEN_FDS"
        guard fcntl(descriptor, F_GETFD) >= 0 else { throw Failure("\(name) is not open") }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        guard let path = UnixSocket.localName(descriptor) else { throw Failure("\(name) is not a Unix-domain socket") }
        guard UnixSocket.isStream(descriptor) else {
            throw Failure("\(name) is not a stream socket: use ListenStream=")
        }
        guard UnixSocket.isListening(descriptor) else {
            throw Failure("\(name) is a connection, not a listening socket: use Accept=no")
        }
        self.descriptor = descriptor
        self.path = path
    }
}
