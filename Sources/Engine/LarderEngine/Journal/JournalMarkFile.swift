import LarderPlatform

/// The file `SYNCED`: records how far the journal was synced, so that the next process detects a journal that lost
/// synced parts at its beginning or its end. Lost parts in between are detected without it.
///
/// A mark never claims too much. It is written after the fsync that it records, so it needs no fsync itself: a machine
/// failure leaves an earlier mark, which claims less. But a removal of segments is recorded before it happens, at both
/// offsets and with an fsync, so that no mark claims removed segments.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class JournalMarkFile: @unchecked Sendable {
    static let fileName = "SYNCED"
    /// The offset of the second mark: in another block of the disk.
    static let secondOffset = 4096

    private let directory: String
    let path: String
    /// The current value of ``JournalMark/reserved``.
    private let reserved: @Sendable () -> UInt64
    private let files = JournalFiles(faults: nil)
    private let lock = Lock()
    // Guarded by `lock`:
    private var file: Int32 = -1
    private var mark = JournalMark()
    /// Whether ``mark`` describes the journal: it was read and is valid, or this process wrote it.
    private var isKnown = false

    init(directory: String, reserved: @escaping @Sendable () -> UInt64) {
        self.directory = directory
        path = directory + "/" + Self.fileName
        self.reserved = reserved
    }

    deinit { if file >= 0 { close(file) } }

    // MARK: The start

    enum LoadResult: Equatable {
        case done
        /// The file cannot be used.
        case unusable(String)
        case newerVersion(UInt32)
    }

    /// Reads the file. Writes nothing.
    /// - Parameter reserved: `commit-units` in `SEQUENCES`. With another value the mark is ignored, because a version
    ///   without this file has used the larder since.
    func load(reserved: UInt64) -> LoadResult {
        let found: [UInt8]?
        do throws(FileError) {
            found = try FileSystem.read(path)
        } catch {
            return .unusable("\(error)")
        }
        guard let bytes = found else { return .done }
        let newest: JournalMark
        do throws(SealedBlock.Defect) {
            guard let found = try JournalMark.newest(in: bytes, secondOffset: Self.secondOffset) else {
                return .unusable("\(path) is damaged")
            }
            newest = found
        } catch {
            guard case .newerVersion(let version) = error else { return .unusable("\(path) is damaged") }
            return .newerVersion(version)
        }
        lock.withLock {
            mark = newest
            isKnown = newest.reserved == reserved
        }
        return .done
    }

    /// The last mark of the journal; nil if it is unknown.
    var known: JournalMark? { lock.withLock { isKnown ? mark : nil } }

    /// Begins to write marks.
    /// - Parameter removed: the last commit unit before the first segment, used if no valid mark was found.
    func begin(removed: UInt64) {
        lock.withLock {
            let isNew = !isKnown
            if isNew { (mark.removed, mark.synced) = (removed, 0) }
            isKnown = true
            // If the file cannot be created now, the next mark tries again.
            try? writeBoth()
            // Sync a new file, so that losses of synced parts are detected from now on, even after a machine failure.
            if isNew, file >= 0 { try? files.sync(file, path: path) }
        }
    }

    // MARK: Marks

    /// Records that everything up to a sequence is on the disk. One write(2), no sync. A failure leaves an earlier
    /// mark.
    func noteSynced(_ sequence: UInt64) {
        lock.withLock {
            guard isKnown, sequence > mark.synced else { return }
            mark.synced = sequence
            try? write()
        }
    }

    /// Records that everything up to a sequence will be removed from the journal. Returns when that is on the disk, or,
    /// if it cannot be written, when all earlier marks are removed from the disk.
    func noteRemoved(_ sequence: UInt64) throws(FileError) {
        try lock.withLock { () throws(FileError) in
            guard isKnown, sequence > mark.removed else { return }
            let before = mark.removed
            mark.removed = sequence
            do throws(FileError) {
                try writeBoth()
                try files.sync(file, path: path)
            } catch {
                // An earlier mark may be on the disk, even if the file could not be opened. Only removing the file is
                // as safe as a newer mark.
                mark.removed = before
                try drop()
                mark.removed = sequence
            }
        }
    }

    /// Records that the journal ends with a sequence, after the loss of later sequences was reported.
    func noteLost(behind sequence: UInt64) {
        lock.withLock {
            guard isKnown, mark.synced > sequence else { return }
            mark.synced = sequence
            try? writeBoth()
        }
    }

    // MARK: The file. Called with `lock` held.

    private func writeBoth() throws(FileError) {
        try write()
        try write()
    }

    private func write() throws(FileError) {
        if file < 0 {
            file = FileSystem.openFile(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        }
        var next = mark
        next.number += 1
        next.reserved = reserved()
        try files.write(next.bytes, to: file, at: next.number % 2 == 0 ? 0 : Self.secondOffset, path: path)
        mark = next
    }

    /// Removes the file, because it cannot be written: an earlier mark must not stay.
    private func drop() throws(FileError) {
        if file >= 0 { close(file) }
        file = -1
        try files.unlink(path)
        try files.syncDirectory(directory)
    }
}
