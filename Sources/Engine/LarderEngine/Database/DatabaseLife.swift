import LarderLevelDB
import LarderPlatform

/// The lifecycle of a database's files: one operation at a time opens, creates, exchanges, purges, salvages, deletes or
/// closes them. This class owns the lock for these operations, and the state that is kept between them.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `openLock`, or by `summaryLock`, which is taken
/// last.
final class DatabaseLife: @unchecked Sendable {
    /// Held while the files are opened, created, purged or deleted. Taken before any shard lock.
    let openLock = Lock()
    // Guarded by `openLock`:
    /// Whether a salvage is under way.
    var isSalvaging = false
    /// The epoch (number of the LevelDB) that needs a lost part of the journal; 0 if none does.
    private(set) var epochAheadOfJournal: UInt64 = 0
    /// Whether ``epochAheadOfJournal`` is known.
    private var hasCheckedJournal = false

    private let summaryLock = Lock()
    /// Guarded by `summaryLock`, because it is read while a salvage runs.
    private var summary: SalvageSummary?

    var needsMoreJournal: Bool { epochAheadOfJournal != 0 }
    /// The result of the last salvage since the larder was opened; nil if there was none.
    var lastSalvage: SalvageSummary? { summaryLock.withLock { summary } }

    /// Checks whether LevelDB needs a lost part of the journal. If so, LevelDB may have only some of the entries of
    /// that part. Checks only once: the journal has everything that checkpoints of this process write.
    /// - Returns: the last commit unit that LevelDB needs; 0 if there is nothing to check.
    func checkJournal(_ store: EpochStore, _ files: DatabaseFiles, _ context: EngineContext) throws(LarderError)
        -> UInt64
    {
        let end = context.journalEnd
        guard !hasCheckedJournal, end != .max || context.sequences.origin == .unknown else { return 0 }
        let value = try store.access("open") { (database) throws(LevelDBError) in
            try database.get(EpochMetadata.journalKey)
        }
        let needed = value.flatMap { $0.withUnsafeBytes { BigEndian.read($0, at: 0) } } ?? 0
        if context.sequences.isLossProven(needed: needed, end: end) {
            epochAheadOfJournal = store.epoch
            throw files.damaged(
                "LevelDB needs the journal up to sequence number \(needed), but the journal ends with \(end)")
        }
        hasCheckedJournal = true
        return needed
    }

    /// Records that the damaged files were set aside. If their check failed, the files that replace them are checked.
    func setAside() { epochAheadOfJournal = 0 }

    /// Records that the damaged files were salvaged. The files that replace them need no lost part of the journal.
    func salvaged(_ summary: SalvageSummary) {
        (epochAheadOfJournal, hasCheckedJournal) = (0, true)
        summaryLock.withLock { self.summary = summary }
    }
}
