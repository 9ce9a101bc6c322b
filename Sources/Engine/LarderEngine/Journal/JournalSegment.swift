import LarderPlatform

/// One file of the journal, as known to the larder's process.
///
/// Guarded by the journal's lock, except for constants. The file stays open as long as it is referenced, so a sync can
/// run while the segment is removed.
final class JournalSegment {
    let number: UInt64
    let path: String
    /// Open for writing if this process created the segment; else -1.
    let file: Int32

    /// The valid bytes, including the header; nil while a found segment has not been read.
    var byteCount: Int?
    /// The size of the file when it was found; used until it is read.
    let foundBytes: Int
    var lastSequence: UInt64 = 0
    var hasFrames = false
    /// The bytes known to be on the disk.
    var syncedBytes = 0
    /// Whether the file's name in the directory is synced.
    var isNameSynced = false
    /// The error of a failed fsync: the system may have dropped pages.
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
