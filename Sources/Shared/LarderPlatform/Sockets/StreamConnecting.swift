/// Non-blocking connections, for a thread that handles many of them.
package enum StreamConnecting {
    /// A socket that is connected or connecting. The caller must close it.
    package struct Started {
        package let descriptor: Int32
        /// If false, the connection is complete, or has failed, when the socket is writable: then check
        /// ``failure(of:)``.
        package let isConnected: Bool
    }

    /// The addresses of a numeric host, without a DNS lookup; nil for a name.
    package static func numericAddresses(host: String, port: UInt16) -> [SocketAddress]? {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = streamSocket
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0 else { return nil }
        defer { freeaddrinfo(list) }
        return SocketAddress.all(of: list)
    }

    /// The hints for a DNS lookup.
    package static func hints() -> addrinfo {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = streamSocket
        return hints
    }

    /// Begins to connect, without waiting.
    /// - Returns: the socket, or the error's number.
    package static func start(_ address: SocketAddress) -> Result<Started, SystemCallFailure> {
        let descriptor = socket(address.family, streamSocket, 0)
        guard descriptor >= 0 else { return .failure(SystemCallFailure(number: errno)) }
        prepare(descriptor)
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        return finish(descriptor, address.withPointer { systemConnect(descriptor, $0, $1) } == 0 ? 0 : errno)
    }

    /// Begins to connect to a socket in the file system.
    package static func start(path: String) -> Result<Started, SystemCallFailure> {
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { return .failure(SystemCallFailure(number: errno)) }
        prepare(descriptor)
        return finish(descriptor, UnixSocket.connect(descriptor, to: path))
    }

    private static func prepare(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        #if canImport(Darwin)
            var on: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }

    private static func finish(_ descriptor: Int32, _ number: Int32) -> Result<Started, SystemCallFailure> {
        if number == 0 { return .success(Started(descriptor: descriptor, isConnected: true)) }
        if number == EINPROGRESS || number == EINTR {
            return .success(Started(descriptor: descriptor, isConnected: false))
        }
        close(descriptor)
        return .failure(SystemCallFailure(number: number))
    }

    /// The number of the error that ended connecting; 0 if it is connected.
    package static func failure(of descriptor: Int32) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) == 0 ? value : errno
    }

    /// The result of one call to receive.
    package enum Received {
        /// The number of bytes, at least one.
        case bytes(Int)
        /// The other end has closed.
        case end
        case nothingNow
        case failed(SystemCallFailure)
    }

    package static func receive(_ descriptor: Int32, _ room: UnsafeMutableRawBufferPointer) -> Received {
        let count = recv(descriptor, room.baseAddress, room.count, 0)
        if count > 0 { return .bytes(count) }
        if count == 0 { return .end }
        let number = errno
        return isMomentary(number) ? .nothingNow : .failed(SystemCallFailure(number: number))
    }

    /// - Returns: the number of bytes sent; 0 if the socket accepts none now.
    package static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Result<Int, SystemCallFailure> {
        let count = systemSend(descriptor, bytes.baseAddress, bytes.count, noSignal)
        if count >= 0 { return .success(count) }
        let number = errno
        return isMomentary(number) ? .success(0) : .failure(SystemCallFailure(number: number))
    }

    private static func isMomentary(_ number: Int32) -> Bool {
        number == EAGAIN || number == EWOULDBLOCK || number == EINTR
    }
}

/// A system call failed; the error's number.
package struct SystemCallFailure: Error, CustomStringConvertible {
    package let number: Int32
    package init(number: Int32) { self.number = number }
    package var description: String { SystemErrorText.of(number) }
}

/// An address of a socket, copied out of a list.
package struct SocketAddress: Sendable {
    private let bytes: [UInt8]
    let family: Int32

    /// All addresses of a list.
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
