/// What follows from a limit of bytes on the disk: when eviction begins and ends, and how large a checkpoint and a merge may
/// be. A value without state, so that the arithmetic can be tested alone.
///
/// ```
/// 0 ────────────── low ── high ────────── ceiling ── limit
///                  │      │               └ a checkpoint waits until what it adds fits below
///                  │      └ eviction in the background begins
///                  └ and ends
/// ```
/// The marks are for all files but the journal, which takes ``checkpointBytes`` twice and one value at most, because writers
/// wait then; and but for the tables that LevelDB is writing in a merge, which are at most ``mergeBytes``. So all files take
/// at most ``peakBytes``.
package struct DiskMarks: Hashable, Sendable {
    /// The size of the journal that starts a checkpoint.
    package let checkpointBytes: Int
    package let low: Int
    package let high: Int
    package let ceiling: Int
    /// How much of the tables one step of the eviction handles: less makes merging tables costlier, more takes longer. An
    /// eighth of the limit, of which a step removes half: where it was much more, most was read and merged in vain. But not
    /// less than LevelDB merges anyway.
    package let rangeBytes: Int
    /// The most bytes of a merge. What LevelDB could merge beyond that is kept free below the limit.
    package let mergeBytes: Int
    /// The most bytes of all files: the limit, one checkpoint, and one merge. Values that are longer than a checkpoint count
    /// in addition, once in the journal and once in LevelDB's memory.
    package var peakBytes: Int { ceiling + max(1 << 20, 2 * checkpointBytes) + mergeBytes }

    /// A larder of less has no room for LevelDB's own files beside entries.
    package static let larderBytesMin = 16 << 20
    /// A database of less has none.
    package static let databaseBytesMin = 4 << 20

    /// - Parameters:
    ///   - limit: in bytes; at least ``larderBytesMin``, or ``databaseBytesMin`` without a journal.
    ///   - asked: the size of the journal that starts a checkpoint without a limit.
    ///   - hasJournal: whether the journal counts against the limit.
    package init(limit: Int, checkpointBytes asked: Int, hasJournal: Bool) {
        checkpointBytes = Self.checkpointBytes(asked, limit: limit)
        ceiling = limit - (hasJournal ? checkpointBytes : 0)
        high = ceiling - checkpointBytes - limit / 32
        low = high - limit / 32
        mergeBytes = Self.mergeBytes(limit: limit)
        rangeBytes = min(max(limit / 8, 8 << 20), 64 << 20)
    }

    /// The size of a table: LevelDB merges up to 25 of them, and more only if it has to.
    package static func tableBytes(limit: Int) -> Int { min(2 << 20, max(1 << 20, limit / 256)) }
    /// What LevelDB collects in memory. Each database's log takes so much; with less, each byte is merged more often: a quarter
    /// of it makes a SET under a limit of 64 MiB cost half as much again.
    package static func writeBufferBytes(limit: Int) -> Int { max(256 << 10, limit / 32) }
    private static func mergeBytes(limit: Int) -> Int { min(limit, 26 * tableBytes(limit: limit)) }

    /// What is left free of the room that a file system has for a larder, for what LevelDB writes before it removes what
    /// it has merged: 12 MiB and a quarter of the rest, at most 96 MiB.
    package static func reserveBytes(of room: Int) -> Int {
        min(room / 2, (12 << 20) + max(0, room - (12 << 20)) / 4, 96 << 20)
    }

    /// What ``ReserveFile`` holds: enough to open a LevelDB again, which puts its log into a table.
    package static func heldReserveBytes(limit: Int) -> Int { min(6 << 20, max(1 << 20, limit / 16)) }

    /// A 32nd of the limit at most.
    package static func checkpointBytes(_ asked: Int, limit: Int) -> Int { min(asked, max(1 << 10, limit / 32)) }
}
