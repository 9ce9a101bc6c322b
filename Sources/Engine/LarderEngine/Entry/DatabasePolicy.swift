/// The settings of a database for the lifetime of its entries.
package struct DatabasePolicy: Hashable, Sendable {
    /// The interval after which governed entries expire. Governed entries have no rule of their own.
    package var policy: UpdatePolicy
    /// How long entries without their own grace are kept as stale after their deadline, in milliseconds; from 0 to
    /// ``UpdatePolicy/longestMilliseconds``.
    package var grace: Int64
    /// The maximum random reduction of an entry's interval when the entry is stored, in percent: from 0 to 100. The
    /// jitter prevents entries that are stored together from expiring together.
    package var jitter: Int

    package init(_ policy: UpdatePolicy, grace: Int64 = 0, jitter: Int = 0) {
        self.policy = policy
        self.grace = grace
        self.jitter = jitter
    }

    /// Returns the rule of an entry that is stored at `now`. With a jitter every entry gets its own deadline.
    /// - Parameters:
    ///   - interval: the entry's own interval; nil for the database's.
    ///   - jitter: the entry's own jitter in percent; nil for the database's.
    package func rule(_ interval: UpdatePolicy?, jitter: Int?, now: Int64) -> DeadlineRule {
        let jitter = jitter ?? self.jitter
        guard jitter > 0, let length = (interval ?? policy).intervalMilliseconds else {
            return interval.map { .policy($0, now: now) } ?? .governed
        }
        return .own(now + Jitter.shortened(length, by: jitter))
    }
}

extension EntryPolicy.Checked {
    /// Returns the rule of an entry that is stored at `now`.
    /// - Parameters:
    ///   - settings: the database's policy.
    ///   - ahead: how far the larder's time is ahead of the system clock, in milliseconds. Absolute deadlines refer to
    ///     the system clock.
    ///   - previous: the rule of the fresh entry that is replaced; nil if there is none.
    package func rule(_ settings: DatabasePolicy, now: Int64, ahead: Int64, previous: DeadlineRule?) -> DeadlineRule {
        switch lifetime {
        case .governed: jitter == nil ? .governed : settings.rule(nil, jitter: jitter, now: now)
        case .keep: previous ?? .governed
        case .policy(let policy): settings.rule(policy, jitter: jitter ?? 0, now: now)
        case .until(let instant):
            .own(now + Jitter.shortened(instant + ahead - now, by: jitter ?? 0))
        }
    }
}
