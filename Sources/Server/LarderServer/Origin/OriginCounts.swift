import LarderEngine
import Synchronization

/// The counters of a database's origin, for INFO. Atomic.
final class OriginCounts: Sendable {
    /// Keys requested from the origin; and keys for which no request was sent, because one was running already.
    let asked = Atomic<Int>(0)
    let joined = Atomic<Int>(0)
    /// Failed reads.
    let failed = Atomic<Int>(0)
    /// Stale entries served because the origin was not available.
    let stale = Atomic<Int>(0)
    /// Replies that replicas sent before the primary replied, and how many of them were served to clients.
    let replicas = Atomic<Int>(0)
    let replicasServed = Atomic<Int>(0)
    /// Write commands that the origin has executed, or that were queued in the outbox.
    let written = Atomic<Int>(0)
    /// Keys invalidated by the origin; and how many times a lost connection made all cached entries unconfirmed.
    let invalidated = Atomic<Int>(0)
    let lost = Atomic<Int>(0)
}
