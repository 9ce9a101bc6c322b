import LarderRESP

/// The settings that a new connection sends to the server before other requests.
struct RedisSetup: Sendable {
    enum Tracking: Hashable, Sendable {
        /// The server sends no invalidations.
        case none
        /// The server sends an invalidation when a key that was read on this connection changes.
        case read
        /// The server sends an invalidation when a key with one of these prefixes changes; without prefixes, when any
        /// key changes.
        case broadcast([[UInt8]])
    }

    var user: String?
    var password: [UInt8]?
    /// The file of the password, which is read again for each connection, because it may have changed.
    var passwordPath: String?
    /// Whether the address is `rediss://`, for error messages.
    var usesTLS = false
    var database = "0"
    var tracking = Tracking.none
    /// Whether the server must be part of a cluster (true) or must not (false); nil if both are allowed.
    var isCluster: Bool?
    /// Whether to send READONLY, which lets a replica in a cluster answer reads.
    var isReadOnly = false

    /// The setup with the password read again from its file. If the file cannot be read, the previous password is kept.
    var withPassword: RedisSetup {
        guard let passwordPath, let password = try? OriginAddress.secret(in: passwordPath) else { return self }
        var setup = self
        setup.password = password
        return setup
    }
}

/// The first commands on a connection: HELLO, then commands for the ``RedisSetup``. Used on the loop's thread only.
final class Greeting: RedisExchange {
    private let setup: RedisSetup
    /// Called once, with nil if all commands succeeded.
    var finished: (OriginError?) -> Void = { _ in }
    private var isFinished = false
    /// The steps whose replies are pending.
    private var steps: [Step] = []

    /// A command of the greeting. The raw value is its name in messages.
    enum Step: String {
        case hello = "HELLO"
        case database = "SELECT"
        case readOnly = "READONLY"
        case tracking = "CLIENT TRACKING"
        /// An extension of Larder's daemon, which then reports only changes of the selected database.
        case databaseOnly = "CLIENT TRACKING … DATABASE"
    }

    init(_ setup: RedisSetup) { self.setup = setup }

    func encode(into output: inout [UInt8]) -> Int {
        func add(_ step: Step, _ words: [[UInt8]]) {
            RequestEncoder.encode(words, into: &output)
            steps.append(step)
        }
        var hello = ["HELLO", "3"].map { Array($0.utf8) }
        if setup.password != nil || setup.user != nil {
            hello += [Array("AUTH".utf8), Array((setup.user ?? "default").utf8), setup.password ?? []]
        }
        add(.hello, hello)
        if setup.database != "0" { add(.database, ["SELECT", setup.database].map { Array($0.utf8) }) }
        if setup.isReadOnly { add(.readOnly, [Array("READONLY".utf8)]) }
        switch setup.tracking {
        case .none: break
        case .read:
            // Do not use NOLOOP. With NOLOOP, while Redis runs a command of this connection, it does not report keys
            // that it evicts or stops tracking.
            add(.tracking, ["CLIENT", "TRACKING", "ON"].map { Array($0.utf8) })
        case .broadcast(let prefixes):
            var words = ["CLIENT", "TRACKING", "ON", "BCAST"].map { Array($0.utf8) }
            for prefix in prefixes { words += [Array("PREFIX".utf8), prefix] }
            add(.tracking, words + [Array("NOLOOP".utf8)])
            // Servers other than larderd reply with an error, which is ignored.
            add(.databaseOnly, ["CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP", "DATABASE"].map { Array($0.utf8) })
        }
        return steps.count
    }

    func take(_ reply: RESPValue, skippedBytes: Int, isLast: Bool) {
        guard !isFinished else { return }
        guard !steps.isEmpty else { return }
        let step = steps.removeFirst()
        if step != .databaseOnly, let message = reply.errorMessage { return finish(Self.error(step, message)) }
        if step == .hello, let error = unsuitableMode(reply) { return finish(error) }
        if isLast { finish(nil) }
    }

    func fail(_ error: OriginError) {}

    private func finish(_ error: OriginError?) {
        isFinished = true
        finished(error)
        finished = { _ in }
    }

    /// Returns an error if the server's mode in the reply to HELLO does not match the address.
    private func unsuitableMode(_ reply: RESPValue) -> OriginError? {
        guard let pairs = reply.pairs else { return .unsuitable("the reply to HELLO is not that of a Redis server") }
        let scheme = setup.usesTLS ? "rediss" : "redis"
        let mode = pairs.first { $0.key.string == "mode" }?.value.string
        switch (setup.isCluster, mode) {
        case (true?, "standalone"?), (true?, "sentinel"?):
            return .unsuitable("the server is not part of a cluster: use \(scheme):// instead of \(scheme)+cluster://")
        case (false?, "cluster"?):
            return .unsuitable("the server is part of a cluster: use \(scheme)+cluster:// instead of \(scheme)://")
        case (_, "sentinel"?): return .unsuitable("this is a sentinel: use the address of the server")
        default: return nil
        }
    }

    /// Returns the error for an error reply to a command of the greeting.
    static func error(_ step: Step, _ message: String) -> OriginError {
        switch message.prefix(while: { $0 != " " }) {
        case "NOAUTH": .unsuitable("the server requires a password: \(message)")
        case "WRONGPASS": .unsuitable("user or password is wrong: \(message)")
        case "NOPROTO": .unsuitable("the server does not support RESP3 (Redis 6 or later is required): \(message)")
        case "DENIED": .unsuitable("the server refuses clients from other machines: \(message)")
        case "LOADING": .unavailable("the server is loading its data: \(message)")
        case "NOPERM":
            .unsuitable("the user needs the right to run \(step.rawValue) to receive invalidations: \(message)")
        case "ERR" where step == .hello && message.contains("unknown command"):
            .unsuitable("the server supports only RESP2; Redis 6 or later is required: \(message)")
        default: .unsuitable("\(step.rawValue): \(message)")
        }
    }
}
