import LarderLevelDB
import LarderPlatform
import Synchronization

/// The disk budget of a larder: its limit and its usage. All files of the larder count: LevelDB's tables, logs and
/// manifests, the journal, purged files, and quarantined files. Images (temporary copies for backups and checks) do not
/// count, so backups and checks cause no eviction.
///
/// Thread-safe.
package final class DiskBudget: Sendable {
    private struct State {
        var onChange: @Sendable () -> Void = {}
        var onShort: @Sendable (Int, Bool) -> Bool = { _, _ in false }
        /// The size of the larder's files when the file system became nearly full; nil while it has enough space.
        var bytesWhenShort: Int?
    }

    let directory: String
    private let checkpointAsked: Int
    private let limit: Atomic<Int>
    private let smallest = Atomic<Int>(.max)
    private let checkpoint: Atomic<Int>
    private let measured = Atomic<Int>(0)
    /// The bytes that the larder can take on the file system, including its current files; `.max` while that is
    /// unknown.
    private let reach = Atomic<Int>(.max)
    private let isNoting: Atomic<Bool>
    private let state = Locked(State())
    /// Space that is reserved for writes on a full file system. Its file exists while the larder has a limit or a
    /// ledger.
    let reserve: ReserveFile

    /// - Parameter limitBytes: the larder's limit; nil for none.
    init(directory: String, limitBytes: Int?, checkpointBytes: Int) {
        self.directory = directory
        reserve = ReserveFile(directory: directory)
        checkpointAsked = checkpointBytes
        limit = Atomic(limitBytes ?? .max)
        checkpoint = Atomic(DiskThresholds.checkpointBytes(checkpointBytes, limit: limitBytes ?? .max))
        isNoting = Atomic(limitBytes != nil)
    }

    // MARK: Limits

    /// The larder's limit in bytes; nil for none.
    package var limitBytes: Int? {
        let bytes = limit.load(ordering: .relaxed)
        return bytes == .max ? nil : bytes
    }

    func changeLimit(to bytes: Int?) {
        limit.store(bytes ?? .max, ordering: .relaxed)
        update()
        changed()
    }

    /// Sets the callback for a changed limit.
    func onChange(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onChange = body } }

    /// Sets the callback that frees space on a full file system.
    func onShort(_ body: @escaping @Sendable (Int, Bool) -> Bool) { state.withLock { $0.onShort = body } }

    /// Frees space on a full file system by evicting entries. May take long. Must not be called on an event loop, nor
    /// while a lock of a store, a shard or the journal is held.
    /// - Parameters:
    ///   - bytes: the size in bytes of the write that needs space.
    ///   - takesReserve: whether the write may use the reserve. True for writes that free space later, and for their
    ///     prerequisites.
    /// - Returns: whether space was freed, by this call or by a concurrent one. False if there was enough before, or if
    ///   nothing can be evicted.
    func relieve(_ bytes: Int, takesReserve: Bool) -> Bool { state.withLock { $0.onShort }(bytes, takesReserve) }

    /// Returns the text to append to an error's message: advice if the error is a full file system, otherwise nothing.
    func note(_ error: FileError) -> String {
        guard error.isFullDisk else { return "" }
        return limitBytes == nil
            ? ": the file system is full; without a limit (--max-disk) nothing is evicted"
            : ": the file system is full, and evictions did not free enough space; remove other files"
    }

    /// Calls the callback for a changed limit.
    func changed() { state.withLock { $0.onChange }() }

    /// Sets the smallest of the databases' own limits; nil if no database has a limit.
    func note(smallestDatabaseLimit bytes: Int?) {
        guard smallest.exchange(bytes ?? .max, ordering: .relaxed) != bytes ?? .max else { return }
        update()
    }

    private func update() {
        let (own, least) = (boundBytes ?? .max, smallest.load(ordering: .relaxed))
        // Even without a limit, the journal is kept so small that there is space to write all its entries to LevelDB.
        let room = boundBytes ?? max(DiskThresholds.larderBytesMin, reach.load(ordering: .relaxed))
        // All entries of a checkpoint may belong to one database. So a checkpoint is at most a quarter of the lowest
        // database limit.
        checkpoint.store(
            min(DiskThresholds.checkpointBytes(checkpointAsked, limit: room), max(1 << 10, least / 4)),
            ordering: .relaxed)
        isNoting.store(own != .max || least != .max, ordering: .relaxed)
    }

    /// Whether disk reads are counted, so that the eviction can consider them. One relaxed load.
    var countsReads: Bool { isNoting.load(ordering: .relaxed) }

    /// The size of the journal that makes a checkpoint due. One relaxed load.
    var checkpointBytes: Int { checkpoint.load(ordering: .relaxed) }

    /// The larder's limit, or the space on the file system if that is less, in bytes; nil without a limit.
    package var boundBytes: Int? {
        limitBytes.map { min($0, max(DiskThresholds.larderBytesMin, reach.load(ordering: .relaxed))) }
    }

    /// The thresholds of the larder; nil without a limit.
    var marks: DiskThresholds? {
        boundBytes.map { DiskThresholds(limit: $0, checkpointBytes: checkpointBytes, hasJournal: true) }
    }

    func marks(ofDatabaseWith limit: Int) -> DiskThresholds {
        DiskThresholds(limit: limit, checkpointBytes: min(checkpointBytes, limit / 4), hasJournal: false)
    }

    /// Returns the maximum size in bytes of one commit unit's entries in a database with this limit: half of the limit,
    /// because LevelDB temporarily stores them twice.
    func unitBytesMax(databaseLimit: Int) -> Int {
        min(limit.load(ordering: .relaxed), databaseLimit > 0 ? databaseLimit : .max) / 2
    }

    // MARK: Sizes

    /// The prefix of the names of images in the larder's directory. ``measure()`` skips images, even those tables in
    /// them that LevelDB has removed from the larder since: images are temporary, and must not cause evictions.
    static let imagePrefix = ".image-"

    /// Measures, records and returns the size of all files in bytes. Takes some milliseconds for thousands of files.
    package func measure() -> Int {
        let bytes = FileSystem.space(directory, leavingOut: Self.imagePrefix) { _, _ in }
        note(bytes)
        return bytes
    }

    /// Records the size of all files, and updates ``reach``.
    func note(_ bytes: Int) {
        measured.store(bytes, ordering: .relaxed)
        if let free = FileSystem.room(directory: directory) { note(bytes, free: free) }
    }

    /// Whether readers should release tables that LevelDB has merged, so that the tables can be removed. True if usage
    /// is at least half of the larder's limit, or if any database has its own limit. Some atomic loads.
    var isTight: Bool {
        if smallest.load(ordering: .relaxed) != .max { return true }
        return boundBytes.map { lastMeasured >= $0 / 2 } ?? false
    }

    /// Sets ``reach``: the size of the larder's files plus the free space of the file system, minus a reserve.
    private func note(_ bytes: Int, free: Int) {
        let reserve = DiskThresholds.reserveBytes(of: bytes + free)
        let least = state.withLock { state in
            state.bytesWhenShort = free < reserve ? state.bytesWhenShort ?? bytes : nil
            return state.bytesWhenShort.map { $0 - Self.reserveShareMax * reserve } ?? 0
        }
        reach.store(max(bytes + free - reserve, least), ordering: .relaxed)
        update()
    }

    /// The free space of the file system in bytes; nil if unknown. One statfs(2).
    var room: Int? { FileSystem.room(directory: directory) }

    /// Whether the file system has so little space that LevelDB may fail to write the files that an eviction needs. One
    /// statfs(2).
    /// - Parameter isSuspended: whether a write of LevelDB has failed. Reopening LevelDB then needs space too.
    func isShort(isSuspended: Bool) -> Bool {
        guard let free = FileSystem.room(directory: directory) else { return false }
        return free < DiskThresholds.reserveBytes(of: lastMeasured + free) / (isSuspended ? 2 : 8)
    }

    /// While the file system is full, ``reach`` decreases by at most this multiple of
    /// ``DiskThresholds/reserveBytes(of:)``. Otherwise, evictions that free no space would remove all entries.
    /// An eviction frees no space if other programs take it immediately, or if backups have links to the files.
    private static let reserveShareMax = 4

    /// The last measured size of all files, in bytes.
    package var lastMeasured: Int { measured.load(ordering: .relaxed) }

    /// Returns the default limit of a daemon in bytes: a tenth of the file system, at most 8 GiB; nil if its size is
    /// unknown.
    package static func standardBytes(for directory: String) -> Int? {
        var place = directory
        // The directory may not exist yet.
        while !FileSystem.exists(place), place != "/", place != "." { place = FileSystem.parent(place) }
        guard let total = FileSystem.totalBytes(of: place) else { return nil }
        return max(DiskThresholds.larderBytesMin, min(total / 10, 8 << 30))
    }
}

