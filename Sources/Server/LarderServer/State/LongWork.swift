import Synchronization

/// Long work of which there is one at a time, such as a backup: how far it has come, and how the last one ended.
/// Thread-safe: atomic.
final class LongWork: Sendable {
    /// Begins its fields in INFO.
    private let name: String
    private let underWay = Atomic<Bool>(false)
    private let doneBytes = Atomic<Int>(0)
    private let totalBytes = Atomic<Int>(0)
    private let last = Atomic<Int64>(0)
    private let hasFailed = Atomic<Bool>(false)

    init(_ name: String) { self.name = name }

    /// - Returns: false if there is one.
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

    /// - Parameter time: seconds since 1970, if it went well.
    func end(_ time: Int64?) {
        hasFailed.store(time == nil, ordering: .relaxed)
        if let time { last.store(time, ordering: .relaxed) }
        underWay.store(false, ordering: .relaxed)
    }

    /// For INFO.
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
