import LarderEngine
import Synchronization

/// The state of SAVE, BGSAVE and LASTSAVE. Thread-safe: all values are atomic.
final class Saves: Sendable {
    private let underWay = Atomic<Bool>(false)
    private let last: Atomic<Int64>
    private let hasFailed = Atomic<Bool>(false)
    /// The number of stores and removals before the last successful save began.
    private let changesAtLast = Atomic<Int>(0)
    private let log: Log

    init(now: Int64, log: Log) {
        last = Atomic(now / 1000)
        self.log = log
    }

    /// The time of the last successful save, or of the start if there was none, in seconds since 1970.
    var lastSeconds: Int64 { last.load(ordering: .relaxed) }
    var isUnderWay: Bool { underWay.load(ordering: .relaxed) }
    var status: String { hasFailed.load(ordering: .relaxed) ? "err" : "ok" }

    /// Marks a save as running.
    /// - Returns: false if another save is running.
    func begin() -> Bool { underWay.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged }

    func end() { underWay.store(false, ordering: .relaxed) }

    /// Writes all committed entries to the databases, and syncs the files. May block. If several saves in a row fail,
    /// only the first failure is logged.
    func save(_ engine: Engine) throws(LarderError) {
        let changes = Self.changes(engine)
        do throws(LarderError) {
            try engine.save()
        } catch {
            if !hasFailed.exchange(true, ordering: .relaxed) { log.error("a save failed: \(error)") }
            throw error
        }
        hasFailed.store(false, ordering: .relaxed)
        last.store(engine.now() / 1000, ordering: .relaxed)
        changesAtLast.store(changes, ordering: .relaxed)
    }

    /// The number of stores and removals since the last save, or since the start if there was none.
    func changesSince(_ engine: Engine) -> Int { max(0, Self.changes(engine) - changesAtLast.read()) }

    private static func changes(_ engine: Engine) -> Int {
        let statistics = engine.statistics
        return statistics.writes.read() + statistics.removals.read()
    }
}
