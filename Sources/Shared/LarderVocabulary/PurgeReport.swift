/// The result of removing many entries.
///
/// Thread-safe: a value.
public struct PurgeReport: Hashable, Sendable {
    /// The number of removed entries, including expired ones that were still on the disk; nil if they were not counted.
    public package(set) var entries: Int?
    /// The size, in bytes, of the deleted files, or of the removed keys and values if their files were not deleted.
    public package(set) var bytes: Int
    /// The duration of the purge, in milliseconds.
    public package(set) var milliseconds: Int64

    package init(entries: Int? = 0, bytes: Int = 0, milliseconds: Int64 = 0) {
        (self.entries, self.bytes, self.milliseconds) = (entries, bytes, milliseconds)
    }

    /// Adds one removed entry.
    package mutating func count(bytes: Int) {
        entries = (entries ?? 0) + 1
        self.bytes += bytes
    }

    package mutating func add(_ other: PurgeReport) {
        entries = entries.flatMap { own in other.entries.map { own + $0 } }
        bytes += other.bytes
        milliseconds += other.milliseconds
    }
}

extension PurgeReport: CustomStringConvertible {
    /// The report as a sentence.
    public var description: String {
        (entries.map { "\($0) entries, " } ?? "") + "\(bytes) bytes, \(milliseconds) ms"
    }
}
