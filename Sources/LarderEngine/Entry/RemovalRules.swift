/// Which entries may be removed without anybody asking for it: those that are expired for good.
///
/// A change of the policy is applied before it is on the disk, and is rolled back if it does not get there. What it lets expire
/// is not served meanwhile, and has to be there afterwards.
struct RemovalRules {
    private let applied: FreshnessRules
    /// nil when they are the same.
    private let durable: FreshnessRules?

    init(applied: FreshnessRules, durable: FreshnessRules) {
        self.applied = applied
        self.durable = applied == durable ? nil : durable
    }

    /// Whether an entry is expired under the policy as applied and as on the disk.
    func isExpired(_ header: RecordHeader, now: Int64) -> Bool {
        guard applied.freshness(header, now: now) == .expired else { return false }
        return durable.map { $0.freshness(header, now: now) == .expired } ?? true
    }
}
