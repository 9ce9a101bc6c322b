import Synchronization

/// Which expired entries must stay for now, because clients are still to be notified of their expiry. Thread-safe.
final class ExpiryHold: Sendable {
    /// A copy of the state at one instant.
    struct State {
        /// Whether all entries stay.
        let isPaused: Bool
        /// Entries with a deadline of their own at or after this time stay.
        let unreportedFrom: Int64

        /// An entry with a purged tag is not kept, because it did not expire.
        func keeps(_ header: RecordHeader) -> Bool {
            guard header.tagsEnd == .max else { return false }
            if case .own(let deadline) = header.rule, deadline >= unreportedFrom { return true }
            return isPaused
        }
    }

    private let time: EngineTime
    private let pausedUntil = Atomic<Int64>(0)
    private let unreportedFrom = Atomic<Int64>(.max)

    init(_ time: EngineTime) { self.time = time }

    /// Whether expired entries are neither removed nor reported.
    var isPaused: Bool { time.monotonic() < pausedUntil.load(ordering: .relaxed) }

    /// - Parameter end: an instant of the monotonic clock in milliseconds.
    func pause(until end: Int64) { pausedUntil.store(end, ordering: .relaxed) }

    /// Keeps the entries whose own deadline is at or after `time`, in milliseconds since 1970; `max` for none.
    func keep(from time: Int64) { unreportedFrom.store(time, ordering: .releasing) }

    var state: State { State(isPaused: isPaused, unreportedFrom: unreportedFrom.load(ordering: .acquiring)) }
}
