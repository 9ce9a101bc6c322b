/// Parses sizes in the forms that users write: `67108864`, `64M`, `64Mi`, `64mb`, `64MiB`.
package enum ByteCount {
    /// The meaning of `K`, `M`, `G` or `T` without a `b` after the letter.
    package enum Letters {
        /// `1k` is 1024 bytes, as in the options of Larder's programs.
        case binary
        /// `1k` is 1000 bytes, as in Redis' settings.
        case decimal
    }

    /// The description of a valid size, for error messages.
    package static let rule = "a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB"

    /// Parses a size, ignoring case. Units that end in `b`, `i` or `ib` are powers of 1024.
    /// - Returns: nil if the text is malformed, or the number does not fit into an Int64.
    package static func parse(_ text: String, letters: Letters) -> Int64? {
        let lower = text.lowercased()
        let digits = lower.utf8.prefix { $0 >= 0x30 && $0 <= 0x39 }
        guard let number = Int64(String(decoding: digits, as: UTF8.self)) else { return nil }
        let unit = lower.dropFirst(digits.count)
        guard let factor = factor(unit, letters) else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : bytes
    }

    private static func factor(_ unit: Substring, _ letters: Letters) -> Int64? {
        guard let letter = unit.first, unit != "b" else { return 1 }
        guard let power = "kmgt".firstIndex(of: letter).map({ "kmgt".distance(from: "kmgt".startIndex, to: $0) + 1 })
        else { return nil }
        switch unit.dropFirst() {
        case "": return letters == .binary ? 1 << (10 * power) : (0..<power).reduce(1) { value, _ in value * 1000 }
        case "b", "i", "ib": return 1 << (10 * power)
        default: return nil
        }
    }
}
