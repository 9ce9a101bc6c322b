import LarderClient
import LarderPlatform
import LarderRESP

/// The error if the Redis cannot be reached, or has returned an error.
struct RedisError: Error {
    let message: String
    /// Whether the Redis has returned this error.
    var isAnswer = false
}

/// A connection to a Redis. For one thread at a time.
final class RedisServer {
    private let connection: BlockingConnection
    private let shown: String
    private let timeoutMilliseconds: Int

    /// Connects, and authenticates with the password in the URL, or else in the environment variable
    /// ``Options/passwordVariable``.
    init(_ url: RedisURL, timeoutMilliseconds: Int) throws(RedisError) {
        shown = url.shown
        self.timeoutMilliseconds = timeoutMilliseconds
        let descriptor: Int32
        switch url.place {
        case .unix(let path):
            do throws(FileError) {
                descriptor = try UnixSocket.connected(to: path)
            } catch {
                throw RedisError(message: "no connection to Redis at \(url.shown): \(SystemErrorText.of(error.number))")
            }
        case .tcp(let host, let port):
            do throws(TCPSocket.Failure) {
                descriptor = try TCPSocket.connected(host: host, port: port, milliseconds: timeoutMilliseconds)
            } catch {
                throw RedisError(message: "no connection to Redis at \(url.shown): \(error)")
            }
        }
        connection = BlockingConnection(adopting: descriptor, timeoutMilliseconds: timeoutMilliseconds)
        let password = url.password ?? getenv(Options.passwordVariable).map { String(cString: $0) }
        if let password { try command(["AUTH"] + [url.user].compactMap { $0 } + [password]) }
        try command(["PING"])
    }

    /// Sends commands as a pipeline, and returns their replies. Error replies are returned, not thrown.
    func exchange(_ commands: [[[UInt8]]]) throws(RedisError) -> [RESPValue] {
        guard !commands.isEmpty else { return [] }
        var bytes: [UInt8] = []
        for words in commands { RequestEncoder.encode(words, into: &bytes) }
        do throws(WireFailure) {
            return try connection.exchange(bytes, replies: commands.count)
        } catch {
            throw describe(error)
        }
    }

    /// Sends one command.
    /// - Throws: an error if the reply is an error reply.
    @discardableResult
    func command(_ words: [String]) throws(RedisError) -> RESPValue {
        try checked(try exchange([words.map { Array($0.utf8) }])[0])
    }

    func select(_ number: Int) throws(RedisError) { try command(["SELECT", "\(number)"]) }

    /// - Throws: an error if the reply is an error reply.
    @discardableResult
    func checked(_ reply: RESPValue) throws(RedisError) -> RESPValue {
        guard let text = reply.errorMessage else { return reply }
        var message = "the Redis at \(shown) returned an error: \(text)"
        if text.hasPrefix("NOAUTH") {
            message += " (set the password in the variable \(Options.passwordVariable), or in the URL)"
        }
        throw RedisError(message: message, isAnswer: true)
    }

    private func describe(_ failure: WireFailure) -> RedisError {
        switch failure.kind {
        case .timeout: RedisError(message: "the Redis at \(shown) did not reply within \(timeoutMilliseconds) ms")
        case .protocolViolation(let text): RedisError(message: "the server at \(shown) is not a Redis: \(text)")
        case .system(let call, let number):
            RedisError(message: "\(call) failed for \(shown): \(SystemErrorText.of(number))")
        default:
            RedisError(
                message: failure.finalError.map { "the Redis at \(shown) returned an error: \($0)" }
                    ?? "the Redis at \(shown) closed the connection")
        }
    }
}
