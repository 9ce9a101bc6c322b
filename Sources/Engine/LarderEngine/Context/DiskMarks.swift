import LarderLevelDB

/// The thresholds that follow from a disk limit: the usage at which eviction starts and stops, and the largest sizes of
/// a checkpoint and of a merge. This type is only arithmetic, so that the thresholds can be tested alone.
///
/// ```
/// 0 ────────────── low ── high ────────── ceiling ── limit
///                  │      │               └ a checkpoint waits until its entries fit below
///                  │      └ background eviction starts
///                  └ background eviction stops
/// ```
/// The thresholds apply to all files except the journal and the tables that LevelDB is writing in a merge. Writers
/// block when the journal reaches twice ``checkpointBytes``, so it takes at most that plus one value. The tables of a
/// merge take at most ``mergeBytes``. So all files together take at most ``peakBytes``.
package struct DiskThresholds: Hashable, Sendable {
    /// The size of the journal at which a checkpoint starts.
    package let checkpointBytes: Int
    package let low: Int
    package let high: Int
    package let ceiling: Int
    /// The bytes of tables that one eviction step reads and merges: an eighth of the limit. A step removes about half
    /// of them. Smaller steps merge more bytes per removed byte; larger steps take longer, and also merge tables with
    /// little to remove. At least 8 MiB, because LevelDB merges that much in one step anyway, and at most 64 MiB.
    package let rangeBytes: Int
    /// The maximum number of bytes by which a merge may exceed the limit. For a merge that needs more, the additional
    /// space is kept free below the limit.
    package let mergeBytes: Int
    /// The maximum number of bytes of all files: the limit, one checkpoint, and one merge. A value longer than a
    /// checkpoint adds its length twice: in the journal and in LevelDB's log.
    package var peakBytes: Int { ceiling + max(1 << 20, 2 * checkpointBytes) + mergeBytes }

    /// The smallest limit of a larder; a smaller one would not fit LevelDB's own files.
    package static let larderBytesMin = 16 << 20
    /// The smallest limit of a database.
    package static let databaseBytesMin = 4 << 20

    /// - Parameters:
    ///   - limit: the disk limit in bytes; at least ``larderBytesMin``, or ``databaseBytesMin`` without a journal.
    ///   - asked: the size of the journal at which a checkpoint would start without a disk limit.
    ///   - hasJournal: whether the journal counts towards the limit.
    package init(limit: Int, checkpointBytes asked: Int, hasJournal: Bool) {
        checkpointBytes = Self.checkpointBytes(asked, limit: limit)
        ceiling = limit - (hasJournal ? checkpointBytes : 0)
        high = ceiling - checkpointBytes - limit / 32
        low = high - limit / 32
        mergeBytes = Self.mergeBytes(limit: limit)
        rangeBytes = min(max(limit / 8, 8 << 20), 64 << 20)
    }

    /// Returns the size of LevelDB's tables in bytes. It also limits merges, because LevelDB usually merges at most 25.
    package static func tableBytes(limit: Int) -> Int { min(2 << 20, max(1 << 20, limit / 256)) }
    /// Returns the size in bytes of LevelDB's write buffer, and so of each database's log. A smaller buffer makes
    /// LevelDB merge each byte more often: with a limit of 64 MiB and a quarter of this size, a SET costs 1.5 times as
    /// much.
    package static func writeBufferBytes(limit: Int) -> Int { max(256 << 10, limit / 32) }
    private static func mergeBytes(limit: Int) -> Int { min(limit, 26 * tableBytes(limit: limit)) }

    /// Returns the bytes to keep free on the file system, because LevelDB writes merged tables before it removes their
    /// inputs: 12 MiB plus a quarter of the rest of `room`, but at most half of `room`, and at most 96 MiB.
    package static func reserveBytes(of room: Int) -> Int {
        min(room / 2, (12 << 20) + max(0, room - (12 << 20)) / 4, 96 << 20)
    }

    /// Returns the size of ``ReserveFile`` in bytes: enough to reopen a LevelDB, which then writes its log to a table.
    package static func heldReserveBytes(limit: Int) -> Int { min(6 << 20, max(1 << 20, limit / 16)) }

    /// Returns the size of the journal at which a checkpoint starts: `asked`, but at most a 32nd of the limit.
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

    /// Whether one of the sizes is at most half or at least twice as large as in `other`.
    func differ(from other: LevelDBSizes) -> Bool {
        func differ(_ left: Int, _ right: Int) -> Bool { left >= 2 * right || right >= 2 * left }
        return differ(maxFileBytes, other.maxFileBytes) || differ(writeBufferBytes, other.writeBufferBytes)
    }
}
