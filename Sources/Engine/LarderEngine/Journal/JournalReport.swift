/// The invalid end of the last segment, which was being written when the process or the machine stopped.
struct JournalCut: Equatable, Sendable {
    let segment: UInt64
    let offset: Int
    let bytes: Int
    let reason: String
}

/// Damage: the place after which the journal cannot be used, although more groups follow or should follow.
struct JournalDamage: Equatable, Sendable, CustomStringConvertible {
    let segment: UInt64
    /// The offset in the segment's file; 0 if nothing of the segment is valid.
    let offset: Int
    let reason: String
    /// The number of bytes after the place, including all later segments.
    let unusedBytes: Int
    /// The number of good frames among the unused bytes.
    let laterFrames: Int
    /// Whether synced frames are missing. If not, a machine failure may be the cause: the system writes pages in any
    /// order, so after a failure, unsynced files can have holes.
    let concernsSynced: Bool

    var description: String {
        // The segment is 0 if the journal has no segments.
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
    /// The last sequence before the first segment. Segments with earlier sequences were removed or are missing.
    var precedingSequence: UInt64 = 0
    var segments = 0
    var frames = 0
    var operations = 0
    /// The size of the valid frames, in bytes.
    var bytes = 0
    var cut: JournalCut?
    var damage: JournalDamage?
}
