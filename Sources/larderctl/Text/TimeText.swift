import LarderPlatform

/// Formats times and durations. Accepts all numbers, because a server may send invalid ones.
enum TimeText {
    /// Formats milliseconds as seconds with three decimals: `12.345`.
    static func seconds(_ milliseconds: Int64) -> String {
        let (whole, rest) = milliseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        return (milliseconds < 0 ? "-" : "") + "\(whole).\(padded(rest, 3))"
    }

    /// Formats a duration in the largest unit of which it is a whole multiple: `7 days`, `90 seconds`, `1 hour`.
    static func span(_ milliseconds: Int64) -> String {
        for (length, unit) in [(86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second")] {
            let (count, rest) = milliseconds.quotientAndRemainder(dividingBy: Int64(length))
            if rest == 0, count != 0 { return "\(count) \(unit)" + (count == 1 ? "" : "s") }
        }
        return seconds(milliseconds) + " seconds"
    }

    /// Formats a duration in one or two suitable units: `850 ms`, `59 s`, `12 min 05 s`, `3 h 07 min`, `6 d 23 h`.
    static func short(_ milliseconds: Int64) -> String {
        let sign = milliseconds < 0 ? "-" : ""
        let span = milliseconds.magnitude
        let seconds = span / 1000
        func two(_ large: UInt64, _ unit: String, _ small: UInt64, _ smaller: String) -> String {
            "\(sign)\(large) \(unit) \(padded(small, 2)) \(smaller)"
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
        return dateTime(seconds) + ".\(padded(fraction, 3)) UTC"
    }

    private static func dateTime(_ seconds: Int64) -> String {
        var (time, parts) = (time_t(seconds), tm())
        // The year of an extreme value does not fit.
        guard gmtime_r(&time, &parts) != nil else { return "?" }
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded($0, 2) }.joined(separator: ":")
        return "\(Int(parts.tm_year) + 1900)-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2)) \(clock)"
    }

    /// Returns a number with zeros before it, up to a width.
    static func padded(_ number: some BinaryInteger, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
