import Platform
import Synchronization

/// How many bytes a larder may take on the disk, and how many it takes. All its files count: LevelDB's tables, logs and
/// manifests, the journal, what is being purged, and what was set aside.
///
/// Thread-safe. The proof for `@unchecked Sendable`: `onChange` is read and written with the lock held, the rest is
/// atomic or constant.
package final class DiskBudget: @unchecked Sendable {
    private let directory: String
    private let checkpointAsked: Int
    private let limit: Atomic<Int>
    private let smallest = Atomic<Int>(.max)
    private let checkpoint: Atomic<Int>
    private let measured = Atomic<Int>(0)
    private let isNoting: Atomic<Bool>
    private let lock = Lock()
    private var onChange: @Sendable () -> Void = {}

    /// - Parameter limitBytes: nil for none.
    init(directory: String, limitBytes: Int?, checkpointBytes: Int) {
        self.directory = directory
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

    /// A limit has changed.
    func changed() { lock.withLock { onChange }() }

    /// Notes the least of the limits that databases have of their own; nil if none has one.
    func note(smallestDatabaseLimit bytes: Int?) {
        guard smallest.exchange(bytes ?? .max, ordering: .relaxed) != bytes ?? .max else { return }
        update()
    }

    private func update() {
        let (own, least) = (limit.load(ordering: .relaxed), smallest.load(ordering: .relaxed))
        // A checkpoint may be all of one database: it is at most a quarter of what that may have.
        checkpoint.store(
            min(DiskMarks.checkpointBytes(checkpointAsked, limit: own), max(1 << 10, least / 4)), ordering: .relaxed)
        isNoting.store(own != .max || least != .max, ordering: .relaxed)
    }

    /// Whether reads of the disk are noted, for the choice of what is evicted. One relaxed load.
    var notesReads: Bool { isNoting.load(ordering: .relaxed) }

    /// The size of the journal that makes a checkpoint due. One relaxed load.
    var checkpointBytes: Int { checkpoint.load(ordering: .relaxed) }

    /// The marks of the larder; nil without a limit.
    var marks: DiskMarks? {
        limitBytes.map { DiskMarks(limit: $0, checkpointBytes: checkpointBytes, hasJournal: true) }
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

    /// The bytes of all files. Looks at each of them: some milliseconds for thousands.
    package func measure() -> Int {
        let bytes = FileSystem.space(directory)
        measured.store(bytes, ordering: .relaxed)
        return bytes
    }

    /// The bytes when they were last measured.
    package var lastMeasured: Int { measured.load(ordering: .relaxed) }

    /// All files but the journal.
    func measureWithoutJournal() -> Int { max(0, measure() - FileSystem.space(directory + "/JOURNAL")) }

    /// The default of a daemon: a tenth of the file system, at most 8 GiB.
    package static func standardBytes(for directory: String) -> Int? {
        var place = directory
        // It may not have been made yet.
        while !FileSystem.exists(place), place != "/", place != "." { place = FileSystem.parent(place) }
        guard let total = FileSystem.totalBytes(of: place) else { return nil }
        return max(DiskMarks.larderBytesMin, min(total / 10, 8 << 30))
    }
}
