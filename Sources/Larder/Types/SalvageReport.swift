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
    /// Whether it is known which of the files counted. Where it is not, because LevelDB's manifest is lost, what may be obsolete
    /// is left out and is among ``lostKeys``: nothing that was overwritten or removed comes back.
    public let isComplete: Bool
    /// What nobody can tell, in words, for people: such as that the note is damaged too that says how long LevelDB's log
    /// was. Empty if there is nothing.
    public let doubts: [String]
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
        isComplete = summary.isComplete
        doubts = summary.doubts
        evidence = summary.place
        description = summary.description
    }
}
