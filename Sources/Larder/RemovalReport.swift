import LarderEngine

/// What a removal of many entries did.
public struct RemovalReport: Hashable, Sendable, CustomStringConvertible {
    /// How many entries were removed, expired ones that were not yet swept among them; nil where they were not counted.
    public let entries: Int?
    /// The bytes of the files that were given up, or of the keys and values removed from files that stay.
    public let bytes: Int
    /// How long it took.
    public let milliseconds: Int64

    init(_ report: PurgeReport, counted: Bool = true) {
        entries = counted ? report.entries : nil
        bytes = report.bytes
        milliseconds = report.milliseconds
    }

    /// The three in words.
    public var description: String {
        (entries.map { "\($0) entries, " } ?? "") + "\(bytes) bytes, \(milliseconds) ms"
    }
}
