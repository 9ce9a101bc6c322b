import LarderEngine

/// A disk limit in bytes, as given to `--max-disk` and `LIMIT`.
package enum DiskLimit: Sendable, Equatable {
    case unlimited
    case bytes(Int)

    /// The text for errors about a limit of a larder.
    static let rule = "\(ByteCount.rule), at least \(DiskMarks.larderBytesMin >> 20)M; or 0 or none for no limit"
    /// The text for errors about a limit of a database.
    static let databaseRule =
        "\(ByteCount.rule), at least \(DiskMarks.databaseBytesMin >> 20)M; or 0 or none for no limit"

    /// - Returns: nil for a text that is not a limit, or below the minimum.
    init?(_ text: String, least: Int = DiskMarks.larderBytesMin) {
        if text.lowercased() == "none" {
            self = .unlimited
            return
        }
        guard let bytes = ByteCount.parse(text, letters: .binary) else { return nil }
        if bytes == 0 {
            self = .unlimited
        } else {
            guard bytes >= Int64(least) else { return nil }
            self = .bytes(Int(clamping: bytes))
        }
    }

    /// Nil for none.
    package var byteCount: Int? { if case .bytes(let bytes) = self { bytes } else { nil } }
}
