/// The invalid end of the last segment: it was being written when the process or the machine stopped.
struct JournalCut: Equatable, Sendable {
    let segment: UInt64
    let offset: Int
    let bytes: Int
    let reason: String
}

/// A place in the journal after which nothing is valid, although more bytes follow.
struct JournalDamage: Equatable, Sendable, CustomStringConvertible {
    let segment: UInt64
    /// The offset in the segment's file; 0 if nothing of the segment is valid.
    let offset: Int
    let reason: String
    /// The bytes after the place, including all later segments.
    let unusedBytes: Int
    /// The number of good frames among the unused bytes.
    let laterFrames: Int
    /// Whether synced frames are missing. If not, a machine failure explains the damage: the system writes pages in any
    /// order, and so leaves holes in unsynced files.
    let concernsSynced: Bool

    var description: String {
        // 0 if there is no segment.
        segment == 0
            ? reason
            : "segment \(JournalFormat.fileName(segment)) at byte \(offset): \(reason); \(unusedBytes) bytes with "
                + "\(laterFrames) valid groups cannot be used"
    }
}

/// The result of a replay.
struct JournalReport: Equatable, Sendable {
    /// The last valid sequence; 0 if there is none.
    var lastSequence: UInt64 = 0
    /// The last sequence before the first segment. Sequences up to it were removed, or are missing.
    var precedingSequence: UInt64 = 0
    var segments = 0
    var frames = 0
    var operations = 0
    /// The bytes of the valid frames.
    var bytes = 0
    var cut: JournalCut?
    var damage: JournalDamage?
}
