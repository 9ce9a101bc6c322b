import LarderPlatform
import LarderVocabulary

/// The address of an origin, with the user, the password and options. ``description`` does not contain the password.
///
/// The following forms are allowed:
/// - `redis://[user[:password]@]host[:port][/db]`, one server,
/// - `redis+cluster://[user[:password]@]host[:port][,host[:port]…]`, some servers of a cluster; the client finds the
///   others through these servers,
/// - `unix:///path[?db=n]` or `unix:/path[?db=n]`, one server at a socket; `n` may also be the name of a larder's
///   database, but not of a reserved one such as `NAME.outbox` or `_replication`,
/// - `rediss://` and `rediss+cluster://` for TLS, with `?ca=/path` for the trusted certificates, and
///   `?cert=/path&key=/path` for a client certificate.
///
/// Special characters in user and password are written as `%HH`.
public struct OriginAddress: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The error for an invalid address. Its description does not contain the password.
    public struct Failure: Error, Hashable, CustomStringConvertible {
        public let description: String
    }

    /// The servers in the address. There is exactly one unless the origin is a cluster.
    public private(set) var endpoints: [OriginEndpoint] = []
    public private(set) var isCluster = false
    public private(set) var usesTLS = false
    /// The file with the trusted certificates; nil for those of the system.
    public private(set) var certificatesPath: String?
    /// The file with the client certificate, and the file with its key; nil for none.
    public private(set) var certificatePath: String?
    public private(set) var keyPath: String?
    /// The user name; nil for the server's user `default`.
    public private(set) var user: String?
    public package(set) var password: [UInt8]?
    /// The file whose first line is the password. It is read again for each connection. Nil if there is no file.
    public private(set) var passwordPath: String?
    /// The database of the server: its number, or the name of a larder's database.
    public package(set) var database = "0"
    /// Whether the text contains the database.
    package private(set) var hasDatabase = false

    static let defaultPort: UInt16 = 6379
    static let secretBytesMax = 4096
    static let endpointsMax = 64

    /// - Parameters:
    ///   - text: the address in one of the forms that the type's documentation describes.
    ///   - user: replaces the user in the text.
    ///   - passwordFile: the file whose first line is the password.
    public init(_ text: String, user: String? = nil, passwordFile: String? = nil) throws(Failure) {
        let (scheme, whole) = try Self.parts(of: text)
        var (rest, query) = (whole, Substring())
        if let mark = rest.lastIndex(of: "?") {
            query = rest[rest.index(after: mark)...]
            rest = rest[..<mark]
        }
        switch scheme {
        case "redis", "rediss", "redis+cluster", "rediss+cluster":
            isCluster = scheme.hasSuffix("+cluster")
            usesTLS = scheme.hasPrefix("rediss")
            try readServers(rest)
        case "unix":
            try readPath(rest)
        default:
            throw Self.unknownScheme(scheme + "://")
        }
        try readOptions(query)
        if let user { self.user = user }
        passwordPath = passwordFile
        if let passwordFile { password = try Self.secret(in: passwordFile) }
    }

    private static func parts(of text: String) throws(Failure) -> (scheme: String, rest: Substring) {
        if let path = UnixSocket.path(inURL: text) { return ("unix", path) }
        guard let end = text.firstRange(of: "://") else { throw unknownScheme(text.contains("@") ? nil : text) }
        return (text[..<end.lowerBound].lowercased(), text[end.upperBound...])
    }

    private static func unknownScheme(_ text: String?) -> Failure {
        Failure(
            description: (text.map { "'\($0)' is" } ?? "that is")
                + " not the address of an origin: use redis://host:port, redis+cluster://host:port,host:port or unix:///path"
        )
    }

    // MARK: Parts

    private mutating func readServers(_ text: Substring) throws(Failure) {
        var servers = text
        // Search from the end: a password may contain an @, but a host may not.
        if let at = text.lastIndex(of: "@") {
            let person = text[..<at]
            servers = text[text.index(after: at)...]
            if let colon = person.firstIndex(of: ":") {
                password = try Self.decode(person[person.index(after: colon)...], "password")
                try take(user: person[..<colon])
            } else {
                try take(user: person)
            }
        }
        if let slash = servers.firstIndex(of: "/") {
            let number = servers[servers.index(after: slash)...]
            if !number.isEmpty { try take(database: number) }
            servers = servers[..<slash]
        }
        for server in servers.split(separator: ",", omittingEmptySubsequences: false) {
            endpoints.append(try Self.endpoint(server))
        }
        guard isCluster || endpoints.count == 1 else {
            throw Failure(
                description: "redis:// has one server: for a cluster, use redis+cluster://host:port,host:port")
        }
        guard endpoints.count <= Self.endpointsMax else {
            throw Failure(
                description: "at most \(Self.endpointsMax) servers can be listed; the cluster reports the others")
        }
    }

    private mutating func take(user text: Substring) throws(Failure) {
        guard !text.isEmpty else { return }
        guard let name = String(validating: try Self.decode(text, "user"), as: UTF8.self) else {
            throw Failure(description: "the origin's user is not UTF-8")
        }
        user = name
    }

    private mutating func take(database text: Substring) throws(Failure) {
        hasDatabase = true
        if case .unix? = endpoints.first, !text.allSatisfy(\.isNumber) {
            try take(databaseNamed: String(text))
            return
        }
        guard let number = Int(text), (0...65_535).contains(number) else {
            var form = "/0 to /65535"
            if case .unix? = endpoints.first { form = "?db=0 to ?db=65535, or the name of a larder's database" }
            throw Failure(description: "'\(text)' is not a database number; use \(form)")
        }
        guard !isCluster || number == 0 else { throw Failure(description: "a cluster has only database 0") }
        database = String(number)
    }

    private mutating func take(databaseNamed name: String) throws(Failure) {
        guard DatabaseName.isValid(name) else {
            throw Failure(
                description: "'\(printableKey(name.utf8))' is neither a number nor the name of a larder's database: "
                    + "use ?db=0 or ?db=shop; \(DatabaseName.rule)")
        }
        guard !CompanionName.isReserved(name) else {
            throw Failure(
                description: "the database '\(name)' is reserved and cannot be an origin; "
                    + "use ?db=0 or ?db=shop")
        }
        database = name
    }

    private mutating func readPath(_ text: Substring) throws(Failure) {
        guard text.hasPrefix("/"), text.utf8.count > 1 else {
            throw Failure(description: "unix:// needs an absolute path: use unix:///path")
        }
        guard text.utf8.count <= UnixSocket.pathBytesMax else {
            throw Failure(description: "the socket's path is longer than \(UnixSocket.pathBytesMax) bytes")
        }
        endpoints = [.unix(path: String(text))]
    }

    private mutating func readOptions(_ query: Substring) throws(Failure) {
        let options = query.split(separator: "&")
        let names = options.map { $0.prefix { $0 != "=" } }
        if let twice = names.first(where: { name in names.count { $0 == name } > 1 }) {
            throw Failure(description: "'\(twice)=' is given twice")
        }
        for (option, name) in zip(options, names) {
            let value = option.dropFirst(name.count + 1)
            if name == "db", option != name, case .unix? = endpoints.first {
                try take(database: value)
            } else if usesTLS, option != name, let path = Self.filePaths[String(name)] {
                guard value.hasPrefix("/") else {
                    throw Failure(description: "'?\(name)=' needs the absolute path of a file: use ?\(name)=/path")
                }
                self[keyPath: path] = String(value)
            } else {
                throw Failure(
                    description:
                        "'?\(name)' is not an option of this address: unix:// has ?db=n, rediss:// has ?ca=/path, ?cert=/path and ?key=/path"
                )
            }
        }
    }

    /// The options that name files.
    private static var filePaths: [String: WritableKeyPath<OriginAddress, String?>] {
        ["ca": \.certificatesPath, "cert": \.certificatePath, "key": \.keyPath]
    }

    /// Reads the password from the first line of a file.
    static func secret(in passwordFile: String) throws(Failure) -> [UInt8] {
        guard FileSystem.exists(passwordFile) else {
            throw Failure(description: "the password file \(passwordFile) is missing")
        }
        guard !FileSystem.existsButIsNotRegularFile(passwordFile) else {
            throw Failure(description: "the password file \(passwordFile) is not a regular file")
        }
        var bytes: [UInt8]?
        do throws(FileError) {
            bytes = try FileSystem.read(passwordFile, bytesMax: Self.secretBytesMax)
        } catch {
            throw Failure(description: "the password file: \(error)")
        }
        let line = (bytes ?? []).prefix { $0 != 10 && $0 != 13 }
        guard !line.isEmpty else {
            throw Failure(description: "the first line of the password file \(passwordFile) is empty")
        }
        return Array(line)
    }

    /// Parses `host`, `host:port` or `[address]:port`.
    static func endpoint(_ text: Substring) throws(Failure) -> OriginEndpoint {
        var host = text
        var port: Substring?
        if text.hasPrefix("["), let close = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<close]
            let rest = text[text.index(after: close)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { throw noServer(text) }
            port = rest.isEmpty ? nil : rest.dropFirst()
        } else if let colon = text.lastIndex(of: ":") {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
            guard !host.contains(":") else { throw noServer(text) }
        }
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
            throw noServer(text)
        }
        guard let port else { return .tcp(host: String(host), port: defaultPort) }
        guard let number = UInt16(port), number > 0 else { throw noServer(text) }
        return .tcp(host: String(host), port: number)
    }

    private static func noServer(_ text: Substring) -> Failure {
        Failure(description: "'\(text)' is not a server: use host:port, or [address]:port for IPv6")
    }

    /// Decodes percent-encoded bytes.
    private static func decode(_ text: Substring, _ what: String) throws(Failure) -> [UInt8] {
        guard let bytes = PercentEncoding.decoded(text.utf8) else {
            throw Failure(description: "the origin's \(what) has a % without two hexadecimal digits: write %25")
        }
        guard bytes.count <= secretBytesMax else { throw Failure(description: "the origin's \(what) is too long") }
        return bytes
    }

    // MARK: Text

    public var description: String {
        let person = user.map { "\($0)@" } ?? ""
        if case .unix(let path)? = endpoints.first {
            return "unix://\(path)" + (database == "0" ? "" : "?db=\(database)")
        }
        let scheme = (usesTLS ? "rediss" : "redis") + (isCluster ? "+cluster" : "")
        return "\(scheme)://\(person)" + endpoints.map(\.description).joined(separator: ",")
            + (database == "0" ? "" : "/\(database)")
    }

    public var debugDescription: String { description }
}

/// The network address of a server.
public enum OriginEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// A host name or an IP address without brackets, and a port.
    case tcp(host: String, port: UInt16)
    /// The path of a Unix-domain socket.
    case unix(path: String)

    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }
}
