import Synchronization

/// Counters since the larder was opened. Thread-safe; each is exact, but they are not all of the same instant.
package final class Statistics: Sendable {
    package let hits = Atomic<Int>(0)
    package let misses = Atomic<Int>(0)
    /// Of these, how many met an entry that had expired, or whose tag was purged, and was not removed yet.
    package let missesExpired = Atomic<Int>(0)
    package let missesPurged = Atomic<Int>(0)
    /// ... and how many would have found an entry that was evicted for a limit of the disk: at least.
    package let missesEvicted = Atomic<Int>(0)
    package let writes = Atomic<Int>(0)
    package let removals = Atomic<Int>(0)
    package let commitGroups = Atomic<Int>(0)
    package let commitUnits = Atomic<Int>(0)
    package let syncs = Atomic<Int>(0)
    package let commitFailures = Atomic<Int>(0)
    package let reopens = Atomic<Int>(0)
    package let expiredSwept = Atomic<Int>(0)
    /// Entries that were found expired: by a read that found them in memory, or else when they were removed. Each
    /// counts once, unless memory ran short between a read and the removal.
    package let expired = Atomic<Int>(0)
    package let expiryLag = ExpiryLag()
    package let indexSwept = Atomic<Int>(0)
    package let checkpoints = Atomic<Int>(0)
    package let journalRewrites = Atomic<Int>(0)
    package let compactions = Atomic<Int>(0)
    package let purges = Atomic<Int>(0)
    /// Entries that were removed to keep a limit of the disk, and the bytes of their keys and records.
    package let evicted = Atomic<Int>(0)
    package let evictedBytes = Atomic<Int>(0)
    package let setAside = Atomic<Int>(0)
    /// Journals that were found damaged, so that acknowledged writes are lost.
    package let journalDamages = Atomic<Int>(0)
    /// Bytes at the end of the journal that the last process had not finished writing.
    package let journalCutBytes = Atomic<Int>(0)
    package let salvages = Atomic<Int>(0)
    /// Parts of files that could not be read, and ranges of keys that may have lost entries.
    package let salvagedPieces = Atomic<Int>(0)
    package let salvagedRanges = Atomic<Int>(0)
    /// Salvages that had to leave something unknown.
    package let salvagesInDoubt = Atomic<Int>(0)
    /// How often facts of the ledger, or of a file that it takes over, were found to be lost.
    package let factLosses = Atomic<Int>(0)

    /// Followers that began a full pass without asking for one: the changes behind their position are not known.
    package let feedFallbacks = Atomic<Int>(0)

    init() {}

}

extension Atomic where Value == Int {
    /// Adds without any memory ordering.
    package borrowing func add(_ amount: Int = 1) { _ = wrappingAdd(amount, ordering: .relaxed) }
    package borrowing func read() -> Int { load(ordering: .relaxed) }
}
