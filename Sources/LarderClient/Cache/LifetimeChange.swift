// Changes of the lifetimes of existing entries.

import LarderRESP

/// The requests that change the lifetime of an existing entry.
struct LifetimeChange: Sendable {
    /// The requests, in order. The reply to the last request shows whether there was a fresh entry.
    let requests: [Request<Bool>]

    /// Creates the requests for a policy.
    /// - Throws: `invalidArgument` for an invalid lifetime, or for a lifetime that no command of the daemon can set.
    init(_ policy: EntryPolicy, _ database: String, _ key: [UInt8]) throws(LarderClientError) {
        let policy = try Self.checked(policy, "touch", database, key)
        switch policy.lifetime {
        case .governed: throw Self.noCommand(database, key)
        case .keep: requests = [.contains(key)]
        case .until(let instant): requests = [.expire(key, atMilliseconds: instant)]
        case .policy(let interval):
            // The reply to PERSIST is the same for a missing entry and for an entry that does not expire, so EXISTS
            // follows.
            requests =
                interval.intervalMilliseconds.map {
                    [.expire(key, afterMilliseconds: Jitter.shortened($0, by: policy.jitter ?? 0))]
                } ?? [.persist(key), .contains(key)]
        }
    }

    private static func checked(_ policy: EntryPolicy, _ operation: String, _ database: String, _ key: [UInt8])
        throws(LarderClientError) -> EntryPolicy.Checked
    {
        let policy = try policy.checked(operation, database, key: key)
        guard policy.grace == nil else {
            throw LarderClientError(
                .invalidArgument, EntryPolicy.graceStays, operation: operation, database: database,
                key: printableKey(key))
        }
        return policy
    }

    /// Reads the replies, and returns whether there was a fresh entry.
    func result(_ replies: [RESPValue]) throws(LarderClientError) -> Bool {
        var isThere = false
        for (request, reply) in zip(requests, replies) { isThere = try request.result(of: reply) }
        return isThere
    }

    /// Returns the words of GETEX that set a lifetime.
    static func words(renewing policy: EntryPolicy, _ database: String, _ key: [UInt8]) throws(LarderClientError)
        -> [[UInt8]]
    {
        let policy = try checked(policy, "GETEX", database, key)
        switch policy.lifetime {
        case .governed: throw noCommand(database, key)
        case .keep: return []
        case .until(let instant): return wordList("PXAT", "\(max(1, instant))")
        case .policy(let interval):
            return interval.intervalMilliseconds.map {
                wordList("PX", "\(Jitter.shortened($0, by: policy.jitter ?? 0))")
            } ?? wordList("PERSIST")
        }
    }

    private static func noCommand(_ database: String, _ key: [UInt8]) -> LarderClientError {
        LarderClientError(
            .invalidArgument,
            "the daemon has no command that makes an entry follow its database's policy again; store it again instead",
            operation: "touch", database: database, key: printableKey(key))
    }
}
