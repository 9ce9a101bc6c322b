import Threading

/// What is told of a database's last salvage.
///
/// Thread-safe. The proof for `@unchecked Sendable`: read and written with the lock held.
final class SalvageStatus: @unchecked Sendable {
    private let lock = Lock()
    private var summary: SalvageSummary?
    private var isUnderWayValue = false

    /// The last one that was through since the larder was opened.
    var last: SalvageSummary? {
        get { lock.withLock { summary } }
        set { lock.withLock { summary = newValue } }
    }

    /// Whether one is under way. Set with the database's `openLock` held.
    var isUnderWay: Bool {
        get { lock.withLock { isUnderWayValue } }
        set { lock.withLock { isUnderWayValue = newValue } }
    }
}
