import LarderEngine

/// The result of salvaging a damaged database: what was kept, and what may be lost.
public struct SalvageReport: Hashable, Sendable, CustomStringConvertible {
    /// Entries that were kept, including expired ones that had not been swept.
    public let entries: Int
    /// Parts of files that could not be read.
    public let unreadablePieces: Int
    /// The total length of the unreadable parts in bytes, as far as it is known.
    public let unreadableBytes: Int
    /// Key ranges that may have lost entries, described for people; the first 16.
    public let lostKeys: [String]
    /// The number of these ranges.
    public let lostKeyRanges: Int
    /// Whether the current set of files was known. If not, because LevelDB's manifest is lost, possibly obsolete files
    /// are ignored and their keys are in ``lostKeys``, so that nothing overwritten or removed comes back.
    public let isComplete: Bool
    /// Open questions, described for people: for example that the record of the length of LevelDB's log is damaged too.
    /// Empty if there are none.
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
