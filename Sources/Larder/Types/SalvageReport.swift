import LarderEngine

/// The result of salvaging a damaged database: what was kept, and what may be lost.
public struct SalvageReport: Hashable, Sendable, CustomStringConvertible {
    /// The number of entries that were kept, including expired ones that had not been swept.
    public let entries: Int
    /// The number of parts of files that could not be read.
    public let unreadablePieces: Int
    /// The total length of the unreadable parts in bytes, as far as it is known.
    public let unreadableBytes: Int
    /// The first 16 key ranges that may have lost entries, described for people.
    public let lostKeys: [String]
    /// The number of all key ranges that may have lost entries.
    public let lostKeyRanges: Int
    /// Whether it was known which files are current. False if LevelDB's manifest is lost. Then files that may be
    /// obsolete are ignored, so that no overwritten or removed entry comes back; their keys are in ``lostKeys``.
    public let isComplete: Bool
    /// Possible losses, described for people; empty if there are none. For example, if the record of a log's length is
    /// damaged, it is unknown whether LevelDB's log is complete.
    public let doubts: [String]
    /// The directory with the damaged files; nil if they could not be kept.
    public let evidence: String?
    /// The whole report as text.
    public let description: String

    init(_ summary: SalvageSummary) {
        entries = summary.entries
        unreadablePieces = summary.pieces
        unreadableBytes = summary.bytes
        lostKeys = summary.lost
        lostKeyRanges = summary.lostCount
        isComplete = summary.isComplete
        doubts = summary.doubts
        evidence = summary.place
        description = summary.description
    }
}
