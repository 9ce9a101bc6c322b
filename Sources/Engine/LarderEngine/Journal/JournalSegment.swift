import LarderPlatform

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
