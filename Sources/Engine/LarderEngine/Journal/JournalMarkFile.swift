import LarderPlatform

/// The file `SYNCED`. It records up to which commit unit the journal was synced. With it, the next process detects that
/// the journal has lost synced parts at its beginning or end. Lost parts in the middle are detected without this file.
///
/// A mark is written after the fsync that it records, and is not synced itself. If a machine failure loses a mark, the
/// previous one is valid, and records less than the journal contains. Before segments are removed, however, the marks
/// at both offsets are updated and synced. Otherwise an old mark would still record the removed segments after a
/// machine failure, and they would seem lost.
///
/// Thread-safe.
final class JournalMarkFile: Sendable {
    static let fileName = "SYNCED"
    /// The offset of the second mark. It is in another block of the disk than the first mark, so no write damages both.
    static let secondOffset = 4096

    private let directory: String
    let path: String
    /// Returns the current value for ``JournalMark/reserved``.
    private let reserved: @Sendable () -> UInt64
    private let files = JournalFiles(faults: nil)
    private let state = Locked(State())

    private struct State {
        var file: Int32 = -1
        var mark = JournalMark()
        /// Whether ``mark`` describes the journal: it was read and is valid, or this process wrote it.
        var isKnown = false
    }

    init(directory: String, reserved: @escaping @Sendable () -> UInt64) {
        self.directory = directory
        path = directory + "/" + Self.fileName
        self.reserved = reserved
    }

    deinit { state.withLock { if $0.file >= 0 { close($0.file) } } }

    // MARK: The start

    enum LoadResult: Equatable {
        case done
        /// The file cannot be used.
        case unusable(String)
        case newerVersion(UInt32)
    }

    /// Reads the file. Writes nothing.
    /// - Parameter reserved: `commit-units` in `SEQUENCES`. A mark with another value is ignored: an old version of
    ///   Larder, which does not write marks, has used the larder since.
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
        state.withLock { ($0.mark, $0.isKnown) = (newest, newest.reserved == reserved) }
        return .done
    }

    /// The last mark of the journal; nil if there is no valid one.
    var known: JournalMark? { state.withLock { $0.isKnown ? $0.mark : nil } }

    /// LevelDB has all commit units up to this one, even if the last mark is ignored; 0 if there is no mark.
    var removed: UInt64 { state.withLock { $0.mark.removed } }

    /// Begins to write marks. Called at the start, after the journal was read.
    /// - Parameter removed: the last commit unit before the first segment; used if no valid mark was found.
    func begin(removed: UInt64) {
        state.withLock { state in
            let isNew = !state.isKnown
            if isNew { (state.mark.removed, state.mark.synced) = (removed, 0) }
            state.isKnown = true
            // If the file cannot be created now, the next write of a mark tries again.
            try? writeBoth(&state)
            // Sync a new file, so that losses of synced parts are detected from now on, even after a machine failure.
            if isNew, state.file >= 0 { try? files.sync(state.file, path: path) }
        }
    }

    // MARK: Marks

    /// Records that everything up to a sequence is on the disk. Takes one write(2) and no fsync. If that fails, an
    /// earlier mark stays valid.
    func noteSynced(_ sequence: UInt64) {
        state.withLock { state in
            guard state.isKnown, sequence > state.mark.synced else { return }
            state.mark.synced = sequence
            try? write(&state)
        }
    }

    /// Records that everything up to a sequence will be removed from the journal. Returns when the new mark is on the
    /// disk. If the new mark cannot be written, removes the file durably, because earlier marks must not stay valid.
    func noteRemoved(_ sequence: UInt64) throws(FileError) {
        try state.withLock { (state) throws(FileError) in
            guard state.isKnown, sequence > state.mark.removed else { return }
            let before = state.mark.removed
            state.mark.removed = sequence
            do throws(FileError) {
                try writeBoth(&state)
                try files.sync(state.file, path: path)
            } catch {
                // Remove the file. An earlier mark may be on the disk, even if the file could not be opened. With the
                // earlier mark, the removed segments would seem lost.
                state.mark.removed = before
                try drop(&state)
                state.mark.removed = sequence
            }
        }
    }

    /// Records that the journal ends with this sequence. Called after the loss of later sequences was reported.
    func noteLost(behind sequence: UInt64) {
        state.withLock { state in
            guard state.isKnown, state.mark.synced > sequence else { return }
            state.mark.synced = sequence
            try? writeBoth(&state)
        }
    }

    // MARK: The file

    private func writeBoth(_ state: inout State) throws(FileError) {
        try write(&state)
        try write(&state)
    }

    private func write(_ state: inout State) throws(FileError) {
        if state.file < 0 {
            state.file = FileSystem.openFile(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard state.file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        }
        var next = state.mark
        next.number += 1
        next.reserved = reserved()
        try files.write(next.bytes, to: state.file, at: next.number % 2 == 0 ? 0 : Self.secondOffset, path: path)
        state.mark = next
    }

    /// Removes the file when it cannot be written, because an earlier mark must not stay valid.
    private func drop(_ state: inout State) throws(FileError) {
        if state.file >= 0 { close(state.file) }
        state.file = -1
        try files.unlink(path)
        try files.syncDirectory(directory)
    }
}

/// A mark in the file `SYNCED` of a larder. It records which part of the journal must be on the disk.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERSY"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11; every version begins with these 16 bytes
///     16      8  number of the mark; the higher one of two is valid
///     24      8  `commit-units` in `SEQUENCES` when the mark was written; ignore the mark if that has changed
///     32      8  commit units up to this one were removed from the journal, because LevelDB has them
///     40      8  commit units up to this one were synced
///     48      4  CRC-32C of the bytes 0 to 47
/// ```
package struct JournalMark: AlternatingMark, Hashable, Sendable {
    package static let version: UInt32 = 1
    package static let byteCount = 52
    static let magic: UInt64 = 0x4C41_5244_4552_5359

    package var number: UInt64
    package var reserved: UInt64
    package var removed: UInt64
    package var synced: UInt64

    package init(number: UInt64 = 0, reserved: UInt64 = 0, removed: UInt64 = 0, synced: UInt64 = 0) {
        (self.number, self.reserved, self.removed, self.synced) = (number, reserved, removed, synced)
    }

    package var bytes: [UInt8] {
        SealedBlock.bytes(Self.magic, version: Self.version, [number, reserved, removed, synced])
    }

    init(parsing bytes: UnsafeRawBufferPointer) throws(SealedBlock.Defect) {
        let numbers = try SealedBlock.numbers(4, in: bytes, Self.magic, version: Self.version)
        self.init(number: numbers[0], reserved: numbers[1], removed: numbers[2], synced: numbers[3])
    }
}
