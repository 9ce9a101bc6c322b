/// The states in an entry's life.
package enum Freshness: Hashable, Sendable {
    /// Before its deadline: every read returns it.
    case fresh
    /// After its deadline and before the end of its grace: returned only on request.
    case stale
    /// After its grace: never returned, and its space may be reclaimed.
    case gone
}

/// The rules that determine when a database's entries expire, at one moment: its policy, and the effects of earlier
/// policies and purges.
package struct FreshnessRules: Hashable, Sendable {
    package var policy: UpdatePolicy
    /// The storage time up to which governed entries (those whose deadline follows from the policy) stay expired under
    /// every later policy, in milliseconds since 1970.
    package var deadBefore: Int64
    /// See ``DatabasePolicy/grace``.
    package var grace: Int64
    /// See ``DatabasePolicy/jitter``.
    package var jitter: Int
    /// The purges of tags; nil if there were none.
    package var purges: TagPurges?

    package init(policy: UpdatePolicy, deadBefore: Int64 = 0) {
        self.init(DatabasePolicy(policy), deadBefore: deadBefore)
    }

    package init(_ settings: DatabasePolicy, deadBefore: Int64 = 0) {
        policy = settings.policy
        grace = settings.grace
        jitter = settings.jitter
        self.deadBefore = deadBefore
    }
}

extension FreshnessRules {
    package var settings: DatabasePolicy { DatabasePolicy(policy, grace: grace, jitter: jitter) }

    /// Returns the state of an entry. **The boundary rule**: an entry is expired if and only if `now >= deadline`. An
    /// expired entry is stale while `now < deadline + grace`, and gone after that. An entry with a purged tag is
    /// expired even if `now` is before the recorded time of the purge: a reader may have read the clock before the
    /// purge, and a later purge replaces the recorded time of an earlier one.
    package func freshness(_ header: RecordHeader, now: Int64) -> Freshness {
        guard let deadline = deadline(header), now >= deadline || header.tagsEnd != .max else { return .fresh }
        return now < end(header, deadline) ? .stale : .gone
    }

    /// Returns when the entry becomes ``Freshness/gone``, in milliseconds since 1970; nil for never.
    func end(_ header: RecordHeader) -> Int64? { deadline(header).map { end(header, $0) } }

    /// Like ``end(_:)``, but nil if the entry ended because of a purge of a tag or a change of the policy.
    func endOfLife(_ header: RecordHeader) -> Int64? {
        if case .governed = header.rule, header.storedAt <= deadBefore { return nil }
        return header.tagsEnd == .max ? end(header) : nil
    }

    @inline(__always)
    private func end(_ header: RecordHeader, _ deadline: Int64) -> Int64 {
        header.tagsEnd == .min ? .min : deadline.addingClamped(header.grace ?? grace)
    }

    /// Returns when the entry expires, in milliseconds since 1970; nil for never.
    package func deadline(_ header: RecordHeader) -> Int64? {
        if header.tagsEnd != .max { return min(header.tagsEnd, ownDeadline(header) ?? .max) }
        return ownDeadline(header)
    }

    /// Like ``deadline(_:)``, but ignores purges of the entry's tags.
    @inline(__always)
    private func ownDeadline(_ header: RecordHeader) -> Int64? {
        switch header.rule {
        case .own(let deadline): return deadline
        case .ownNever: return nil
        case .governed:
            if header.storedAt <= deadBefore { return min(deadBefore, header.storedAt) }
            guard let interval = policy.intervalMilliseconds else { return nil }
            return header.storedAt + interval
        }
    }

    /// Returns the rule to store for an entry that requests `rule`: if the database has a jitter, a governed entry gets
    /// a deadline of its own, shortened at random.
    func stored(_ rule: DeadlineRule, now: Int64) -> DeadlineRule {
        guard jitter > 0, rule == .governed else { return rule }
        return settings.rule(nil, jitter: nil, now: now)
    }

    /// Returns rules with other settings and the same purges.
    func with(_ settings: DatabasePolicy, deadBefore: Int64 = 0) -> FreshnessRules {
        var rules = FreshnessRules(settings, deadBefore: deadBefore)
        rules.purges = purges
        return rules
    }

