/// Whether an entry may be returned.
package enum Freshness: Hashable, Sendable {
    case fresh
    case expired
}

/// What a database's policy means for its entries, at one moment.
package struct FreshnessRules: Hashable, Sendable {
    package var policy: UpdatePolicy
    /// Governed entries stored at or before this instant stay expired, whatever the policy is changed to.
    package var deadBefore: Int64

    package init(policy: UpdatePolicy, deadBefore: Int64 = 0) {
        self.policy = policy
        self.deadBefore = deadBefore
    }

    /// **The boundary rule, stated once**: an entry is expired if and only if `now >= deadline`.
    package func freshness(_ header: RecordHeader, now: Int64) -> Freshness {
        guard let deadline = deadline(header) else { return .fresh }
        return now >= deadline ? .expired : .fresh
    }

    /// The instant from which the entry is expired, in milliseconds since 1970; nil if it never expires.
    package func deadline(_ header: RecordHeader) -> Int64? {
        switch header.rule {
        case .own(let deadline): return deadline
        case .ownNever: return nil
        case .governed:
            if header.storedAt <= deadBefore { return min(deadBefore, header.storedAt) }
            guard let interval = policy.intervalMilliseconds else { return nil }
            return header.storedAt + interval
        }
    }

    /// The rules after a change of the policy at `now`. Entries that had expired under the old policy stay expired.
    package func changed(to newPolicy: UpdatePolicy, now: Int64) -> FreshnessRules {
        guard let interval = policy.intervalMilliseconds else {
            return FreshnessRules(policy: newPolicy, deadBefore: deadBefore)
        }
        return FreshnessRules(policy: newPolicy, deadBefore: max(deadBefore, now - interval))
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
