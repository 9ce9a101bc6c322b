#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension EntryPolicy {
    /// A lifetime that ends at an instant, in whole milliseconds. An instant in the past means that the entry is
    /// expired at once. The call that stores the entry throws `invalidArgument` for instants after the year 5138 (for
    /// no expiry use ``never``), and for one that is not a number.
    public static func until(_ instant: Date) -> EntryPolicy {
        let milliseconds = (instant.timeIntervalSince1970 * 1000).rounded()
        if milliseconds.isNaN { return untilNotANumber }
        // Instants that Int64 cannot hold are still clearly past or future.
        if milliseconds < -9e18 { return until(millisecondsSince1970: .min) }
        guard milliseconds < 9e18 else { return until(millisecondsSince1970: .max) }
        return until(millisecondsSince1970: Int64(milliseconds))
    }
}
