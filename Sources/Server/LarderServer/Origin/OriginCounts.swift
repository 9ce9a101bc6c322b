import LarderEngine
import Synchronization

/// What a database has asked its origin. For INFO. Atomic.
final class OriginCounts: Sendable {
    /// Keys that were asked for, and those for which somebody else's answer was waited for.
    let asked = Atomic<Int>(0)
    let joined = Atomic<Int>(0)
    /// Questions without an answer.
    let failed = Atomic<Int>(0)
    /// Stale entries that were served because the origin could not be asked.
    let stale = Atomic<Int>(0)
    /// What replicas said while the origin did not answer, and how often that was served.
    let replicas = Atomic<Int>(0)
    let replicasServed = Atomic<Int>(0)
    /// Writes that the origin has done, or that are kept for it: commands.
    let written = Atomic<Int>(0)
    /// Keys that the origin said had changed, and how often nothing that was known could be believed any more.
    let invalidated = Atomic<Int>(0)
    let lost = Atomic<Int>(0)
}
