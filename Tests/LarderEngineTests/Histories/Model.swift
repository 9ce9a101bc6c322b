@testable import LarderEngine

/// A simple model of a database, which predicts the results of reads.
struct Model {
    struct Entry: Equatable {
        var value: String
        var storedAt: Int64
        var rule: DeadlineRule
        var tags: [String] = []
        /// Whether a sweep may have removed the expired entry. If the clock is set back, the entry then either is fresh
        /// again or is missing.
        var mayBeSwept = false
    }

    /// The possible results of reading a key.
    enum Expectation: Equatable {
        case absent
        case present(String)
        /// The key may be absent or have this value.
        case unsure(String)
    }

    var policy: UpdatePolicy
    var deadBefore: Int64 = 0
    var entries: [String: Entry] = [:]
    /// Keys whose entry a tag purge has removed. The entry is stored until the next sweep, but not visible.
    var purged: Set<String> = []

    /// Computes the expiry as the design describes it, independently of the engine's code.
    func isExpired(_ entry: Entry, _ now: Int64) -> Bool {
        if isFromTheFuture(entry, now) { return false }
        switch entry.rule {
        case .ownNever: return false
        case .own(let deadline): return now >= deadline
        case .governed:
            if entry.storedAt <= deadBefore { return true }
            guard let interval = policy.intervalMilliseconds else { return false }
            return now - entry.storedAt >= interval
        }
    }

    func isFromTheFuture(_ entry: Entry, _ now: Int64) -> Bool { entry.storedAt > now + 60_000 }

    func isFresh(_ entry: Entry, _ now: Int64) -> Bool { !isExpired(entry, now) && !isFromTheFuture(entry, now) }

    func expectation(_ key: String, _ now: Int64) -> Expectation {
        guard let entry = entries[key], isFresh(entry, now) else { return .absent }
        return entry.mayBeSwept ? .unsure(entry.value) : .present(entry.value)
    }

    mutating func change(_ policy: UpdatePolicy, _ now: Int64) {
        guard policy != self.policy else { return }
        if let interval = self.policy.intervalMilliseconds { deadBefore = max(deadBefore, now - interval) }
        self.policy = policy
    }

    mutating func purge(tags: Set<String>) {
        for (key, entry) in entries where !tags.isDisjoint(with: entry.tags) {
            entries[key] = nil
            purged.insert(key)
        }
    }

    /// Records that a sweep may have run at `now`.
    mutating func noteSweep(_ now: Int64) {
        for (key, entry) in entries where isExpired(entry, now) { entries[key]?.mayBeSwept = true }
    }

    /// Records that the database was opened at `now`.
    mutating func noteOpening(_ now: Int64) { deadBefore = min(deadBefore, max(0, now - 1)) }
}
