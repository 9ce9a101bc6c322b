// How long entries stay, as the daemon is told.

extension EntryPolicy {
    /// - Throws: `invalidArgument` for a lifetime that is not possible.
    func checked(_ operation: String, key: [UInt8]) throws(LarderClientError) -> Checked {
        do throws(Impossible) {
            return try checked()
        } catch {
            throw LarderClientError(.invalidArgument, error.message, operation: operation, key: printableKey(key))
        }
    }
}

extension EntryPolicy.Checked {
    /// The words that SET and MSETEX take. Redis knows no policies: it is told milliseconds.
    func words(for server: ServerKind) -> [[UInt8]] {
        switch self {
        case .governed: []
        case .keep: wordList("KEEPTTL")
        case .policy(let policy) where server.isLarder: wordList("POLICY", policy.description)
        case .policy(let policy): policy.intervalMilliseconds.map { wordList("PX", "\($0)") } ?? []
        // 0 is refused; it is as much in the past.
        case .until(let instant): wordList("PXAT", "\(max(1, instant))")
        }
    }
}
