import Synchronization

/// The counters of deliveries, for INFO. Atomic.
package final class OutboxCounts: Sendable {
    package let delivered = Atomic<Int>(0)
    /// Delivery attempts after the first.
    package let retried = Atomic<Int>(0)
    /// Delivery attempts that the origin refused.
    package let refused = Atomic<Int>(0)
    /// Writes dropped because the origin has a newer value.
    package let superseded = Atomic<Int>(0)
}
