/// Looks up hosts, and connects without blocking, for a thread that serves many connections.
package enum StreamConnecting {
    /// Returns the address of a host that is given as an IP address; nil for a name. Never makes a DNS lookup.
    package static func numericAddresses(host: String, port: UInt16) -> [SocketAddress]? {
        try? addresses(host: host, port: port, flags: AI_NUMERICHOST).get()
    }

    /// Returns the addresses of a host. Blocks the thread during the DNS lookup.
    package static func resolve(host: String, port: UInt16) -> Result<[SocketAddress], TCPSocket.Failure> {
        addresses(host: host, port: port, flags: 0)
    }

    private static func addresses(host: String, port: UInt16, flags: Int32)
        -> Result<[SocketAddress], TCPSocket.Failure>
    {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = streamSocket
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0 else {
            let reason = gai_strerror(status).map { String(cString: $0) } ?? "error \(status)"
            return .failure(TCPSocket.Failure(description: "its name cannot be resolved: \(reason)"))
        }
        defer { freeaddrinfo(list) }
        return .success(SocketAddress.all(of: list))
    }

    /// Starts to connect to an IP address. Does not wait until the connection is complete: wait until the socket is
    /// writable, and then check with ``failure(of:)`` whether connecting has succeeded.
    /// - Returns: the socket, which the caller must close, or the system's error.
    package static func start(_ address: SocketAddress) -> Result<Int32, SystemCallFailure> {
        let descriptor = socket(address.family, streamSocket, 0)
        guard descriptor >= 0 else { return .failure(SystemCallFailure(number: errno)) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        TCPSocket.prepare(descriptor)
        let number = address.withPointer { systemConnect(descriptor, $0, $1) } == 0 ? 0 : errno
        if number == 0 || number == EINPROGRESS || number == EINTR {
            return .success(descriptor)
        }
        close(descriptor)
        return .failure(SystemCallFailure(number: number))
    }

    /// Returns the error number if connecting has failed; 0 if the socket is connected.
    package static func failure(of descriptor: Int32) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) == 0 ? value : errno
    }
}

/// The error of a failed system call.
package struct SystemCallFailure: Error, CustomStringConvertible {
    package let number: Int32
    package init(number: Int32) { self.number = number }
    package var description: String { SystemErrorText.of(number) }
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
