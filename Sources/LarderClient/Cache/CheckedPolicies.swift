// The conversion of lifetimes to the daemon's syntax.

extension EntryPolicy {
    /// Returns the validated policy.
    /// - Throws: `invalidArgument` for an invalid lifetime.
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
    /// Returns the words for SET and MSETEX that set the lifetime. Redis has no policies, so it receives a time in
    /// milliseconds, which the client has shortened by the random jitter. Redis receives no grace, because Redis keeps
    /// no entry after the deadline.
    func words(for server: ServerKind) -> [[UInt8]] {
        guard server.isLarder else { return redisWords }
        return lifetimeWords + (grace.map { wordList("GRACE", EntryPolicy.graceText($0)) } ?? [])
            + (jitter.map { wordList("JITTER", "\($0)") } ?? [])
    }

    private var lifetimeWords: [[UInt8]] {
        switch lifetime {
        case .governed: []
        case .keep: wordList("KEEPTTL")
        case .policy(let policy): wordList("POLICY", policy.description)
        // The server refuses 0, so send 1, which is in the past too.
        case .until(let instant): wordList("PXAT", "\(max(1, instant))")
        }
    }

    private var redisWords: [[UInt8]] {
        guard case .policy(let policy) = lifetime else { return lifetimeWords }
        return policy.intervalMilliseconds.map {
            wordList("PX", "\(Jitter.shortened($0, by: jitter ?? 0))")
        } ?? []
    }
}
