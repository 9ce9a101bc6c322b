import LarderPlatform
import Synchronization

/// The state of one file of the journal.
///
/// The journal's lock guards the variables. The file stays open while the object exists, so a sync can continue while
/// the segment is removed.
final class JournalSegment {
    let number: UInt64
    let path: String
    /// A descriptor open for writing if this process has created the segment; otherwise -1.
    let file: Int32

    /// The valid bytes, including the header; nil until a segment of an earlier process has been read.
    var byteCount: Int?
    /// The size of the file when the journal was opened; used until the segment is read.
    let foundBytes: Int
    var lastSequence: UInt64 = 0
    var hasFrames = false
    /// The number of bytes, from the start of the file, that are known to be on the disk.
    var syncedBytes = 0
    /// Whether the file's name in the directory is synced.
    var isNameSynced = false
    /// The error of a failed fsync. After it, the system may have dropped pages that were not written.
    var syncFailure: FileError?

    /// A segment found at the start.
    init(number: UInt64, path: String, foundBytes: Int) {
        self.number = number
        self.path = path
        self.foundBytes = foundBytes
        file = -1
    }

    /// A new segment, which has a header.
    init(number: UInt64, path: String, file: Int32) {
        self.number = number
        self.path = path
        self.file = file
        foundBytes = 0
        byteCount = JournalFormat.segmentHeaderBytes
    }

    deinit { if file >= 0 { close(file) } }

    var liveBytes: Int { byteCount ?? foundBytes }
    var isSynced: Bool { syncedBytes >= liveBytes && isNameSynced }
}

/// The payload of one long record. It is written to a file in the journal's directory before the commit, so that other
/// commits do not wait for this write.
///
/// The commit writes the bytes before the payload (two headers and the key) and renames the file, which becomes an
/// ordinary segment. So the commit costs as little as that of a short record. If no commit happens, the file is
/// removed.
///
/// Thread-safe.
final class StagedFrame: Sendable {
    let path: String
    let byteCount: Int
    /// CRC-32C of the payload alone.
    let checksum: UInt32
    /// The number of bytes in the frame's payload before the payload of the record.
    let bytesBefore: Int
    private let file: Atomic<Int32>

    init(path: String, file: Int32, byteCount: Int, checksum: UInt32, bytesBefore: Int) {
        self.path = path
        self.file = Atomic(file)
        self.byteCount = byteCount
        self.checksum = checksum
        self.bytesBefore = bytesBefore
    }

    deinit {
        let file = takeFile()
        guard file >= 0 else { return }
        close(file)
        remove(path)
    }

    /// Returns the file, open for writing; -1 if the file was taken before. The caller must close it.
    func takeFile() -> Int32 { file.exchange(-1, ordering: .acquiringAndReleasing) }

    var descriptor: Int32 { file.load(ordering: .acquiring) }

    static func name(_ number: Int) -> String { "ahead-\(number).new" }

    /// Returns whether a file name is that of a staged payload.
    static func isName(_ name: String) -> Bool { name.hasPrefix("ahead-") && name.hasSuffix(".new") }
}
