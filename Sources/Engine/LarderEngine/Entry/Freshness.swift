/// The states in an entry's life.
package enum Freshness: Hashable, Sendable {
    /// Before its deadline: every read returns it.
    case fresh
    /// From its deadline until its grace is over: only those who ask for it get it.
    case stale
    /// Afterwards: nobody gets it, and its space may be reclaimed.
    case gone
}

/// What a database's policy means for its entries, at one moment.
package struct FreshnessRules: Hashable, Sendable {
    package var policy: UpdatePolicy
    /// Governed entries stored at or before this instant stay expired, whatever the policy is changed to.
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

    package var settings: DatabasePolicy { DatabasePolicy(policy, grace: grace, jitter: jitter) }

    /// **The boundary rule, stated once**: an entry is expired if and only if `now >= deadline`. Then it is stale while
    /// `now < deadline + grace`, and gone from there on. What a purge of a tag has ended is expired at every instant: who
    /// reads may have looked at the clock before the purge, and the entry may have ended by an earlier one.
    package func freshness(_ header: RecordHeader, now: Int64) -> Freshness {
        guard let deadline = deadline(header), now >= deadline || header.tagsEnd != .max else { return .fresh }
        return now < end(header, deadline) ? .stale : .gone
    }

    /// The instant from which the entry is gone, in milliseconds since 1970; nil for never.
    func end(_ header: RecordHeader) -> Int64? { deadline(header).map { end(header, $0) } }

    /// ``end(_:)`` of an entry that is gone because its time was over; nil if it is for a purge of a tag, or for a policy
    /// that came later.
    func endOfLife(_ header: RecordHeader) -> Int64? {
        if case .governed = header.rule, header.storedAt <= deadBefore { return nil }
        return header.tagsEnd == .max ? end(header) : nil
    }

    @inline(__always)
    private func end(_ header: RecordHeader, _ deadline: Int64) -> Int64 {
        header.tagsEnd == .min ? .min : deadline.addingClamped(header.grace ?? grace)
    }

    /// The instant from which the entry is expired, in milliseconds since 1970; nil if it never expires.
    package func deadline(_ header: RecordHeader) -> Int64? {
        if header.tagsEnd != .max { return min(header.tagsEnd, ownDeadline(header) ?? .max) }
        return ownDeadline(header)
    }

    /// ``deadline(_:)`` apart from the entry's tags.
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

    /// The rule with which an entry is stored that asks for `rule`: a governed one gets a deadline of its own where the
    /// database's jitter shortens lives.
    func stored(_ rule: DeadlineRule, now: Int64) -> DeadlineRule {
        guard jitter > 0, rule == .governed else { return rule }
        return settings.rule(nil, jitter: nil, now: now)
    }

    /// The same purges under other rules.
    func with(_ settings: DatabasePolicy, deadBefore: Int64 = 0) -> FreshnessRules {
        var rules = FreshnessRules(settings, deadBefore: deadBefore)
        rules.purges = purges
        return rules
    }

    /// The rules after a change of the policy at `now`. Entries that had expired under the old policy stay expired.
    package func changed(to newPolicy: DatabasePolicy, now: Int64) -> FreshnessRules {
        guard let interval = policy.intervalMilliseconds, newPolicy.policy != policy else {
            return with(newPolicy, deadBefore: deadBefore)
        }
        return with(newPolicy, deadBefore: max(deadBefore, now - interval))
    }

    /// The header of an entry as another larder is told of it, which knows nothing of what has ended this entry's life
    /// early: a soft purge of a tag, or a policy that was shorter for a while. That end becomes a deadline of its own.
    package func leaving(_ header: RecordHeader) -> RecordHeader {
        let isDead = header.rule == .governed && header.storedAt <= deadBefore
        guard isDead || header.tagsEnd != .max, let deadline = deadline(header) else { return header }
        var header = header
        header.rule = .own(max(0, deadline))
        return header
    }

    /// The header of an entry that comes from another database, where it is fresh. Only its age may make it expire
    /// here: that governed entries of *this* database had expired before an instant says nothing about it.
    ///
    /// An entry that was stored after that instant keeps its header. An earlier one gets the deadline that this policy
    /// gives it as its own. If the policy has no deadline, the entry stays governed, as if it was stored right after
    /// the instant, so that a later policy still lets it expire.
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
}

extension Int64 {
    /// The sum, or the greatest number if it is greater.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }

    /// The difference, or the number next to it that there is.
    func subtractingClamped(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other > 0 ? .min : .max) : difference
    }
}

extension FreshnessRules {
    package static func == (left: FreshnessRules, right: FreshnessRules) -> Bool {
        left.settings == right.settings && left.deadBefore == right.deadBefore && left.purges === right.purges
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(settings)
        hasher.combine(deadBefore)
    }
}
