/// TCP sockets (tcp(7)), which are closed on exec, and the addresses of hosts.
package enum TCPSocket {
    /// Why a connection could not be made.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    // MARK: Addresses

    /// Returns the address of a host that is given as an IP address; nil for a name. Never makes a DNS lookup.
    package static func numericAddresses(host: String, port: UInt16) -> [SocketAddress]? {
        try? addresses(host: host, port: port, flags: AI_NUMERICHOST).get()
    }

    /// Returns the addresses of a host. Blocks the thread during the DNS lookup.
    package static func resolve(host: String, port: UInt16) -> Result<[SocketAddress], Failure> {
        addresses(host: host, port: port, flags: 0)
    }

    private static func addresses(host: String, port: UInt16, flags: Int32) -> Result<[SocketAddress], Failure> {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = streamSocket
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            let reason = gai_strerror(status).map { String(cString: $0) } ?? "error \(status)"
            return .failure(Failure(description: "its name cannot be resolved: \(reason)"))
        }
        defer { freeaddrinfo(list) }
        return .success(SocketAddress.all(of: list))
    }

    // MARK: Connecting

    /// Returns a new socket, which the caller must close; negative on failure, with `errno` set.
    private static func make(_ family: Int32) -> Int32 {
        let descriptor = socket(family, streamSocket, 0)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
    }

    /// Starts to connect to an IP address. Does not wait until the connection is complete: wait until the socket is
    /// writable, and then check with ``failure(of:)`` whether connecting has succeeded.
    /// - Parameter number: is set to the system's error, if there is one.
    /// - Returns: the socket, which the caller must close; nil after an error.
    package static func start(_ address: SocketAddress, _ number: inout Int32) -> Int32? {
        let descriptor = make(address.family)
        guard descriptor >= 0 else {
            number = errno
            return nil
        }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        prepare(descriptor)
        number = address.withPointer { systemConnect(descriptor, $0, $1) } == 0 ? 0 : errno
        if number == 0 || number == EINPROGRESS || number == EINTR { return descriptor }
        close(descriptor)
        return nil
    }

    /// Returns the error number if connecting has failed; 0 if the socket is connected.
    package static func failure(of descriptor: Int32) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) == 0 ? value : errno
    }

    /// Whether the system allows this process only Unix-domain sockets, as with systemd's
    /// `RestrictAddressFamilies=AF_UNIX`.
    package static var isForbidden: Bool {
        let descriptor = make(AF_INET)
        guard descriptor >= 0 else { return errno == EAFNOSUPPORT }
        close(descriptor)
        return false
    }

    private static func enable(_ option: Int32, of descriptor: Int32, level: Int32 = SOL_SOCKET) {
        var on: Int32 = 1
        setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Sets options to send without delay (TCP_NODELAY) and to detect peers that vanish (SO_KEEPALIVE).
    private static func prepare(_ descriptor: Int32) {
        enable(TCP_NODELAY, of: descriptor, level: Int32(IPPROTO_TCP))
        enable(SO_KEEPALIVE, of: descriptor)
        #if canImport(Darwin)
            enable(SO_NOSIGPIPE, of: descriptor)
        #endif
    }

    // MARK: Listening

    /// Returns a socket that listens at an IP address, which the caller must close, and its port, which the system
    /// chooses if `port` is 0.
    package static func listening(host: String, port: UInt16) throws(FileError) -> (descriptor: Int32, port: UInt16) {
        func failure(_ number: Int32) -> FileError {
            FileError(operation: "listen on", path: "\(host):\(port)", number: number)
        }
        guard let address = numericAddresses(host: host, port: port)?.first else { throw failure(EINVAL) }
        let descriptor = make(address.family)
        guard descriptor >= 0 else { throw failure(errno) }
        // Allow the port to be used again at once after a restart, while connections of the previous process linger.
        enable(SO_REUSEADDR, of: descriptor)
        var bound = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isListening =
            address.withPointer { systemBind(descriptor, $0, $1) } == 0 && systemListen(descriptor, 64) == 0
            && withUnsafeMutablePointer(to: &bound) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            } == 0
        guard isListening else {
            let number = errno
            close(descriptor)
            throw failure(number)
        }
        // In both address types, the port follows the family, in network byte order.
        return (descriptor, withUnsafeBytes(of: &bound) { UInt16($0[2]) << 8 | UInt16($0[3]) })
    }
}

/// The address of an IPv4 or IPv6 socket. It has its own copy of the bytes, independent of getaddrinfo's list.
package struct SocketAddress: Sendable {
    private let bytes: [UInt8]
    let family: Int32

    /// Returns the IPv4 and IPv6 addresses in a list of getaddrinfo(3).
    package static func all(of list: UnsafeMutablePointer<addrinfo>?) -> [SocketAddress] {
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            next = entry.ai_next
            guard let start = entry.ai_addr, entry.ai_family == AF_INET || entry.ai_family == AF_INET6 else { continue }
            let bytes = Array(UnsafeRawBufferPointer(start: start, count: Int(entry.ai_addrlen)))
            addresses.append(SocketAddress(bytes: bytes, family: entry.ai_family))
        }
        return addresses
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var storage = sockaddr_storage()
        withUnsafeMutableBytes(of: &storage) { $0.copyBytes(from: bytes.prefix($0.count)) }
        return withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(bytes.count)) }
        }
    }
}
