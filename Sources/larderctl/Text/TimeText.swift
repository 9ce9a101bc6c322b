// Formats times and durations.

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

    /// Formats seconds since 1970 as date and time: `2026-01-31 23:59:59 UTC`. Clamps extreme values.
    static func instant(seconds: Int64) -> String {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        let text = instant(overflow ? (seconds < 0 ? .min : .max) : product)
        return text.prefix { $0 != "." } + " UTC"
    }

    /// Formats milliseconds since 1970 as date and time: `2026-01-31 23:59:59.999 UTC`.
    static func instant(_ milliseconds: Int64) -> String {
        let dayLength: Int64 = 86_400_000
        var (day, inDay) = milliseconds.quotientAndRemainder(dividingBy: dayLength)
        if inDay < 0 { (day, inDay) = (day - 1, inDay + dayLength) }
        let (year, month, monthDay) = date(dayNumber: day)
        let (secondOfDay, fraction) = inDay.quotientAndRemainder(dividingBy: 1000)
        let time = [secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60]
        return "\(year)-\(padded(month, 2))-\(padded(monthDay, 2)) "
            + time.map { padded($0, 2) }.joined(separator: ":") + ".\(padded(fraction, 3)) UTC"
    }

    /// Returns the Gregorian date of a day, counted from 1 January 1970.
    private static func date(dayNumber: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // Compute with years that start on 1 March, so that the leap day is the last day of a year. 400 years have
        // 146,097 days. The sums cannot overflow, because day numbers of 64-bit milliseconds are small.
        let shifted = dayNumber + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    }

    private static func padded(_ number: some BinaryInteger, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
