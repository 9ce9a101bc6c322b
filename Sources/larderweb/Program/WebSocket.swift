import LarderPlatform
import LarderServices

/// The listening socket of larderweb, TCP or Unix-domain. Confined to the main thread.
final class WebSocket {
    let descriptor: Int32
    /// The address or path, as shown to users.
    let name: String
    /// The host name in the address; empty for a Unix-domain socket.
    let hosts: Set<String>
    private let file: SocketFile?

    init(_ options: WebOptions) throws(SocketFile.Failure) {
        switch options.listen {
        case .unix(let path):
            let file = try SocketFile(
                path: path, access: options.socketAccess,
                for: SocketFile.Name(program: "larderweb", option: "--listen"))
            (descriptor, name, hosts, self.file) = (file.descriptor, "unix:" + path, [], file)
        case .network(let host, let port):
            do throws(FileError) {
                let made = try NetworkSocket.listening(host: host, port: port)
                let shown = options.listen.hostName ?? host
                (descriptor, hosts, file) = (made.descriptor, [shown.lowercased()], nil)
                name = "http://\(shown):\(made.port)/"
            } catch {
                throw SocketFile.Failure(kind: .system, description: "cannot \(error)")
            }
        }
    }

    func remove() { file?.remove() }

    deinit { if file == nil { close(descriptor) } }
}

/// A listening TCP socket.
enum NetworkSocket {
    /// Opens a socket that listens on an address.
    /// - Returns: the descriptor, to be closed by the caller, and the port, which the system chooses if `port` is 0.
    /// - Throws: an error if the system refuses.
    static func listening(host: String, port: UInt16) throws(FileError) -> (descriptor: Int32, port: UInt16) {
        let name = "\(host):\(port)"
        var wanted = addrinfo()
        wanted.ai_flags = AI_NUMERICHOST | AI_PASSIVE
        wanted.ai_socktype = streamType
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &wanted, &found) == 0, let found else {
            throw FileError(operation: "listen on", path: name, number: EINVAL)
        }
        defer { freeaddrinfo(found) }
        let descriptor = socket(found.pointee.ai_family, found.pointee.ai_socktype, found.pointee.ai_protocol)
        guard descriptor >= 0 else { throw FileError(operation: "listen on", path: name, number: errno) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var on: Int32 = 1
        // Allow the port to be used again at once after a restart, while connections of the previous process linger.
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0,
            systemListen(descriptor, 64) == 0
        else {
            let number = errno
            close(descriptor)
            throw FileError(operation: "listen on", path: name, number: number)
        }
        return (descriptor, Self.port(of: descriptor) ?? port)
    }

    private static var streamType: Int32 {
        #if os(Linux)
            Int32(SOCK_STREAM.rawValue)
        #else
            SOCK_STREAM
        #endif
    }

    private static func port(of descriptor: Int32) -> UInt16? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard status == 0 else { return nil }
        // In both address types, the port follows the family, in network byte order.
        return withUnsafeBytes(of: &address) { UInt16($0[2]) << 8 | UInt16($0[3]) }
    }
}
