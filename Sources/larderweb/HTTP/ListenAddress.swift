import LarderPlatform

/// An address to listen on: `127.0.0.1:8377`, `[::1]:8377` or `unix:/path`.
enum ListenAddress: Equatable, Sendable {
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
        switch self {
        case .unix: true
        case .network(let host, _):
            host.hasPrefix("127.") || Self.bytes(host, AF_INET6) == [UInt8](repeating: 0, count: 15) + [1]
        }
    }

    /// The host name for a URL with this address; nil for a Unix-domain socket.
    var hostName: String? {
        switch self {
        case .unix: nil
        case .network(let host, _): host.contains(":") ? "[\(host)]" : host
        }
    }
}
