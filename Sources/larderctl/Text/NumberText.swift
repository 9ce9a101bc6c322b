/// Formats numbers in a compact form.
enum NumberText {
    /// Formats a count with at most three significant digits: `0`, `7.5`, `812`, `12.4k`, `3.1M`.
    static func count(_ value: Double) -> String {
        guard value.isFinite, value >= 0 else { return "?" }
        if value < 1000 { return value < 100 && value.rounded() != value ? fixed(value, 1) : "\(Int(value.rounded()))" }
        var (value, unit) = (value, "")
        for larger in ["k", "M", "G", "T"] where value >= 999.5 { (value, unit) = (value / 1000, larger) }
        return value >= 1e6 ? "?" : (value < 100 ? fixed(value, 1) : "\(Int(value.rounded()))") + unit
    }

    /// Formats a duration given in microseconds: `7 us`, `1.5 ms`, `2.0 s`, `3.5 min`; `?` for nil.
    static func microseconds(_ value: Double?) -> String {
        guard let value, value.isFinite, value >= 0 else { return "?" }
        if value < 999.5 {
            return (value < 10 && value.rounded() != value ? fixed(value, 1) : "\(Int(value.rounded()))") + " us"
        }
        if value < 999_500 { return fixed(value / 1000, value < 100_000 ? 1 : 0) + " ms" }
        if value < 60_000_000 { return fixed(value / 1_000_000, 1) + " s" }
        return value < 6e15 ? fixed(value / 60_000_000, 1) + " min" : "?"
    }

    /// Formats a fraction as a percentage: `93.5 %`; `-` for nil.
    static func percent(_ share: Double?) -> String { share.map { fixed($0 * 100, 1) + " %" } ?? "-" }

    /// Formats a duration given in seconds: `3d 04:05:06`, or `04:05:06`.
    static func duration(_ seconds: Int64) -> String {
        let seconds = max(0, seconds)
        let clock = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60].map { TimeText.padded($0, 2) }
            .joined(separator: ":")
        return seconds >= 86_400 ? "\(seconds / 86_400)d \(clock)" : clock
    }

    /// Returns the nearest integer; 0 if the value is not finite.
    static func whole(_ value: Double) -> Int { value.isFinite ? Int(min(max(value, -1e18), 1e18).rounded()) : 0 }

    static func fixed(_ value: Double, _ digits: Int) -> String {
        guard value.isFinite, abs(value) < 1e12 else { return "?" }
        let scale = digits == 0 ? 1.0 : digits == 1 ? 10.0 : 100.0
        let scaled = Int((value * scale).rounded())
        if digits == 0 { return "\(scaled)" }
        let (whole, rest) = scaled.magnitude.quotientAndRemainder(dividingBy: UInt(scale))
        return (scaled < 0 ? "-" : "") + "\(whole)." + TimeText.padded(rest, digits)
    }
}

/// Formats numbers of bytes.
enum ByteText {
    /// Formats a size in a suitable unit: `512 B`, `1.5 KiB`, `64 MiB`.
    static func short(_ bytes: some BinaryInteger) -> String {
        var value = Double(bytes)
        var unit = 0
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        while value >= 1023.5, unit + 1 < units.count {
            value /= 1024
            unit += 1
        }
        let tenths = (value * 10).rounded()
        if unit == 0 || tenths >= 100 || tenths.truncatingRemainder(dividingBy: 10) == 0 {
            return "\(Int(value.rounded())) \(units[unit])"
        }
        return "\(Int(tenths) / 10).\(Int(tenths) % 10) \(units[unit])"
    }
}
