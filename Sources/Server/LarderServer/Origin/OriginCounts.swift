import LarderEngine
import Synchronization

/// The counters of a database's origin, for INFO. Atomic.
final class OriginCounts: Sendable {
    /// Keys requested from the origin, and keys for which a request in progress was joined.
    let asked = Atomic<Int>(0)
    let joined = Atomic<Int>(0)
    /// Failed reads.
    let failed = Atomic<Int>(0)
    /// Stale entries served because the origin was not available.
    let stale = Atomic<Int>(0)
    /// Replies of replicas received before the primary's, and the number of them that were served.
    let replicas = Atomic<Int>(0)
    let replicasServed = Atomic<Int>(0)
    /// Write commands that the origin has executed, or that are in the outbox.
    let written = Atomic<Int>(0)
    /// Keys invalidated by the origin, and the number of times that no entry was known to be current any more.
    let invalidated = Atomic<Int>(0)
    let lost = Atomic<Int>(0)
}
