import LarderPlatform

/// A listening socket that the service manager created and keeps open: sd_listen_fds(3). Clients that connect while the
/// daemon is not running wait for it.
package struct PassedSocket: Sendable {
    package struct Failure: Error {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    package let descriptor: Int32
    /// The path; `@name` in the abstract namespace.
    package let path: String

    /// The first descriptor that is passed.
    private static let firstDescriptor: Int32 = 3

    /// Takes the socket from the environment variables, and removes these variables. Call it before any file is opened:
    /// a wrong descriptor number could refer to that file.
    /// - Returns: nil if nothing was passed to this process.
    /// - Throws: if the passed socket cannot be used.
    package static func take() throws(Failure) -> PassedSocket? {
        let (count, process) = (Environment.take("LISTEN_FDS"), Environment.take("LISTEN_PID"))
        _ = Environment.take("LISTEN_FDNAMES")
        // If LISTEN_PID is another process, the socket was passed to an ancestor of this one.
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
