import LarderLevelDB
import LarderPlatform

/// The lifecycle of a database's files: one operation at a time opens, creates, exchanges, purges, salvages, deletes or
/// closes them. This class owns the lock for these operations, and the state that is kept between them.
///
/// Thread-safe.
final class DatabaseLife: Sendable {
    private struct State {
        var isSalvaging = false
        /// The epoch (number of the LevelDB) that needs a lost part of the journal; 0 if none does.
        var epochAheadOfJournal: UInt64 = 0
        var isAheadKnown = false
        var lastSalvage: SalvageSummary?
    }

    /// Held while the files are opened, created, purged or deleted. Taken before any shard lock.
    let openLock = Lock()
    private let state = Locked(State())

    /// Whether a salvage is under way. Changed with `openLock` held.
    var isSalvaging: Bool {
        get { state.withLock { $0.isSalvaging } }
        set { state.withLock { $0.isSalvaging = newValue } }
    }
    /// The epoch (number of the LevelDB) that needs a lost part of the journal; 0 if none does.
    var epochAheadOfJournal: UInt64 { state.withLock { $0.epochAheadOfJournal } }
    var needsMoreJournal: Bool { epochAheadOfJournal != 0 }
    /// The result of the last salvage since the larder was opened; nil if there was none.
    var lastSalvage: SalvageSummary? { state.withLock { $0.lastSalvage } }

    /// Checks whether LevelDB needs a lost part of the journal. If so, LevelDB may have only some of the entries of
    /// that part. Checks only once: the journal has everything that checkpoints of this process write.
    /// - Returns: the last commit unit that LevelDB needs; 0 if there is nothing to check.
    func checkJournal(_ store: EpochStore, _ files: DatabaseFiles, _ context: EngineContext) throws(LarderError)
        -> UInt64
    {
        let end = context.journalEnd
        guard !state.withLock({ $0.isAheadKnown }), end != .max || context.sequences.previous == nil else { return 0 }
        let value = try store.access("open") { (database) throws(LevelDBError) in
            try database.get(EpochMetadata.journalKey)
        }
        let needed = value.flatMap { $0.withUnsafeBytes { BigEndian.read($0, at: 0) } } ?? 0
        if context.sequences.isLossProven(needed: needed, end: end) {
            state.withLock { $0.epochAheadOfJournal = store.epoch }
            throw files.damaged(
                "LevelDB needs the journal up to sequence number \(needed), but the journal ends with \(end)")
        }
        state.withLock { $0.isAheadKnown = true }
        return needed
    }

    /// Records that the damaged files were set aside. If their check failed, the files that replace them are checked.
    func setAside() { state.withLock { $0.epochAheadOfJournal = 0 } }

    /// Records that the damaged files were salvaged. The files that replace them need no lost part of the journal.
    func salvaged(_ summary: SalvageSummary) {
        state.withLock { ($0.epochAheadOfJournal, $0.isAheadKnown, $0.lastSalvage) = (0, true, summary) }
    }
}

/// The result of salvaging a damaged database: unreadable parts, and possible losses.
package struct SalvageSummary: Sendable, CustomStringConvertible {
    /// When the salvage ended, in milliseconds since 1970.
    package var time: Int64 = 0
    /// The number of entries that were read and kept.
    package var entries = 0
    /// The number of unreadable parts of files, and their size in bytes as far as known.
    package var pieces = 0
    package var bytes = 0
    /// Ranges of keys that may have lost entries, as text for people. Lost keys are absent until they are written
    /// again.
    package var lost: [String] = []
    /// The number of ranges that may have lost entries; ``lost`` has the first ``rangesMax``.
    package var lostCount = 0
    /// Whether it is known which files were current. Otherwise files that may be obsolete are skipped and listed in
    /// ``lost``.
    package var isComplete = true
    /// Open questions about the result, as text for people; empty if there are none.
    package var doubts: [String] = []
    /// The place of the damaged files; nil if they could not be kept.
    package var place: String?
    /// The first damage that was found.
    package var damage = ""

    package static let rangesMax = 16

    package var description: String {
        let what =
            "\(counted(entries, "entry was", "entries were")) kept; \(counted(pieces, "piece")), "
            + "\(counted(bytes, "byte")) in total, could not be read"
        let keys =
            lostCount == 0
            ? doubts.isEmpty ? "no entry is lost" : "no range of keys is lost"
            : "entries may be lost under the keys " + lost.joined(separator: ", ")
                + (lostCount > lost.count ? " and " + counted(lostCount - lost.count, "more range") : "")
        let kept = place.map { "the damaged files are in \($0)" } ?? "the damaged files could not be kept"
        return ([what, keys] + doubts + [kept]).joined(separator: "; ")
    }
}
