import Synchronization

/// The progress and the last result of one kind of long work, such as a backup. Such work never runs twice at the same
/// time. Thread-safe: all values are atomic.
final class LongWork: Sendable {
    /// The prefix of the names of the work's fields in INFO.
    private let name: String
    private let underWay = Atomic<Bool>(false)
    private let doneBytes = Atomic<Int>(0)
    private let totalBytes = Atomic<Int>(0)
    private let last = Atomic<Int64>(0)
    private let hasFailed = Atomic<Bool>(false)

    init(_ name: String) { self.name = name }

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

    /// Marks the work as ended.
    /// - Parameter time: the current time, in seconds since 1970; nil if the work has failed.
    func end(_ time: Int64?) {
        hasFailed.store(time == nil, ordering: .relaxed)
        if let time { last.store(time, ordering: .relaxed) }
        underWay.store(false, ordering: .relaxed)
    }

    /// The fields that INFO shows.
    var fields: [(String, String)] {
        let isUnderWay = underWay.load(ordering: .relaxed)
        return [
            ("\(name)_in_progress", isUnderWay ? "1" : "0"),
            ("\(name)_done_bytes", "\(isUnderWay ? doneBytes.load(ordering: .relaxed) : 0)"),
            ("\(name)_total_bytes", "\(isUnderWay ? totalBytes.load(ordering: .relaxed) : 0)"),
            ("\(name)_last_time", "\(last.load(ordering: .relaxed))"),
            ("\(name)_last_status", hasFailed.load(ordering: .relaxed) ? "err" : "ok"),
        ]
    }
}
