/// Stream sockets in the file system (unix(7)), closed on exec, without SIGPIPE where the system has that as an option.
package enum UnixSocket {
    /// The longest path, in bytes: what `sun_path` holds, less the closing NUL.
    package static let pathBytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// A new socket, which the caller closes; negative on failure, as `errno` says.
    package static func make() -> Int32 {
        #if os(Linux)
            return socket(AF_UNIX, streamSocket | Int32(SOCK_CLOEXEC.rawValue), 0)
        #else
            let descriptor = socket(AF_UNIX, streamSocket, 0)
            guard descriptor >= 0 else { return descriptor }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            var on: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
            return descriptor
        #endif
    }

    /// A connected blocking socket, which the caller closes.
    package static func connected(to path: String) throws(FileError) -> Int32 {
        let descriptor = make()
        guard descriptor >= 0 else { throw FileError(operation: "make a socket for", path: path, number: errno) }
        let number = connect(descriptor, to: path)
        guard number == 0 else {
            close(descriptor)
            throw FileError(operation: "connect", path: path, number: number)
        }
        return descriptor
    }

    /// Calls connect(2) once.
    /// - Returns: 0, or the error's number; ENAMETOOLONG for a path longer than ``pathBytesMax``.
    package static func connect(_ descriptor: Int32, to path: String) -> Int32 {
        withAddress(path) { systemConnect(descriptor, $0, $1) }
    }

    /// Calls bind(2) once.
    /// - Returns: as ``connect(_:to:)``.
    package static func bind(_ descriptor: Int32, to path: String) -> Int32 {
        withAddress(path) { systemBind(descriptor, $0, $1) }
    }

    /// Bounds how long one call may wait that sends, receives or connects; no limit for 0.
    /// - Returns: false where the system refuses.
    @discardableResult
    package static func limit(_ descriptor: Int32, milliseconds: Int) -> Bool {
        var time = timeval()
        time.tv_sec = .init(clamping: milliseconds / 1000)
        time.tv_usec = .init(clamping: milliseconds % 1000 * 1000)
        return [SO_SNDTIMEO, SO_RCVTIMEO].allSatisfy { option in
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size)) == 0
        }
    }

    /// Whether the other end of a connected socket is closed altogether, not only for writing.
    package static func hasHungUp(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&entry, 1, 0) > 0 && Int32(entry.revents) & Int32(POLLHUP) != 0
    }

    private static func withAddress(_ path: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        guard path.utf8.count <= pathBytesMax else { return ENAMETOOLONG }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // One byte less than the field, which is zero, at most: the closing NUL stays.
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        return status == 0 ? 0 : errno
    }
}
