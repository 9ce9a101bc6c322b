import LarderPlatform

/// Ports on 127.0.0.1.
package enum LoopbackPort {
    /// Listens on a port; 0 for a port chosen by the system.
    /// - Returns: the listening socket, which the caller must close, with its port; nil if the port is in use.
    package static func listen(_ port: Int = 0) -> (descriptor: CInt, port: Int)? {
        let descriptor = socket(AF_INET, stream, 0)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var on: CInt = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound, systemListen(descriptor, 256) == 0 else {
            close(descriptor)
            return nil
        }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Returns a free port for a cluster node. The port 10,000 above it, which nodes use between each other, is free
    /// too. Systems assign only higher ports to connections, so both ports are still free when the node restarts.
    package static func freeWithClusterBus() -> Int {
        while true {
            let port = Int.random(in: 10_000..<22_000)
            let sockets = [port, port + 10_000].map { listen($0)?.descriptor }
            for descriptor in sockets.compactMap({ $0 }) { close(descriptor) }
            if !sockets.contains(nil) { return port }
        }
    }

    /// Returns a free port.
    package static func free() -> Int {
        guard let (descriptor, port) = listen() else { preconditionFailure("no port of 127.0.0.1 is free") }
        close(descriptor)
        return port
    }

    #if canImport(Glibc)
        private static let stream = CInt(SOCK_STREAM.rawValue)
    #else
        private static let stream = CInt(SOCK_STREAM)
    #endif
}
