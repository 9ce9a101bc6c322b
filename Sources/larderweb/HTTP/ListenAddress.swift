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
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard Self.isIPv6(host) else { return nil }
        } else {
            guard Self.isIPv4(host) else { return nil }
        }
        self = .network(host: host, port: port)
    }

    private static func isIPv4(_ text: String) -> Bool {
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1
    }

    private static func isIPv6(_ text: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET6, text, &address) == 1
    }

    /// Whether only this machine can connect.
    var isLocal: Bool {
        switch self {
        case .unix: true
        case .network(let host, _): host.hasPrefix("127.") || Self.isLoopback6(host)
        }
    }

    private static func isLoopback6(_ host: String) -> Bool {
        var address = in6_addr()
        guard inet_pton(AF_INET6, host, &address) == 1 else { return false }
        return withUnsafeBytes(of: &address) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }

    /// The host name for a URL with this address; nil for a Unix-domain socket.
    var hostName: String? {
        switch self {
        case .unix: nil
        case .network(let host, _): host.contains(":") ? "[\(host)]" : host
        }
    }
}
