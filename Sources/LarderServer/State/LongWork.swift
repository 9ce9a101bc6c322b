import Backup
import Synchronization

/// The backup under way, and the last one. Thread-safe: atomic.
final class Backups: Sendable {
    private let underWay = Atomic<Bool>(false)
    private let doneBytes = Atomic<Int>(0)
    private let totalBytes = Atomic<Int>(0)
    private let last = Atomic<Int64>(0)
    private let hasFailed = Atomic<Bool>(false)

    /// - Returns: false if there is one.
    func begin() -> Bool {
        guard underWay.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            return false
        }
        note(BackupProgress(totalBytes: 0))
        return true
    }

    func note(_ progress: BackupProgress) {
        doneBytes.store(progress.doneBytes, ordering: .relaxed)
        totalBytes.store(progress.totalBytes, ordering: .relaxed)
    }

    /// - Parameter time: seconds since 1970, if it was made.
    func end(_ time: Int64?) {
        hasFailed.store(time == nil, ordering: .relaxed)
        if let time { last.store(time, ordering: .relaxed) }
        underWay.store(false, ordering: .relaxed)
    }

    /// For INFO.
    var fields: [(String, String)] {
        let isUnderWay = underWay.load(ordering: .relaxed)
        return [
            ("backup_in_progress", isUnderWay ? "1" : "0"),
            ("backup_done_bytes", "\(isUnderWay ? doneBytes.load(ordering: .relaxed) : 0)"),
            ("backup_total_bytes", "\(isUnderWay ? totalBytes.load(ordering: .relaxed) : 0)"),
            ("backup_last_time", "\(last.load(ordering: .relaxed))"),
            ("backup_last_status", hasFailed.load(ordering: .relaxed) ? "err" : "ok"),
        ]
    }
}
