import LarderPlatform
import Synchronization

/// How many bytes a larder may take on the disk, and how many it takes. All its files count: LevelDB's tables, logs and
/// manifests, the journal, what is being purged, and what was set aside. Images do not: a backup and a check evict
/// nothing.
///
/// Thread-safe. `@unchecked Sendable`: `onChange`, `onShort` and `bytesWhenShort` are guarded by `lock`, the rest is
/// atomic or constant.
package final class DiskBudget: @unchecked Sendable {
    let directory: String
    private let checkpointAsked: Int
    private let limit: Atomic<Int>
    private let smallest = Atomic<Int>(.max)
    private let checkpoint: Atomic<Int>
    private let measured = Atomic<Int>(0)
    /// What the file system leaves to the larder; `.max` while that is unknown.
    private let reach = Atomic<Int>(.max)
    private let isNoting: Atomic<Bool>
    private let lock = Lock()
    private var onChange: @Sendable () -> Void = {}
    private var onShort: @Sendable (Int, Bool) -> Bool = { _, _ in false }
    /// Held while there is a limit or a ledger.
    let reserve: ReserveFile
    /// The bytes of all files when the file system became short; nil while it is not.
    private var bytesWhenShort: Int?

    /// - Parameter limitBytes: nil for none.
    init(directory: String, limitBytes: Int?, checkpointBytes: Int) {
        self.directory = directory
        reserve = ReserveFile(directory: directory)
        checkpointAsked = checkpointBytes
        limit = Atomic(limitBytes ?? .max)
        checkpoint = Atomic(DiskMarks.checkpointBytes(checkpointBytes, limit: limitBytes ?? .max))
        isNoting = Atomic(limitBytes != nil)
    }

    // MARK: Limits

    /// The larder's limit; nil for none.
    package var limitBytes: Int? {
        let bytes = limit.load(ordering: .relaxed)
        return bytes == .max ? nil : bytes
    }

    func changeLimit(to bytes: Int?) {
        limit.store(bytes ?? .max, ordering: .relaxed)
        update()
        changed()
    }

    /// Sets what is called when a limit has changed.
    func onChange(_ body: @escaping @Sendable () -> Void) { lock.withLock { onChange = body } }

    /// Sets what makes room on a full file system.
    func onShort(_ body: @escaping @Sendable (Int, Bool) -> Bool) { lock.withLock { onShort = body } }

    /// Makes room on a full file system, by evicting. May take long. Called without locks of a store, a shard or the
    /// journal, and not on an event loop.
    /// - Parameters:
    ///   - bytes: what is to be written.
    ///   - takesReserve: whether that may have the room of the reserve: what gives space back later, and what is needed
    ///     for that.
    /// - Returns: whether there is more room than before; false if there is enough, or nothing to evict.
    func relieve(_ bytes: Int, takesReserve: Bool) -> Bool { lock.withLock { onShort }(bytes, takesReserve) }

    /// What is added to the text of an error: what a full file system means here.
    func note(_ error: FileError) -> String {
        guard error.isFullDisk else { return "" }
        return limitBytes == nil
            ? ": the file system is full, and nothing is evicted without a limit (--max-disk)"
            : ": the file system is full, and nothing more could be evicted; remove other files"
    }

    /// A limit has changed.
    func changed() { lock.withLock { onChange }() }

    /// Notes the least of the limits that databases have of their own; nil if none has one.
    func note(smallestDatabaseLimit bytes: Int?) {
        guard smallest.exchange(bytes ?? .max, ordering: .relaxed) != bytes ?? .max else { return }
        update()
    }

    private func update() {
        let (own, least) = (boundBytes ?? .max, smallest.load(ordering: .relaxed))
        // Without a limit too the journal leaves room for what empties it.
        let room = boundBytes ?? max(DiskMarks.larderBytesMin, reach.load(ordering: .relaxed))
        // A checkpoint may be all of one database: it is at most a quarter of what that may have.
        checkpoint.store(
            min(DiskMarks.checkpointBytes(checkpointAsked, limit: room), max(1 << 10, least / 4)), ordering: .relaxed)
        isNoting.store(own != .max || least != .max, ordering: .relaxed)
    }

    /// Whether reads of the disk are noted, for the choice of what is evicted. One relaxed load.
    var notesReads: Bool { isNoting.load(ordering: .relaxed) }

    /// The size of the journal that makes a checkpoint due. One relaxed load.
    var checkpointBytes: Int { checkpoint.load(ordering: .relaxed) }

    /// The larder's limit, or what the file system leaves to it if that is less; nil without a limit.
    package var boundBytes: Int? {
        limitBytes.map { min($0, max(DiskMarks.larderBytesMin, reach.load(ordering: .relaxed))) }
    }

    /// The marks of the larder; nil without a limit.
    var marks: DiskMarks? {
        boundBytes.map { DiskMarks(limit: $0, checkpointBytes: checkpointBytes, hasJournal: true) }
    }

    /// The marks of a database with a limit of its own.
    func marks(ofDatabaseWith limit: Int) -> DiskMarks {
        DiskMarks(limit: limit, checkpointBytes: min(checkpointBytes, limit / 4), hasJournal: false)
    }

    /// The most bytes of one commit unit's entries in a database with this limit: half of what it may take, because
    /// LevelDB has them twice for a while.
    func unitBytesMax(databaseLimit: Int) -> Int {
        min(limit.load(ordering: .relaxed), databaseLimit > 0 ? databaseLimit : .max) / 2
    }

    // MARK: Sizes

    /// The names of images in the larder's directory begin with this. They have the same tables, and for a while those that
    /// LevelDB does not need any more.
    static let imagePrefix = ".image-"

    /// The bytes of all files. Looks at each of them: some milliseconds for thousands.
    package func measure() -> Int {
        let bytes = FileSystem.space(directory, leavingOut: Self.imagePrefix) { _, _ in }
        note(bytes)
        return bytes
    }

    /// Takes note of the bytes of all files.
    func note(_ bytes: Int) {
        measured.store(bytes, ordering: .relaxed)
        if let free = FileSystem.room(directory: directory) { note(bytes, free: free) }
    }

    /// Whether files take so much of a limit that readers give up tables which LevelDB has merged. Some atomic loads.
    var isTight: Bool {
        if smallest.load(ordering: .relaxed) != .max { return true }
        return boundBytes.map { lastMeasured >= $0 / 2 } ?? false
    }

    /// The file system's free room counts as the larder's, but for a reserve.
    private func note(_ bytes: Int, free: Int) {
        let reserve = DiskMarks.reserveBytes(of: bytes + free)
        let least = lock.withLock {
            bytesWhenShort = free < reserve ? bytesWhenShort ?? bytes : nil
            return bytesWhenShort.map { $0 - Self.giftsMax * reserve } ?? 0
        }
        reach.store(max(bytes + free - reserve, least), ordering: .relaxed)
        update()
    }

    /// The free room of the file system in bytes; nil if unknown. One statfs(2).
    var room: Int? { FileSystem.room(directory: directory) }

    /// Whether the file system has so little room that LevelDB may not be able to write what it would take to evict.
    /// One statfs(2).
    /// - Parameter isSuspended: whether it has failed to write already: then room is needed to open it again.
    func isShort(isSuspended: Bool) -> Bool {
        guard let free = FileSystem.room(directory: directory) else { return false }
        return free < DiskMarks.reserveBytes(of: lastMeasured + free) / (isSuspended ? 2 : 8)
    }

    /// If what is evicted does not become free, because others take it or have the files too (backups do), no more than
    /// so many reserves are given away.
    private static let giftsMax = 4

    /// The bytes when they were last measured.
    package var lastMeasured: Int { measured.load(ordering: .relaxed) }

    /// The default of a daemon: a tenth of the file system, at most 8 GiB.
    package static func standardBytes(for directory: String) -> Int? {
        var place = directory
        // It may not have been made yet.
        while !FileSystem.exists(place), place != "/", place != "." { place = FileSystem.parent(place) }
        guard let total = FileSystem.totalBytes(of: place) else { return nil }
        return max(DiskMarks.larderBytesMin, min(total / 10, 8 << 30))
    }
}
