import Synchronization

/// The state of CLIENT PAUSE. Until a given time, either all commands wait, or only writes.
///
/// Thread-safe. While a pause changes, a reader may see one old and one new value, because they are separate atomics.
final class ClientPause: Sendable {
    /// The end of the pause, in milliseconds of the monotonic clock.
    private let until = Atomic<Int64>(0)
    private let isForAll = Atomic<Bool>(false)

    /// Starts a pause, or changes the running one. As in Redis, a running pause is never shortened. If it holds all
    /// commands, it continues to hold all commands.
    /// - Returns: the end of the pause.
    func begin(until end: Int64, all: Bool, now: Int64) -> Int64 {
        let isUnderWay = isOn(now)
        let wasForAll = isForAll.load(ordering: .relaxed)
        isForAll.store(all || isUnderWay && wasForAll, ordering: .relaxed)
        let end = isUnderWay ? max(end, until.load(ordering: .relaxed)) : end
        until.store(end, ordering: .relaxed)
        return end
    }

    func end() { until.store(0, ordering: .relaxed) }

    func isOn(_ now: Int64) -> Bool { now < until.load(ordering: .relaxed) }

    /// Whether a command must wait for the end of the pause.
    func holds(isWrite: Bool, now: Int64) -> Bool { isOn(now) && (isWrite || isForAll.load(ordering: .relaxed)) }
}
