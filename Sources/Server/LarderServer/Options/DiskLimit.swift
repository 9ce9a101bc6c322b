import LarderEngine

/// A limit for disk space, as given to the option `--max-disk` and the command `LIMIT`.
package enum DiskLimit: Sendable, Equatable {
    case unlimited
    case bytes(Int)

    /// The description of valid limits for a larder, used in error messages.
    static let rule = "\(ByteCount.rule), at least \(DiskThresholds.larderBytesMin >> 20)M; or 0 or none for no limit"
    /// The description of valid limits for a database, used in error messages.
    static let databaseRule =
        "\(ByteCount.rule), at least \(DiskThresholds.databaseBytesMin >> 20)M; or 0 or none for no limit"

    /// Parses a limit.
    /// - Parameter least: the smallest valid limit, in bytes.
    /// - Returns: nil if the text is not a limit, or the limit is below `least`.
    init?(_ text: String, least: Int = DiskThresholds.larderBytesMin) {
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

    /// The limit in bytes; nil for no limit.
    package var byteCount: Int? { if case .bytes(let bytes) = self { bytes } else { nil } }
}