/// The bytes of pending outbox writes (writes still to be sent to an origin), which are never evicted. They take at
/// most half of the disk limit, so that a checkpoint always finds other entries to evict. Without checkpoints, not even
/// completed outbox writes could be removed.
///
/// Thread-safe.
package final class HeldBytes: Sendable {
    private let count = Atomic<Int>(0)
    private let disk: DiskBudget

    init(_ disk: DiskBudget) { self.disk = disk }

    package func add(_ bytes: Int) { count.wrappingAdd(bytes, ordering: .relaxed) }

    /// The maximum number of bytes; nil without a disk limit.
    package var most: Int? { disk.boundBytes.map { $0 / 2 } }

    /// Whether there is space for `bytes` more. Concurrent callers may exceed the limit together.
    package func hasRoom(for bytes: Int) -> Bool {
        most.map { count.load(ordering: .relaxed) + bytes <= $0 } ?? true
    }
}

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
    /// much. A larger one makes larger tables, which need more space while they are merged.
    package static func writeBufferBytes(limit: Int) -> Int {
        max(256 << 10, min(limit / 32, max(4 << 20, limit / 256)))
    }
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

extension Options {
    /// Whether one of the sizes that are derived from a disk limit is at most half or at least twice as large as in
    /// `other`.
    func sizesDiffer(from other: Options) -> Bool {
        func differ(_ left: Int, _ right: Int) -> Bool { left >= 2 * right || right >= 2 * left }
        return differ(maxFileBytes, other.maxFileBytes) || differ(writeBufferBytes, other.writeBufferBytes)
    }
}

/// Space on the file system that is reserved for writes on a full disk: removals, and LevelDB's writes that free space.
/// It is a preallocated file, which is removed when the space is needed, and recreated when there is space again.
///
/// On file systems that compress or copy on write, a preallocated file reserves no space.
///
/// Thread-safe.
final class ReserveFile: Sendable {
    static let name = "RESERVE"

    private let path: String
    private let isHeld = Locked(false)

    init(directory: String) { path = directory + "/" + Self.name }

    /// Creates the file, unless this process has created it already. Replaces the file of an earlier process.
    /// - Returns: whether the file exists.
    @discardableResult
    func hold(bytes: Int) -> Bool {
        isHeld.withLock { isHeld in
            if !isHeld { isHeld = (try? FileSystem.allocate(path, bytes: bytes)) != nil }
            return isHeld
        }
    }

    /// Whether this process has created the file and not removed it.
    var isThere: Bool { isHeld.withLock { $0 } }

    /// Removes the file, even if an earlier process created it.
    /// - Returns: whether the file existed.
    @discardableResult
    func giveUp() -> Bool {
        isHeld.withLock { isHeld in
            isHeld = false
            return unlink(path) == 0
        }
    }
}
