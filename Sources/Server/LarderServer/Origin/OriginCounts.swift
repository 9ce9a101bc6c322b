import LarderEngine
import Synchronization

/// The counters of a database's origin, for INFO. Atomic.
final class OriginCounts: Sendable {
    /// `asked`: keys requested from the origin. `joined`: keys for which a request was already running.
    let asked = Atomic<Int>(0)
    let joined = Atomic<Int>(0)
    /// Failed reads.
    let failed = Atomic<Int>(0)
    /// Stale entries served because the origin was not available.
    let stale = Atomic<Int>(0)
    /// `replicas`: replies of replicas that came before the primary's. `replicasServed`: how many of these replies were
    /// sent to clients.
    let replicas = Atomic<Int>(0)
    let replicasServed = Atomic<Int>(0)
    /// Write commands that the origin has executed, or that were queued in the outbox.
    let written = Atomic<Int>(0)
    /// `invalidated`: keys invalidated by the origin. `lost`: lost connections, after which no entry counts as current.
    let invalidated = Atomic<Int>(0)
    let lost = Atomic<Int>(0)
}
