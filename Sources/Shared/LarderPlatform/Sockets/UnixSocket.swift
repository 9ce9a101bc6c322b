/// Creates and uses Unix-domain sockets (unix(7)). They are closed on exec, and do not raise SIGPIPE if the system has
/// a socket option for that.
package enum UnixSocket {
    /// The longest path in bytes: the size of `sun_path` without the closing NUL.
    package static let pathBytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Returns the path in `unix:/path` or `unix:///path`, with any options after the path; nil for other URLs.
    package static func path(inURL text: String) -> Substring? {
        let scheme = "unix:"
        guard text.prefix(scheme.count).lowercased() == scheme else { return nil }
        let path = text.dropFirst(scheme.count)
        return path.hasPrefix("//") ? path.dropFirst(2) : path
    }

    /// Returns a new stream socket, which the caller must close; negative on failure, with `errno` set.
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

    /// Returns a new non-blocking datagram socket, which the caller must close; negative on failure, with `errno` set.
    package static func makeDatagram() -> Int32 {
        let descriptor = socket(AF_UNIX, datagramSocket, 0)
        guard descriptor >= 0 else { return descriptor }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        return descriptor
    }

    /// Sends one datagram to the socket with this name: a path, or `@` and a name in Linux's abstract namespace.
    /// - Returns: 0, or the error's number.
    package static func sendDatagram(_ descriptor: Int32, _ bytes: [UInt8], to name: String) -> Int32 {
        withAddress(name, isName: true) { address, length in
            bytes.withUnsafeBytes { sendto(descriptor, $0.baseAddress, $0.count, noSignal, address, length) } < 0
                ? -1 : 0
        }
    }

    /// Returns the address of a Unix-domain socket: its path, or `@` and its name in the abstract namespace; empty if
    /// it is not bound. Returns nil for other descriptors.
    package static func localName(_ descriptor: Int32) -> String? {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard status == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
        let count = max(0, min(Int(length) - pathOffset, pathBytesMax + 1))
        return withUnsafeBytes(of: &address.sun_path) { bytes in
            guard count > 1, bytes[0] == 0 else {
                return String(decoding: bytes.prefix(count).prefix { $0 != 0 }, as: UTF8.self)
            }
            return "@" + String(decoding: bytes[1..<count], as: UTF8.self)
        }
    }

    package static func isStream(_ descriptor: Int32) -> Bool { option(descriptor, SO_TYPE) == streamSocket }

    package static func isListening(_ descriptor: Int32) -> Bool { option(descriptor, SO_ACCEPTCONN) == 1 }

    private static func option(_ descriptor: Int32, _ name: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }

    private static let pathOffset = MemoryLayout<sockaddr_un>.offset(of: \sockaddr_un.sun_path) ?? 2

    /// Returns a connected blocking socket, which the caller must close.
    package static func connected(to path: String) throws(FileError) -> Int32 {
        let descriptor = make()
        guard descriptor >= 0 else { throw FileError(operation: "create a socket for", path: path, number: errno) }
        let number = connect(descriptor, to: path)
        guard number == 0 else {
            close(descriptor)
            throw FileError(operation: "connect", path: path, number: number)
        }
        return descriptor
    }

    /// Whether a process listens on the socket at a path.
    package static func hasListener(at path: String) -> Bool {
        guard let descriptor = try? connected(to: path) else { return false }
        close(descriptor)
        return true
    }

    /// Calls connect(2) once.
    /// - Returns: 0, or the error's number; ENAMETOOLONG for a path longer than ``pathBytesMax``.
    package static func connect(_ descriptor: Int32, to path: String) -> Int32 {
        withAddress(path) { systemConnect(descriptor, $0, $1) }
    }

    /// Calls bind(2) once.
    /// - Returns: see ``connect(_:to:)``.
    package static func bind(_ descriptor: Int32, to path: String) -> Int32 {
        withAddress(path) { systemBind(descriptor, $0, $1) }
    }

    /// Like ``bind(_:to:)``, but a name that begins with `@` is in Linux's abstract namespace.
    package static func bind(_ descriptor: Int32, toName name: String) -> Int32 {
        withAddress(name, isName: true) { systemBind(descriptor, $0, $1) }
    }

    /// Sets the timeout of each call that sends, receives or connects, in milliseconds; 0 means none.
    /// - Returns: false if the system refuses.
    @discardableResult
    package static func limit(_ descriptor: Int32, milliseconds: Int) -> Bool {
        var time = timeval()
        time.tv_sec = .init(clamping: milliseconds / 1000)
        time.tv_usec = .init(clamping: milliseconds % 1000 * 1000)
        return [SO_SNDTIMEO, SO_RCVTIMEO].allSatisfy { option in
            setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size)) == 0
        }
    }

    /// Whether the peer of a connected socket has closed the connection in both directions.
    package static func hasHungUp(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&entry, 1, 0) > 0 && Int32(entry.revents) & Int32(POLLHUP) != 0
    }

    /// Returns the user of the process at the other end of a connected socket; nil if the system does not report it.
    /// The peer cannot forge it.
    package static func peerUser(_ descriptor: Int32) -> uid_t? {
        #if os(Linux)
            // Has the layout of C's `ucred` (process, user, group), which Swift's Glibc module lacks.
            var credentials: (pid_t, uid_t, gid_t) = (0, .max, .max)
            var length = socklen_t(MemoryLayout.size(ofValue: credentials))
            guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
            return credentials.1
        #else
            var (user, group) = (uid_t(), gid_t())
            return getpeereid(descriptor, &user, &group) == 0 ? user : nil
        #endif
    }

    /// - Parameter isName: whether a leading `@` means a name in the abstract namespace.
    private static func withAddress(
        _ path: String, isName: Bool = false, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        guard path.utf8.count <= pathBytesMax else { return ENAMETOOLONG }
        let isAbstract = isName && path.hasPrefix("@")
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The path is at least one byte shorter than the zeroed field, so a NUL follows it.
        withUnsafeMutableBytes(of: &address.sun_path) {
            $0.copyBytes(from: path.utf8)
            if isAbstract { $0[0] = 0 }
        }
        // An abstract name may contain zero bytes, so the length of the address determines where the name ends.
        let length = isAbstract ? pathOffset + path.utf8.count : MemoryLayout<sockaddr_un>.size
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call($0, socklen_t(length))
            }
        }
        return status == 0 ? 0 : errno
    }
}
