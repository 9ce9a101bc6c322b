import LarderClient
import LarderPlatform
import LarderRESP
import LarderWire

extension Failure {
    /// Returns the failure if the Redis cannot be reached, or has returned an error.
    /// - Parameter isAnswer: whether the Redis has returned this error.
    static func redis(_ message: String, isAnswer: Bool = false) -> Failure {
        Failure(
            code: isAnswer ? "redis" : "noRedis", message: message, exitCode: isAnswer ? .serverError : .noDaemon)
    }
}

/// A connection to a Redis. For one thread at a time.
final class RedisServer {
    private let connection: BlockingConnection
    private let shown: String
    private let timeoutMilliseconds: Int

    /// Connects, and authenticates with the password in the URL, or else in the environment variable
    /// ``Options/passwordVariable``.
    init(_ url: RedisURL, timeoutMilliseconds: Int) throws(Failure) {
        shown = url.shown
        self.timeoutMilliseconds = timeoutMilliseconds
        let descriptor: Int32
        switch url.place {
        case .unix(let path):
            do throws(FileError) {
                descriptor = try UnixSocket.connected(to: path)
            } catch {
                throw Failure.redis("no connection to Redis at \(url.shown): \(SystemErrorText.of(error.number))")
            }
        case .tcp(let host, let port):
            do throws(TCPSocket.Failure) {
                descriptor = try TCPSocket.connected(host: host, port: port, milliseconds: timeoutMilliseconds)
            } catch {
                throw Failure.redis("no connection to Redis at \(url.shown): \(error)")
            }
        }
        connection = BlockingConnection(adopting: descriptor, timeoutMilliseconds: timeoutMilliseconds)
        let password = url.password ?? getenv(Options.passwordVariable).map { String(cString: $0) }
        if let password { try command(["AUTH"] + [url.user].compactMap { $0 } + [password]) }
        try command(["PING"])
    }

    /// Sends commands as a pipeline, and returns their replies. Error replies are returned, not thrown.
    func exchange(_ commands: [[[UInt8]]]) throws(Failure) -> [RESPValue] {
        guard !commands.isEmpty else { return [] }
        do throws(WireFailure) {
            return try connection.exchange(RequestEncoder.encoded(commands), replies: commands.count)
        } catch {
            throw describe(error)
        }
    }

    /// Sends one command.
    /// - Throws: an error if the reply is an error reply.
    @discardableResult
    func command(_ words: [String]) throws(Failure) -> RESPValue {
        try checked(try exchange([words.map { Array($0.utf8) }])[0])
    }

    func select(_ number: Int) throws(Failure) { try command(["SELECT", "\(number)"]) }

    /// - Throws: an error if the reply is an error reply.
    @discardableResult
    func checked(_ reply: RESPValue) throws(Failure) -> RESPValue {
        guard let text = reply.errorMessage else { return reply }
        var message = "the Redis at \(shown) returned an error: \(text)"
        if text.hasPrefix("NOAUTH") {
            message += " (set the password in the variable \(Options.passwordVariable), or in the URL)"
        }
        throw Failure.redis(message, isAnswer: true)
    }

    private func describe(_ failure: WireFailure) -> Failure {
        switch failure.kind {
        case .timeout: .redis("the Redis at \(shown) did not reply within \(timeoutMilliseconds) ms")
        case .protocolViolation(let text): .redis("the server at \(shown) is not a Redis: \(text)")
        case .system(let call, let number):
            .redis("\(call) failed for \(shown): \(SystemErrorText.of(number))")
        default:
            .redis(
                failure.finalError.map { "the Redis at \(shown) returned an error: \($0)" }
                    ?? "the Redis at \(shown) closed the connection")
        }
    }
}

/// The address of a Redis: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, or `unix:PATH[?db=DATABASE]` or
/// `unix://PATH[?db=DATABASE]`.
struct RedisURL {
    enum Place {
        case unix(String)
        case tcp(host: String, port: UInt16)
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
        guard !host.isEmpty, let port = UInt16(port) else {
            throw UsageError("the URL of a Redis must be \(rule): invalid or missing host or port")
        }
        return .tcp(host: String(host), port: port)
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
