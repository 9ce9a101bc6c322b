/// Which entries may be removed without a request: those that are permanently gone.
///
/// A change of the policy is applied before it is on the disk, and rolled back if it does not get there. Entries that
/// it ends are not served in the meantime, and must still exist after a rollback.
struct RemovalRules {
    private let applied: FreshnessRules
    /// Nil if both are equal.
    private let durable: FreshnessRules?

    init(applied: FreshnessRules, durable: FreshnessRules) {
        self.applied = applied
        self.durable = applied == durable ? nil : durable
        purges = durable.purges
    }

    /// The purges of tags that are on the disk. Headers must be read with these.
    let purges: TagPurges?

    /// Whether an entry is gone under both the applied policy and the durable one.
    func isGone(_ header: RecordHeader, now: Int64) -> Bool {
        guard applied.freshness(header, now: now) == .gone else { return false }
        return durable.map { $0.freshness(header, now: now) == .gone } ?? true
    }
}
