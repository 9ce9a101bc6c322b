import LarderEngine

// Checks of policies, with errors that describe the allowed values.

/// A validated change of a database's policy.
struct PolicyChange: Sendable {
    let policy: UpdatePolicy
    /// In milliseconds; nil keeps the current grace.
    let grace: Int64?
    /// In percent; nil keeps the current jitter.
    let jitter: Int?

    init(
        _ policy: UpdatePolicy, _ grace: Duration?, _ jitter: Int?, _ operation: String, _ database: String
    ) throws(LarderError) {
        self.policy = policy
        do throws(EntryPolicy.Impossible) {
            self.grace = try grace.map { (grace) throws(EntryPolicy.Impossible) in
                try EntryPolicy.checked(grace: grace)
            }
            self.jitter = try jitter.map { (jitter) throws(EntryPolicy.Impossible) in
                try EntryPolicy.checked(jitter: jitter)
            }
        } catch {
            throw LarderError(.invalidArgument, error.message, operation: operation, database: database)
        }
    }
}

extension UpdatePolicy {
    static func checked(_ seconds: Double, _ operation: String, _ database: String?) throws(LarderError)
        -> UpdatePolicy
    {
        do throws(EntryPolicy.Impossible) {
            return try checked(seconds)
        } catch {
            throw LarderError(.invalidArgument, error.message, operation: operation, database: database)
        }
    }
}

// Keys in the engine's form.

extension Key {
    /// Creates the engine's key, and checks its length.
    init(checking key: some CacheKey, _ operation: String, _ database: String?) throws(LarderError) {
        let made: Key? = key.withKeyBytes { $0.count <= Key.bytesMax ? Key($0) : nil }
        guard let made else {
            let count = key.withKeyBytes { $0.count }
            let start = key.withKeyBytes { Array($0.prefix(64)) }
            throw LarderError(
                .invalidArgument, "the key has \(count) bytes; the limit is \(Key.bytesMax)",
                operation: operation, database: database, key: printableKey(start) + "…")
        }
        self = made
    }
}
