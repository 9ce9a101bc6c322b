import LarderPlatform
import LarderVocabulary

/// Formats numbers in a compact form. Accepts all numbers, because a server may send invalid ones.
enum NumberText {
    /// Formats a count with at most three significant digits: `0`, `7.5`, `812`, `12.4k`, `3.1M`.
    static func count(_ value: Double) -> String {
        guard value.isFinite, value >= 0 else { return "?" }
        if value < 1000 { return fixed(value, value < 100 && value.rounded() != value ? 1 : 0) }
        var (value, unit) = (value, "")
        for larger in ["k", "M", "G", "T"] where value >= 999.5 { (value, unit) = (value / 1000, larger) }
        return value >= 1e6 ? "?" : fixed(value, value < 100 ? 1 : 0) + unit
    }

    /// Formats a duration given in microseconds: `7 us`, `1.5 ms`, `2.0 s`, `3.5 min`; `?` for nil.
    static func microseconds(_ value: Double?) -> String {
        guard let value, value.isFinite, value >= 0 else { return "?" }
        if value < 999.5 { return fixed(value, value < 10 && value.rounded() != value ? 1 : 0) + " us" }
        if value < 999_500 { return fixed(value / 1000, value < 100_000 ? 1 : 0) + " ms" }
        if value < 60_000_000 { return fixed(value / 1_000_000, 1) + " s" }
        return value < 6e15 ? fixed(value / 60_000_000, 1) + " min" : "?"
    }

    /// Formats a fraction as a percentage: `93.5 %`; `-` for nil.
    static func percent(_ share: Double?) -> String { share.map { fixed($0 * 100, 1) + " %" } ?? "-" }

    /// Formats a duration given in seconds: `3d 04:05:06`, or `04:05:06`.
    static func duration(_ seconds: Int64) -> String {
        let seconds = max(0, seconds)
        let clock = TimeText.clock(seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
        return seconds >= 86_400 ? "\(seconds / 86_400)d \(clock)" : clock
    }

    /// Returns the nearest integer; 0 if the value is not finite.
    static func whole(_ value: Double) -> Int { value.isFinite ? Int(min(max(value, -1e18), 1e18).rounded()) : 0 }

    /// - Parameter digits: the number of decimals: 0 or 1.
    private static func fixed(_ value: Double, _ digits: Int) -> String {
        guard value.isFinite, abs(value) < 1e12 else { return "?" }
        return digits == 0 ? "\(Int(value.rounded()))" : "\((value * 10).rounded() / 10)"
    }

    /// Formats a number of bytes in a suitable unit: `512 B`, `1.5 KiB`, `64 MiB`.
    static func bytes(_ bytes: some BinaryInteger) -> String {
        var (value, unit) = (Double(bytes), "B")
        for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] where value >= 1023.5 {
            (value, unit) = (value / 1024, larger)
        }
        let rounded = (value * 10).rounded() / 10
        return "\(fixed(value, unit == "B" || rounded >= 10 || rounded == rounded.rounded() ? 0 : 1)) \(unit)"
    }
}

/// Formats times and durations. Accepts all numbers, because a server may send invalid ones.
enum TimeText {
    /// Formats milliseconds as seconds with three decimals: `12.345`.
    static func seconds(_ milliseconds: Int64) -> String {
        let span = milliseconds.magnitude
        return (milliseconds < 0 ? "-" : "") + "\(span / 1000).\((span % 1000).zeroPadded(3))"
    }

    /// Formats a duration in the largest unit of which it is a whole multiple: `7 days`, `90 seconds`, `1 hour`.
    static func span(_ milliseconds: Int64) -> String {
        for (length, unit) in [(86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second")] {
            let (count, rest) = milliseconds.quotientAndRemainder(dividingBy: Int64(length))
            if rest == 0, count != 0 { return counted(count, unit) }
        }
        return seconds(milliseconds) + " seconds"
    }

    /// Formats a duration in one or two suitable units: `850 ms`, `59 s`, `12 min 05 s`, `3 h 07 min`, `6 d 23 h`.
    static func short(_ milliseconds: Int64) -> String {
        let sign = milliseconds < 0 ? "-" : ""
        let span = milliseconds.magnitude
        let seconds = span / 1000
        func two(_ large: UInt64, _ unit: String, _ small: UInt64, _ smaller: String) -> String {
            "\(sign)\(large) \(unit) \(small.zeroPadded(2)) \(smaller)"
        }
        if span < 1000 { return "\(sign)\(span) ms" }
        if seconds < 60 { return "\(sign)\(seconds) s" }
        if seconds < 3600 { return two(seconds / 60, "min", seconds % 60, "s") }
        if seconds < 86_400 { return two(seconds / 3600, "h", seconds / 60 % 60, "min") }
        return two(seconds / 86_400, "d", seconds / 3600 % 24, "h")
    }

    /// Formats seconds since 1970 as date and time: `2026-01-31 23:59:59 UTC`.
    static func instant(seconds: Int64) -> String { dateTime(seconds) + " UTC" }

    /// Formats milliseconds since 1970 as date and time: `2026-01-31 23:59:59.999 UTC`.
    static func instant(_ milliseconds: Int64) -> String {
        // Round down, also before 1970.
        let fraction = (milliseconds % 1000 + 1000) % 1000
        let seconds = milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0)
        return dateTime(seconds) + ".\(fraction.zeroPadded(3)) UTC"
    }

    private static func dateTime(_ seconds: Int64) -> String {
        var (time, parts) = (time_t(seconds), tm())
        // The year of an extreme value does not fit.
        guard gmtime_r(&time, &parts) != nil else { return "?" }
        return "\(Int(parts.tm_year) + 1900)-\((parts.tm_mon + 1).zeroPadded(2))-\(parts.tm_mday.zeroPadded(2)) "
            + clock(parts.tm_hour, parts.tm_min, parts.tm_sec)
    }

    /// Formats a time as `04:05:06`.
    static func clock<Number: BinaryInteger>(_ numbers: Number...) -> String {
        numbers.map { $0.zeroPadded(2) }.joined(separator: ":")
    }
}
