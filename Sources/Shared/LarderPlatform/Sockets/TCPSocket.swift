/// Stream sockets to other machines (tcp(7)), closed on exec.
package enum TCPSocket {
    /// Why a connection could not be made.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// A connected blocking socket, to be closed by the caller. Tries all addresses of the host, one at a time.
    /// - Parameters:
    ///   - host: a name, or an address without brackets.
    ///   - port: its number or its name.
    ///   - milliseconds: the limit for each address; 0 for the system's.
    package static func connected(host: String, port: String, milliseconds: Int) throws(Failure) -> Int32 {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = streamSocket
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, port, &hints, &list)
        guard status == 0 else {
            throw Failure(description: gai_strerror(status).map { String(cString: $0) } ?? "error \(status)")
        }
        defer { freeaddrinfo(list) }
        var number = ENOENT
        var next = list
        while let address = next?.pointee {
            next = address.ai_next
            let descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol)
            guard descriptor >= 0 else {
                number = errno
                continue
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            UnixSocket.limit(descriptor, milliseconds: milliseconds)
            if systemConnect(descriptor, address.ai_addr, address.ai_addrlen) == 0 {
                prepare(descriptor)
                return descriptor
            }
            // The send timeout ends connect(2) with EINPROGRESS.
            number = errno == EINPROGRESS ? ETIMEDOUT : errno
            close(descriptor)
        }
        throw Failure(description: SystemErrorText.of(number))
    }

    /// Whether the system allows this process only Unix-domain sockets, as with systemd's
    /// `RestrictAddressFamilies=AF_UNIX`.
    package static var isForbidden: Bool {
        let descriptor = socket(AF_INET, streamSocket, 0)
        guard descriptor >= 0 else { return errno == EAFNOSUPPORT }
        close(descriptor)
        return false
    }

    /// Sends requests without delay, and detects peers that vanish silently.
    private static func prepare(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        #if canImport(Darwin)
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }
}