    /// Returns the rules after a change of the policy at `now`. Entries that had expired under the old policy stay
    /// expired.
    package func changed(to newPolicy: DatabasePolicy, now: Int64) -> FreshnessRules {
        guard let interval = policy.intervalMilliseconds, newPolicy.policy != policy else {
            return with(newPolicy, deadBefore: deadBefore)
        }
        return with(newPolicy, deadBefore: max(deadBefore, now - interval))
    }

    /// Returns the header of an entry as it is reported to another larder. A soft purge of a tag, or a temporarily
    /// shorter policy, may have ended the entry's life early. The other larder does not know that, so the early end
    /// becomes the entry's own deadline.
    package func leaving(_ header: RecordHeader) -> RecordHeader {
        let isDead = header.rule == .governed && header.storedAt <= deadBefore
        guard isDead || header.tagsEnd != .max, let deadline = deadline(header) else { return header }
        var header = header
        header.rule = .own(max(0, deadline))
        return header
    }

    /// Returns the header with which this database stores an entry from another larder, database or key. The header
    /// prevents the database's ``deadBefore`` from expiring the entry immediately.
    ///
    /// A header with an own deadline, or with a storage time after ``deadBefore``, is returned unchanged. For any other
    /// header, the deadline by this policy becomes the entry's own deadline. If the policy has no interval, the storage
    /// time becomes the time just after ``deadBefore``: the entry stays governed, and a later policy can still expire
    /// it.
    package func taking(_ header: RecordHeader) -> RecordHeader {
        guard header.rule == .governed, header.storedAt <= deadBefore else { return header }
        var header = header
        if let interval = policy.intervalMilliseconds {
            header.rule = .own(header.storedAt + interval)
        } else {
            header.storedAt = deadBefore + 1
        }
        return header
    }

    package static func == (left: FreshnessRules, right: FreshnessRules) -> Bool {
        left.settings == right.settings && left.deadBefore == right.deadBefore && left.purges === right.purges
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(settings)
        hasher.combine(deadBefore)
    }
}

extension Int64 {
    /// Returns the sum, clamped to the maximum.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }

    /// Returns the difference, clamped to the range of the type.
    func subtractingClamped(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other > 0 ? .min : .max) : difference
    }
}

/// Decides which expired entries may be removed: those that are ``Freshness/gone``, stay gone even after a rollback or
/// a crash, and are not kept until their expiry is reported (``ExpiryHold``).
///
/// A change of the policy is applied before it is on the disk, and rolled back if it cannot be written. Entries that
/// expire because of the change are not served in the meantime, but must still exist after a rollback.
struct RemovalRules {
    private let applied: FreshnessRules
    /// The rules on the disk; nil if they equal the applied ones.
    private let durable: FreshnessRules?
    private let hold: ExpiryHold.State

    init(applied: FreshnessRules, durable: FreshnessRules, _ hold: ExpiryHold.State) {
        self.hold = hold
        self.applied = applied
        self.durable = applied == durable ? nil : durable
        purges = durable.purges
    }

    /// The purges of tags that are on the disk. Headers for ``isGone(_:now:)`` must be read with these purges.
    let purges: TagPurges?

    /// Whether an entry is gone under both the applied policy and the durable one, and may be removed.
    func isGone(_ header: RecordHeader, now: Int64) -> Bool {
        guard applied.freshness(header, now: now) == .gone, !hold.keeps(header) else { return false }
        return durable.map { $0.freshness(header, now: now) == .gone } ?? true
    }
}

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
        (self.policy, self.grace, self.jitter) = (policy, grace, jitter)
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
    ///     the system clock. Called only for these.
    ///   - previous: the rule of the fresh entry that is replaced; nil if there is none.
    package func rule(
        _ settings: DatabasePolicy, now: Int64, ahead: @autoclosure () -> Int64, previous: DeadlineRule?
    ) -> DeadlineRule {
        switch lifetime {
        case .governed: jitter == nil ? .governed : settings.rule(nil, jitter: jitter, now: now)
        case .keep: previous ?? .governed
        case .policy(let policy): settings.rule(policy, jitter: jitter ?? 0, now: now)
        case .until(let instant):
            .own(now + Jitter.shortened(instant + ahead() - now, by: jitter ?? 0))
        }
    }
}
