import Synchronization

/// The progress and the last result of one kind of long work, such as a backup or a save. Such work never runs twice at
/// the same time. Thread-safe: all values are atomic.
final class LongWork: Sendable {
    /// The prefix of the names of the work's fields in INFO.
    private let name: String
    private let underWay = Atomic<Bool>(false)
    private let doneBytes = Atomic<Int>(0)
    private let totalBytes = Atomic<Int>(0)
    private let last: Atomic<Int64>
    private let hasFailed = Atomic<Bool>(false)

    /// - Parameter last: see ``lastSeconds``.
    init(_ name: String, last: Int64 = 0) {
        self.name = name
        self.last = Atomic(last)
    }

    /// The time of the last success, in seconds since 1970.
    var lastSeconds: Int64 { last.load(ordering: .relaxed) }
    var isUnderWay: Bool { underWay.load(ordering: .relaxed) }
    var status: String { hasFailed.load(ordering: .relaxed) ? "err" : "ok" }

    /// Marks the work as running.
    /// - Returns: false if it is running already.
    func begin() -> Bool {
        guard underWay.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            return false
        }
        note(done: 0, total: 0)
        return true
    }

    func note(done: Int, total: Int) {
        doneBytes.store(done, ordering: .relaxed)
        totalBytes.store(total, ordering: .relaxed)
    }

    /// Records the result of the work.
    /// - Parameter time: the current time, in seconds since 1970; nil if the work has failed.
    /// - Returns: whether the previous work had failed.
    func note(end time: Int64?) -> Bool {
        if let time { last.store(time, ordering: .relaxed) }
        return hasFailed.exchange(time == nil, ordering: .relaxed)
    }

    /// Marks the work as ended.
    func finish() { underWay.store(false, ordering: .relaxed) }

    func end(_ time: Int64?) {
        _ = note(end: time)
        finish()
    }

    /// The fields that INFO shows.
    var fields: [(String, any CustomStringConvertible & Sendable)] {
        let isUnderWay = isUnderWay
        return [
            ("\(name)_in_progress", isUnderWay ? 1 : 0),
            ("\(name)_done_bytes", isUnderWay ? doneBytes.load(ordering: .relaxed) : 0),
            ("\(name)_total_bytes", isUnderWay ? totalBytes.load(ordering: .relaxed) : 0),
            ("\(name)_last_time", lastSeconds), ("\(name)_last_status", status),
        ]
    }
}
