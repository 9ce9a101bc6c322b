import Synchronization

/// The counters of deliveries, for the command INFO. Thread-safe.
package final class OutboxCounts: Sendable {
    package let delivered = Atomic<Int>(0)
    /// The number of delivery attempts that were not the first one of their write.
    package let retried = Atomic<Int>(0)
    /// The number of delivery attempts that the origin rejected, and of entries that cannot be delivered.
    package let refused = Atomic<Int>(0)
    /// The number of writes that were dropped because the origin has a newer value.
    package let superseded = Atomic<Int>(0)
}
