#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension EntryPolicy {
    /// The entry expires at this time, rounded to whole milliseconds. With a time in the past, it is expired at once.
    /// The call that stores the entry throws `invalidArgument` for times after the year 5138, and for NaN. Use
    /// ``never`` for entries that do not expire.
    public static func until(_ instant: Date) -> EntryPolicy {
        let milliseconds = (instant.timeIntervalSince1970 * 1000).rounded()
        if milliseconds.isNaN { return untilNotANumber }
        // Times that do not fit into Int64 are treated as the earliest or the latest time.
        if milliseconds < -9e18 { return until(millisecondsSince1970: .min) }
        guard milliseconds < 9e18 else { return until(millisecondsSince1970: .max) }
        return until(millisecondsSince1970: Int64(milliseconds))
    }
}
