import LarderEngine

/// The result of salvaging a damaged database: what was kept, and what may be lost.
public struct SalvageReport: Hashable, Sendable, CustomStringConvertible {
    /// Entries that were kept, including expired ones that were not swept yet.
    public let entries: Int
    /// Parts of files that could not be read.
    public let unreadablePieces: Int
    /// Their length in bytes, as far as known.
    public let unreadableBytes: Int
    /// Ranges of keys that may have lost entries, in words, for people; the first 16.
    public let lostKeys: [String]
    /// How many ranges there are.
    public let lostKeyRanges: Int
    /// Whether it is known which of the files counted. If not, because LevelDB's manifest is lost, possibly obsolete
    /// files are left out, and their keys are among ``lostKeys``: nothing that was overwritten or removed comes back.
    public let isComplete: Bool
    /// What remains unknown, in words, for people: for example that the note of the length of LevelDB's log is damaged
    /// too. Empty if there is nothing.
    public let doubts: [String]
    /// Where the damaged files are kept; nil if they could not be kept.
    public let evidence: String?
    /// All of it in words.
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
