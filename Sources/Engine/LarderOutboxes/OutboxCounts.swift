import Synchronization

/// What became of writes that were to be brought. For INFO. Atomic.
package final class OutboxCounts: Sendable {
    package let delivered = Atomic<Int>(0)
    /// Attempts after the first.
    package let retried = Atomic<Int>(0)
    /// Attempts that the origin refused.
    package let refused = Atomic<Int>(0)
    /// Writes that were dropped because the origin has something newer.
    package let superseded = Atomic<Int>(0)
}
