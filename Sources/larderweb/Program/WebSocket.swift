import LarderPlatform
import LarderServices

/// An address to listen on: `127.0.0.1:8377`, `[::1]:8377` or `unix:/path`.
enum ListenAddress: Sendable {
    case unix(String)
    case network(host: String, port: UInt16)

    static let rule = "an address with a port, such as 127.0.0.1:8377 or [::1]:8377, or unix:/path"

    /// Parses an address with a numeric host or `localhost`. Returns nil for any other text, such as another host name.
    init?(_ text: String) {
        if let path = UnixSocket.path(inURL: text) {
            guard path.hasPrefix("/"), !path.utf8.contains(0) else { return nil }
            self = .unix(String(path))
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = String(text[..<colon])
        if host == "localhost" { host = "127.0.0.1" }
        let isIPv6 = host.hasPrefix("[") && host.hasSuffix("]")
        if isIPv6 { host = String(host.dropFirst().dropLast()) }
        guard Self.bytes(host, isIPv6 ? AF_INET6 : AF_INET) != nil else { return nil }
        self = .network(host: host, port: port)
    }

    /// Returns the 16 bytes of an IPv6 address, or the four of an IPv4 address and zeros; nil for any other text.
    private static func bytes(_ host: String, _ family: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        return inet_pton(family, host, &bytes) == 1 ? bytes : nil
    }

    /// Whether only this machine can connect.
    var isLocal: Bool {
        guard case .network(let host, _) = self else { return true }
        return host.hasPrefix("127.") || Self.bytes(host, AF_INET6) == [UInt8](repeating: 0, count: 15) + [1]
    }
}

/// The listening socket of larderweb, TCP or Unix-domain. Confined to the main thread.
final class WebSocket {
    let descriptor: Int32
    /// The address or path, as shown to users.
    let name: String
    /// The host name in the address; nil for a Unix-domain socket.
    let host: String?
    private let file: SocketFile?

    /// - Parameter access: the access rights of a Unix-domain socket.
    init(_ address: ListenAddress, _ access: SocketAccess) throws(SocketFile.Failure) {
        switch address {
        case .unix(let path):
            let file = try SocketFile(
                path: path, access: access, for: SocketFile.Name(program: "larderweb", option: "--listen unix:PATH"))
            (descriptor, name, host, self.file) = (file.descriptor, "unix:" + path, nil, file)
        case .network(let numbers, let port):
            do throws(FileError) {
                let made = try TCPSocket.listening(host: numbers, port: port)
                let host = (numbers.contains(":") ? "[\(numbers)]" : numbers).lowercased()
                (descriptor, name, self.host, file) = (made.descriptor, "http://\(host):\(made.port)/", host, nil)
            } catch {
                throw SocketFile.Failure(kind: .system, description: "cannot \(error)")
            }
        }
    }

    func remove() { file?.remove() }

    deinit { if file == nil { close(descriptor) } }
}
