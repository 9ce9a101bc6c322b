#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension EntryPolicy {
    /// Until an instant, kept to whole milliseconds. In the past means expired at once. The call that stores the entry
    /// throws `invalidArgument` for instants after the year 5138, for ever is ``never``, and for one that is no number.
    public static func until(_ instant: Date) -> EntryPolicy {
        let milliseconds = (instant.timeIntervalSince1970 * 1000).rounded()
        if milliseconds.isNaN { return untilNotANumber }
        // Beyond what Int64 holds is past or future enough to be judged the same.
        if milliseconds < -9e18 { return until(millisecondsSince1970: .min) }
        guard milliseconds < 9e18 else { return until(millisecondsSince1970: .max) }
        return until(millisecondsSince1970: Int64(milliseconds))
    }
}
