/// The end of the last segment that does not count: what was being written when the process or the machine stopped.
struct JournalCut: Equatable, Sendable {
    let segment: UInt64
    let offset: Int
    let bytes: Int
    let reason: String
}

/// A place from which on nothing counts, although more was there.
struct JournalDamage: Equatable, Sendable, CustomStringConvertible {
    let segment: UInt64
    /// Where in the segment's file; 0 when nothing of the segment counts.
    let offset: Int
    let reason: String
    /// The bytes from there on, those of all later segments included.
    let unusedBytes: Int
    /// The good frames among them.
    let laterFrames: Int
    /// Whether something is missing that was known to be on the disk. If not, a failure of the machine explains it:
    /// the system writes pages in any order, and so leaves holes in what was not synced.
    let concernsSynced: Bool

    var description: String {
        "segment \(JournalFormat.fileName(segment)) at byte \(offset): \(reason); \(unusedBytes) bytes with "
            + "\(laterFrames) good groups cannot be used"
    }
}

/// What a replay found.
struct JournalReport: Equatable, Sendable {
    /// The last sequence of what counts; 0 when there is none.
    var lastSequence: UInt64 = 0
    /// The last sequence before the first segment: what was removed, or is missing.
    var precedingSequence: UInt64 = 0
    var segments = 0
    var frames = 0
    var operations = 0
    /// The bytes of the frames that count.
    var bytes = 0
    var cut: JournalCut?
    var damage: JournalDamage?
}
