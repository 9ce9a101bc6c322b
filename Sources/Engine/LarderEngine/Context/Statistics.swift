import LarderPlatform
import Synchronization

/// Counters since the larder was opened. Thread-safe. Each counter is exact, but several counters cannot be read at one
/// instant.
package final class Statistics: Sendable {
    package let hits = Atomic<Int>(0)
    package let misses = Atomic<Int>(0)
    /// Misses of entries that still exist, but have expired (`missesExpired`) or have a purged tag (`missesPurged`).
    package let missesExpired = Atomic<Int>(0)
    package let missesPurged = Atomic<Int>(0)
    /// A lower bound of the misses of entries that were evicted for a disk limit.
    package let missesEvicted = Atomic<Int>(0)
    package let writes = Atomic<Int>(0)
    package let removals = Atomic<Int>(0)
    package let commitGroups = Atomic<Int>(0)
    package let commitUnits = Atomic<Int>(0)
    package let syncs = Atomic<Int>(0)
    package let commitFailures = Atomic<Int>(0)
    package let reopens = Atomic<Int>(0)
    package let expiredSwept = Atomic<Int>(0)
    /// Expired entries. An entry is counted when a read finds it expired in memory; otherwise when it is removed. An
    /// entry is counted twice only if it is evicted from memory between that read and its removal.
    package let expired = Atomic<Int>(0)
    package let expiryLag = ExpiryLag()
    package let indexSwept = Atomic<Int>(0)
    package let checkpoints = Atomic<Int>(0)
    package let journalRewrites = Atomic<Int>(0)
    package let compactions = Atomic<Int>(0)
    package let purges = Atomic<Int>(0)
    /// Entries evicted to keep a disk limit, and the bytes of their keys and records.
    package let evicted = Atomic<Int>(0)
    package let evictedBytes = Atomic<Int>(0)
    package let setAside = Atomic<Int>(0)
    /// Databases whose files were missing when the larder was opened.
    package let databasesMissing = Atomic<Int>(0)
    /// Damaged journals, whose acknowledged writes are lost.
    package let journalDamages = Atomic<Int>(0)
    /// Bytes at the end of the journal that the last process had not finished writing.
    package let journalCutBytes = Atomic<Int>(0)
    package let salvages = Atomic<Int>(0)
    /// Unreadable parts of files, and ranges of keys that may have lost entries.
    package let salvagedPieces = Atomic<Int>(0)
    package let salvagedRanges = Atomic<Int>(0)
    /// The number of salvages with open questions: see ``SalvageSummary/doubts``.
    package let salvagesInDoubt = Atomic<Int>(0)
    /// Detected losses of facts (tag purges, functions, origins) in the ledger or in files of earlier versions.
    package let factLosses = Atomic<Int>(0)

    /// Queries, also failed ones; those that used no index; and the entries that both have examined.
    package let queries = Atomic<Int>(0)
    package let queryScans = Atomic<Int>(0)
    package let queryExamined = Atomic<Int>(0)

    /// Full resyncs that followers did not request, but need: the changes after the follower's position are unknown.
    package let feedFallbacks = Atomic<Int>(0)

    init() {}

    /// Resets the counters of reads, expired entries and evicted entries.
    package func resetReads() {
        hits.store(0, ordering: .relaxed)
        misses.store(0, ordering: .relaxed)
        missesExpired.store(0, ordering: .relaxed)
        missesPurged.store(0, ordering: .relaxed)
        missesEvicted.store(0, ordering: .relaxed)
        expired.store(0, ordering: .relaxed)
        evicted.store(0, ordering: .relaxed)
        evictedBytes.store(0, ordering: .relaxed)
    }
}

extension Atomic where Value == Int {
    /// Adds with relaxed memory ordering.
    @inlinable package borrowing func add(_ amount: Int = 1) { _ = wrappingAdd(amount, ordering: .relaxed) }
    @inlinable package borrowing func read() -> Int { load(ordering: .relaxed) }
}

/// The delay in freeing the space of expired entries: from their expiry to their removal from memory and files. Entries
/// that were removed for another reason, such as a purge of their tag, are not counted.
///
/// Thread-safe.
package final class ExpiryLag: Sendable {
    package struct Sums: Equatable, Sendable {
        package var entries = 0
        package var milliseconds: Int64 = 0
        package var mostMilliseconds: Int64 = 0
        /// A histogram: the element at index n is the number of delays whose milliseconds have n binary digits.
        fileprivate var byDigits = [Int](repeating: 0, count: 65)

        package var averageMilliseconds: Int64 { entries > 0 ? milliseconds / Int64(entries) : 0 }

        /// Returns a percentile of the delays, in milliseconds; a share of 0.99 means the 99th percentile. The result
        /// is an upper bound, at most twice the exact value.
        package func milliseconds(ofShare share: Double) -> Int64 {
            var left = Int((Double(entries) * share).rounded(.up))
            for (digits, count) in byDigits.enumerated() where count > 0 {
                left -= count
                if left <= 0 { return min(mostMilliseconds, digits >= 63 ? .max : Int64(1) << digits - 1) }
            }
            return mostMilliseconds
        }
    }

    private let all = Locked(Sums())

    package var sums: Sums { all.withLock { $0 } }

    /// Counts the removal of an entry, with the delay since its expiry.
    /// - Parameter end: when the entry expired; nil to count nothing.
    func note(end: Int64?, now: Int64) {
        guard let end else { return }
        let (span, isTooLong) = now.subtractingReportingOverflow(end)
        let lag = isTooLong ? .max : max(0, span)
        all.withLock { all in
            all.entries += 1
            all.milliseconds = all.milliseconds.addingClamped(lag)
            all.mostMilliseconds = max(all.mostMilliseconds, lag)
            all.byDigits[64 - lag.leadingZeroBitCount] += 1
        }
    }
}
