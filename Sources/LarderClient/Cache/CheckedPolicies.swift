// Lifetimes in the form for the daemon.

extension EntryPolicy {
    /// - Throws: `invalidArgument` for an impossible lifetime.
    func checked(_ operation: String, _ database: String? = nil, key: [UInt8]) throws(LarderClientError) -> Checked {
        do throws(Impossible) {
            return try checked()
        } catch {
            throw LarderClientError(
                .invalidArgument, error.message, operation: operation, database: database, key: printableKey(key))
        }
    }
}

extension EntryPolicy.Checked {
    /// The words for SET and MSETEX. Redis has no policies: it gets milliseconds.
    func words(for server: ServerKind) -> [[UInt8]] {
        switch self {
        case .governed: []
        case .keep: wordList("KEEPTTL")
        case .policy(let policy) where server.isLarder: wordList("POLICY", policy.description)
        case .policy(let policy): policy.intervalMilliseconds.map { wordList("PX", "\($0)") } ?? []
        // 0 is refused; 1 is in the past too.
        case .until(let instant): wordList("PXAT", "\(max(1, instant))")
        }
    }
}
