import LarderLevelDB

/// The marks that follow from a disk limit: when eviction begins and ends, and how large a checkpoint and a merge may
/// be. A value without state, so that the arithmetic can be tested alone.
///
/// ```
/// 0 ────────────── low ── high ────────── ceiling ── limit
///                  │      │               └ a checkpoint waits until its entries fit below
///                  │      └ eviction in the background begins
///                  └ and ends
/// ```
/// The marks apply to all files except the journal, whose size is at most twice ``checkpointBytes`` and one value,
/// because writers wait then, and except the tables that LevelDB is writing in a merge, which are at most
/// ``mergeBytes``. So all files together take at most ``peakBytes``.
package struct DiskMarks: Hashable, Sendable {
    /// The size of the journal that starts a checkpoint.
    package let checkpointBytes: Int
    package let low: Int
    package let high: Int
    package let ceiling: Int
    /// The size of the tables that one step of the eviction handles: smaller steps make merges costlier, larger ones
    /// take longer. An eighth of the limit, of which a step removes half; with much more, most tables were read and
    /// merged needlessly. At least the size that LevelDB merges anyway.
    package let rangeBytes: Int
    /// The most bytes of a merge. LevelDB's larger merges need free space below the limit.
    package let mergeBytes: Int
    /// The most bytes of all files: the limit, one checkpoint, and one merge. Values longer than a checkpoint are
    /// additional, once in the journal and once in LevelDB's memory.
    package var peakBytes: Int { ceiling + max(1 << 20, 2 * checkpointBytes) + mergeBytes }

    /// The smallest limit of a larder; a smaller one would not fit LevelDB's own files.
    package static let larderBytesMin = 16 << 20
    /// The smallest limit of a database.
    package static let databaseBytesMin = 4 << 20

    /// - Parameters:
    ///   - limit: in bytes; at least ``larderBytesMin``, or ``databaseBytesMin`` without a journal.
    ///   - asked: the size of the journal that starts a checkpoint without a limit.
    ///   - hasJournal: whether the journal counts towards the limit.
    package init(limit: Int, checkpointBytes asked: Int, hasJournal: Bool) {
        checkpointBytes = Self.checkpointBytes(asked, limit: limit)
        ceiling = limit - (hasJournal ? checkpointBytes : 0)
        high = ceiling - checkpointBytes - limit / 32
        low = high - limit / 32
        mergeBytes = Self.mergeBytes(limit: limit)
        rangeBytes = min(max(limit / 8, 8 << 20), 64 << 20)
    }

    /// The size of a table. LevelDB merges up to 25 of them, and more only if necessary.
    package static func tableBytes(limit: Int) -> Int { min(2 << 20, max(1 << 20, limit / 256)) }
    /// The size of LevelDB's write buffer, and so of each database's log. A smaller buffer merges each byte more often:
    /// a quarter of this makes a SET under a limit of 64 MiB cost half as much again.
    package static func writeBufferBytes(limit: Int) -> Int { max(256 << 10, limit / 32) }
    private static func mergeBytes(limit: Int) -> Int { min(limit, 26 * tableBytes(limit: limit)) }

    /// The space kept free on the file system, because LevelDB writes tables before it removes the merged ones: 12 MiB
    /// and a quarter of the rest, at most 96 MiB.
    package static func reserveBytes(of room: Int) -> Int {
        min(room / 2, (12 << 20) + max(0, room - (12 << 20)) / 4, 96 << 20)
    }

    /// The size of ``ReserveFile``: enough to reopen a LevelDB, which writes its log to a table.
    package static func heldReserveBytes(limit: Int) -> Int { min(6 << 20, max(1 << 20, limit / 16)) }

    /// At most a 32nd of the limit.
    package static func checkpointBytes(_ asked: Int, limit: Int) -> Int { min(asked, max(1 << 10, limit / 32)) }
}

/// The LevelDB sizes that are derived from a disk limit.
struct LevelDBSizes {
    private let maxFileBytes: Int
    private let writeBufferBytes: Int

    init(_ options: Options) {
        maxFileBytes = options.maxFileBytes
        writeBufferBytes = options.writeBufferBytes
    }

    /// Whether one of them is at most half, or at least twice, the other's.
    func differ(from other: LevelDBSizes) -> Bool {
        func differ(_ left: Int, _ right: Int) -> Bool { left >= 2 * right || right >= 2 * left }
        return differ(maxFileBytes, other.maxFileBytes) || differ(writeBufferBytes, other.writeBufferBytes)
    }
}
