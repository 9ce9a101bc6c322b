// Formats times and time spans.

/// Formats times. Accepts all numbers, because a server's numbers may be invalid.
enum TimeText {
    /// Milliseconds as seconds with three decimals: `12.345`.
    static func seconds(_ milliseconds: Int64) -> String {
        let (whole, rest) = milliseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        return (milliseconds < 0 ? "-" : "") + "\(whole).\(padded(rest, 3))"
    }

    /// A span in the largest unit that divides it: `7 days`, `90 seconds`, `1 hour`.
    static func span(_ milliseconds: Int64) -> String {
        for (length, unit) in [(86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second")] {
            let (count, rest) = milliseconds.quotientAndRemainder(dividingBy: Int64(length))
            if rest == 0, count != 0 { return "\(count) \(unit)" + (count == 1 ? "" : "s") }
        }
        return seconds(milliseconds) + " seconds"
    }

    /// A time span in its two largest units: `850 ms`, `59 s`, `12 min 05 s`, `3 h 07 min`, `6 d 23 h`.
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

    /// Seconds since 1970 as date and time: `2026-01-31 23:59:59 UTC`. Values outside of the range of milliseconds are
    /// clamped.
    static func instant(seconds: Int64) -> String {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        let text = instant(overflow ? (seconds < 0 ? .min : .max) : product)
        return text.prefix { $0 != "." } + " UTC"
    }

    /// Milliseconds since 1970 as date and time: `2026-01-31 23:59:59.999 UTC`.
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

    /// The date of a day, counted from 1 January 1970, in the Gregorian calendar.
    private static func date(dayNumber: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // Years that start on 1 March put leap days at their end; 400 years have 146,097 days. The day number of an
        // Int64 in milliseconds is too small for these sums to overflow.
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
