/// Decides which expired entries may be removed: those that have ended (``Freshness/gone``) even after a rollback or a
/// crash.
///
/// A change of the policy is applied before it is on the disk, and rolled back if it cannot be written. Entries that
/// expire because of the change are not served in the meantime, but must still exist after a rollback.
struct RemovalRules {
    private let applied: FreshnessRules
    /// The rules on the disk; nil if they equal the applied ones.
    private let durable: FreshnessRules?

    init(applied: FreshnessRules, durable: FreshnessRules) {
        self.applied = applied
        self.durable = applied == durable ? nil : durable
        purges = durable.purges
    }

    /// The purges of tags that are on the disk. Headers for ``isGone(_:now:)`` must be read with these purges.
    let purges: TagPurges?

    /// Whether an entry is gone under both the applied policy and the durable one.
    func isGone(_ header: RecordHeader, now: Int64) -> Bool {
        guard applied.freshness(header, now: now) == .gone else { return false }
        return durable.map { $0.freshness(header, now: now) == .gone } ?? true
    }
}
