import LarderEngine

/// What a salvage of a damaged database kept, and what it may have lost.
public struct SalvageReport: Hashable, Sendable, CustomStringConvertible {
    /// Entries that were read and go on, expired ones that were not yet swept among them.
    public let entries: Int
    /// Parts of files that could not be read.
    public let unreadablePieces: Int
    /// Their bytes, as far as known.
    public let unreadableBytes: Int
    /// Ranges of keys that may have lost entries, in words, for people; the first 16.
    public let lostKeys: [String]
    /// How many ranges there are.
    public let lostKeyRanges: Int
    /// Where the damaged files are kept; nil where they could not be.
    public let evidence: String?
    /// All of it in words.
    public let description: String

    init(_ summary: SalvageSummary) {
        entries = summary.entries
        unreadablePieces = summary.pieces
        unreadableBytes = summary.bytes
        lostKeys = summary.lost
        lostKeyRanges = summary.lostCount
        evidence = summary.place
        description = summary.description
    }
}
