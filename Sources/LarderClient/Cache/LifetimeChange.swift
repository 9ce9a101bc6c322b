// Lifetimes of existing entries.

import RESP

/// Another lifetime for an existing entry, as requests.
struct LifetimeChange: Sendable {
    /// The last one tells whether there was a fresh entry.
    let requests: [Request<Bool>]

    /// - Throws: `invalidArgument` for an impossible lifetime, or one for which the daemon has no command.
    init(_ policy: EntryPolicy, _ database: String, _ key: [UInt8]) throws(LarderClientError) {
        switch try policy.checked("touch", database, key: key) {
        case .governed: throw Self.noCommand(database, key)
        case .keep: requests = [.contains(key)]
        case .until(let instant): requests = [.expire(key, atMilliseconds: instant)]
        case .policy(let policy):
            // PERSIST's reply does not tell a missing entry from one that does not expire anyway.
            requests =
                policy.intervalMilliseconds.map { [.expire(key, afterMilliseconds: $0)] }
                ?? [.persist(key), .contains(key)]
        }
    }

    /// Reads the replies.
    func result(_ replies: [RESPValue]) throws(LarderClientError) -> Bool {
        var isThere = false
        for (request, reply) in zip(requests, replies) { isThere = try request.result(of: reply) }
        return isThere
    }

    /// The words of GETEX for a lifetime.
    static func words(renewing policy: EntryPolicy, _ database: String, _ key: [UInt8]) throws(LarderClientError)
        -> [[UInt8]]
    {
        switch try policy.checked("GETEX", database, key: key) {
        case .governed: throw noCommand(database, key)
        case .keep: return []
        case .until(let instant): return wordList("PXAT", "\(max(1, instant))")
        case .policy(let policy):
            return policy.intervalMilliseconds.map { wordList("PX", "\($0)") } ?? wordList("PERSIST")
        }
    }

    private static func noCommand(_ database: String, _ key: [UInt8]) -> LarderClientError {
        LarderClientError(
            .invalidArgument,
            "the daemon has no command that makes an entry follow its database's policy again; store it again instead",
            operation: "touch", database: database, key: printableKey(key))
    }
}
