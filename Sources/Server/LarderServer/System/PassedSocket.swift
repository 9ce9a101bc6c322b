import LarderPlatform

/// A listening socket that the service manager has made and keeps: sd_listen_fds(3). Clients can connect to it while the
/// daemon is not there; they wait.
package struct PassedSocket: Sendable {
    package struct Failure: Error {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    package let descriptor: Int32
    /// Where it is; `@name` in the abstract namespace.
    package let path: String

    /// The first descriptor that is passed.
    private static let firstDescriptor: Int32 = 3

    /// Takes what the environment says, and removes it from there. Call it before any file is opened: a number that lies
    /// could name that file.
    /// - Returns: nil if nothing was passed to this process.
    /// - Throws: what is wrong with what was passed.
    package static func take() throws(Failure) -> PassedSocket? {
        let (count, process) = (Environment.take("LISTEN_FDS"), Environment.take("LISTEN_PID"))
        _ = Environment.take("LISTEN_FDNAMES")
        // An ancestor's, if it names another process.
        guard let count, let process, Int32(process) == getpid(), count != "0" else { return nil }
        guard count == "1" else {
            throw Failure("LISTEN_FDS=\(count): larderd serves one socket, and takes one from the service manager")
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
            throw Failure("\(name) is a connection, and nothing listens on it: use Accept=no")
        }
        self.descriptor = descriptor
        self.path = path
    }
}
