/// Creates blocking TCP sockets (tcp(7)), which are closed on exec.
package enum TCPSocket {
    /// Why a connection could not be made.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Returns a connected blocking socket, which the caller must close. Tries all addresses of the host in turn.
    /// - Parameters:
    ///   - host: a name, or an IP address without brackets.
    ///   - milliseconds: the timeout for each address; 0 for the system's default.
    package static func connected(host: String, port: UInt16, milliseconds: Int) throws(Failure) -> Int32 {
        var number = ENOENT
        for address in try StreamConnecting.resolve(host: host, port: port).get() {
            let descriptor = socket(address.family, streamSocket, 0)
            guard descriptor >= 0 else {
                number = errno
                continue
            }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            UnixSocket.limit(descriptor, milliseconds: milliseconds)
            if address.withPointer({ systemConnect(descriptor, $0, $1) }) == 0 {
                prepare(descriptor)
                return descriptor
            }
            // When the send timeout expires, connect(2) fails with EINPROGRESS.
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

    /// Sets options to send without delay (TCP_NODELAY) and to detect peers that vanish (SO_KEEPALIVE).
    static func prepare(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        #if canImport(Darwin)
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }
}
