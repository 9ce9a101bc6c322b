import LarderClient
import LarderOriginClients
import LarderPlatform
import LarderRESP

extension Failure {
    /// Returns the failure if the Redis cannot be reached, or has returned an error.
    /// - Parameter isAnswer: whether the Redis has returned this error.
    static func redis(_ message: String, isAnswer: Bool = false) -> Failure {
        Failure(
            code: isAnswer ? "redis" : "noRedis", message: message, exitCode: isAnswer ? .serverError : .noDaemon)
    }
}

/// A Redis, of which one database is selected. For one thread at a time.
final class RedisServer {
    static let urlRule = "redis[s]://HOST[:PORT][/DATABASE] or unix:PATH[?db=DATABASE]"

    private var address: OriginAddress
    private var limits = OriginLimits()
    private var origin: RedisOrigin
    /// The number of the database in the URL; nil for all databases.
    let database: Int?

    /// Connects, and authenticates with the password in the URL, or else in the environment variable
    /// ``Options/passwordVariable``.
    /// - Throws: ``UsageError`` for an invalid URL, without the URL, which may contain a password; ``Failure``.
    init(_ url: String, timeoutMilliseconds: Int) throws {
        do throws(OriginAddress.Failure) { address = try OriginAddress(url) } catch {
            throw UsageError("the URL of a Redis is \(Self.urlRule): \(error)")
        }
        database = address.hasDatabase ? Int(address.database) : nil
        guard !address.isCluster, !address.hasDatabase || database != nil else {
            throw UsageError("the URL of a Redis is \(Self.urlRule); DATABASE is a number")
        }
        address.password = address.password ?? Options.passwordInEnvironment.map { Array($0.utf8) }
        limits.call = timeoutMilliseconds == 0 ? ClientOptions.timeoutMillisecondsMax : timeoutMilliseconds
        limits.connect = limits.call
        limits.valueBytes = Input.bytesMax
        origin = RedisOrigin(address, limits: limits, tracking: .none)
        try command(["PING"])
    }

    /// Sends commands as a pipeline, and returns their replies. Error replies are returned, not thrown.
    func exchange(_ commands: [[[UInt8]]]) throws(Failure) -> [RESPValue] {
        let results = BlockingResults<Result<RESPValue, OriginError>>(commands.count)
        for (index, words) in commands.enumerated() {
            origin.perform(words, key: nil) { results.set(index, $0) }
        }
        return try results.wait().map { (result) throws(Failure) in try reply(result) }
    }

    /// Runs commands as a transaction, and returns their replies.
    func transaction(_ commands: [[[UInt8]]]) throws(Failure) -> [RESPValue] {
        let results = BlockingResults<Result<RESPValue, OriginError>>(1)
        origin.perform(transaction: commands, keys: []) { results.set(0, $0) }
        guard let replies = try checked(reply(results.wait()[0])).elements, replies.count == commands.count else {
            throw Failure.redis("malformed reply to EXEC")
        }
        return replies
    }

    /// Sends one command.
    /// - Throws: an error if the reply is an error reply.
    @discardableResult
    func command(_ words: [String]) throws(Failure) -> RESPValue {
        try checked(exchange([words.map { Array($0.utf8) }])[0])
    }

    /// Selects a database for all further commands.
    func select(_ number: Int) throws(Failure) {
        guard address.database != "\(number)" else { return }
        address.database = "\(number)"
        origin.close()
        origin = RedisOrigin(address, limits: limits, tracking: .none)
        try command(["PING"])
    }

    /// - Throws: an error if the reply is an error reply.
    @discardableResult
    func checked(_ reply: RESPValue) throws(Failure) -> RESPValue {
        if let text = reply.errorMessage { throw refusal(text) }
        return reply
    }

    private func reply(_ result: Result<RESPValue, OriginError>) throws(Failure) -> RESPValue {
        switch result {
        case .success(let reply): return reply
        case .failure(.refused(let text)): return .error(text)
        // Not an error reply of a Redis.
        case .failure(.unsuitable(let text)) where text.contains("a Redis server"): throw .redis("\(address): \(text)")
        case .failure(.unsuitable(let text)): throw refusal(text)
        case .failure(.unreachable(let reason)): throw .redis("no connection to Redis at \(reason)")
        case .failure(let error): throw .redis("\(address): \(error)")
        }
    }

    private func refusal(_ text: String) -> Failure {
        let isUnauthorized = text.contains("NOAUTH")
        let advice =
            isUnauthorized ? " (set the password in the variable \(Options.passwordVariable), or in the URL)" : ""
        return .redis("the Redis at \(address) returned an error: \(text)\(advice)", isAnswer: true)
    }
}
