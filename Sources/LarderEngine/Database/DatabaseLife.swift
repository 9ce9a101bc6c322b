import LevelDB
import Platform

/// One thing at a time is done with a database's files: they are opened, created, exchanged, purged, salvaged, deleted or
/// closed. This owns the lock that is held meanwhile, and what is remembered from one such step to the next.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is guarded by `openLock`, or by `summaryLock`, which is
/// taken last.
final class DatabaseLife: @unchecked Sendable {
    /// Taken by what opens, creates, purges or deletes; before any shard lock, never under one.
    let openLock = Lock()
    // Guarded by `openLock`:
    /// Whether a salvage is under way.
    var isSalvaging = false
    /// The epoch that needs a part of the journal that is lost; 0 when none does.
    private(set) var epochAheadOfJournal: UInt64 = 0
    /// Whether that is settled.
    private var hasCheckedJournal = false

    private let summaryLock = Lock()
    /// Guarded by `summaryLock`, because it is asked for while a salvage takes long.
    private var summary: SalvageSummary?

    var needsMoreJournal: Bool { epochAheadOfJournal != 0 }
    /// What became of the last damage since the larder was opened.
    var lastSalvage: SalvageSummary? { summaryLock.withLock { summary } }

    /// Where the journal's end was lost, LevelDB may have a part of what stood there. Looked at once: what checkpoints of
    /// this process note, the journal has.
    /// - Returns: the last commit unit that LevelDB needs; 0 where nobody has to look.
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
            throw files.damaged("it needs the journal up to \(needed), which is lost behind \(end)")
        }
        hasCheckedJournal = true
        return needed
    }

    /// The damaged files were set aside: the next ones are looked at.
    func setAside() { epochAheadOfJournal = 0 }

    /// The damaged files were salvaged: what goes on needs nothing that is lost.
    func salvaged(_ summary: SalvageSummary) {
        (epochAheadOfJournal, hasCheckedJournal) = (0, true)
        summaryLock.withLock { self.summary = summary }
    }
}
