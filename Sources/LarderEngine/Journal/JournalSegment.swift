import Platform

/// One file of the journal, as the process that holds the larder knows it.
///
/// Guarded by the journal's lock, except for what is constant. The file stays open as long as there are references, so
/// that a sync can go on while the segment is removed.
final class JournalSegment {
    let number: UInt64
    let path: String
    /// Open for writing if this process made the segment; else -1.
    let file: Int32

    /// The bytes that count, the header included; nil while nobody has read a segment that was found.
    var byteCount: Int?
    /// The bytes of the file when it was found: what is counted until it was read.
    let foundBytes: Int
    var lastSequence: UInt64 = 0
    var hasFrames = false
    /// The bytes known to be on the disk.
    var syncedBytes = 0
    /// Whether the directory is known to name the file on the disk.
    var isNameSynced = false
    /// A failed fsync: the system may have dropped what it should have written.
    var syncFailure: FileError?

    /// A segment that was found.
    init(number: UInt64, path: String, foundBytes: Int) {
        self.number = number
        self.path = path
        self.foundBytes = foundBytes
        file = -1
    }

    /// A segment that was made: it has a header.
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
