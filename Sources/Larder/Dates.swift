#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Instants as Foundation's Date, for those who have them so.

extension EntryInfo {
    /// When the value was last written.
    public var storedAt: Date { Date(timeIntervalSince1970: Double(storedAtMilliseconds) / 1000) }

    /// The instant from which the entry is not handed out; nil when it does not expire.
    public var deadline: Date? {
        deadlineMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) }
    }
}

extension EntryPolicy {
    /// Until an instant, kept to whole milliseconds. In the past means expired at once. The call that stores the entry
    /// throws ``LarderError/Code/invalidArgument`` for instants after the year 5138: for ever is ``never``.
    public static func until(_ instant: Date) -> EntryPolicy {
        let milliseconds = (instant.timeIntervalSince1970 * 1000).rounded()
        // Beyond what Int64 holds is past or future enough to be judged the same; what is no number is refused.
        if milliseconds < -9e18 { return until(millisecondsSince1970: .min) }
        guard milliseconds < 9e18 else { return until(millisecondsSince1970: .max) }
        return until(millisecondsSince1970: Int64(milliseconds))
    }
}
