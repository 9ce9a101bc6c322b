import LarderPlatform

/// The address of a Redis: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, or `unix:PATH[?db=DATABASE]` or
/// `unix://PATH[?db=DATABASE]`.
struct RedisURL {
    enum Place {
        case unix(String)
        case tcp(host: String, port: String)
    }

    let place: Place
    var user: String?
    var password: String?
    /// The database number; nil for all databases.
    var database: Int?

    static let rule = "redis://HOST[:PORT][/DATABASE] or unix:PATH[?db=DATABASE]"

    /// - Throws: an error whose message does not contain the URL, because the URL may contain a password.
    init(_ text: String) throws(UsageError) {
        if var path = UnixSocket.path(inURL: text) {
            if let mark = path.lastIndex(of: "?"), path[mark...].hasPrefix("?db=") {
                database = try Self.number(path[mark...].dropFirst(4))
                path = path[..<mark]
            }
            guard path.hasPrefix("/") else {
                throw UsageError(
                    "the socket of the Redis needs an absolute path: unix:/run/redis/redis.sock")
            }
            place = .unix(String(path))
            return
        }
        if text.hasPrefix("rediss:") {
            throw UsageError(
                "TLS to a Redis is not supported: use a tunnel, such as stunnel, and redis://")
        }
        guard text.hasPrefix("redis://") else { throw UsageError("the URL of a Redis is \(Self.rule)") }
        var rest = text.dropFirst("redis://".count)
        if let slash = rest.lastIndex(of: "/"), rest.lastIndex(of: "@").map({ $0 < slash }) ?? true {
            let number = rest[rest.index(after: slash)...]
            if !number.isEmpty { database = try Self.number(number) }
            rest = rest[..<slash]
        }
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let name = try Self.plain(parts[0])
            user = name.isEmpty ? nil : name
            password = parts.count > 1 ? try Self.plain(parts[1]) : nil
            rest = rest[rest.index(after: at)...]
        }
        place = try Self.host(rest)
    }

    private static func host(_ text: Substring) throws(UsageError) -> Place {
        var (host, port) = (text, Substring("6379"))
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            if text[end...].dropFirst().hasPrefix(":") { port = text[end...].dropFirst(2) }
        } else if let colon = text.lastIndex(of: ":") {
            (host, port) = (text[..<colon], text[text.index(after: colon)...])
        }
        guard !host.isEmpty, UInt16(port) != nil else {
            throw UsageError("the URL of a Redis must be \(rule): invalid or missing host or port")
        }
        return .tcp(host: String(host), port: String(port))
    }

    private static func number(_ text: Substring) throws(UsageError) -> Int {
        guard let number = Int(text), number >= 0 else {
            throw UsageError("the database in the URL of a Redis must be a number, 0 or more")
        }
        return number
    }

    /// Decodes percent-encoded text.
    private static func plain(_ text: Substring) throws(UsageError) -> String {
        guard let bytes = PercentEncoding.decoded(text.utf8) else {
            throw UsageError("a % in the user or the password of a URL must be written as %25")
        }
        guard let plain = String(validating: bytes, as: UTF8.self) else {
            throw UsageError("the user and the password of a URL must be UTF-8")
        }
        return plain
    }

    /// The URL without user and password, for messages.
    var shown: String {
        switch place {
        case .unix(let path): "unix:\(path)"
        case .tcp(let host, let port): "redis://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        }
    }
}
