import LarderVocabulary

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// The times of an entry as Foundation's `Date`.

extension EntryInfo {
    /// When the value was last written.
    public var storedAt: Date { Date(timeIntervalSince1970: Double(storedAtMilliseconds) / 1000) }

    /// When the entry expires; nil if it does not.
    public var deadline: Date? {
        deadlineMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) }
    }
}

extension EntryPolicy {
    /// The entry expires at this time, rounded to whole milliseconds. An entry with a time in the past counts as
    /// expired. The call that stores the entry throws `invalidArgument` for times after the year 5138, and for NaN. Use
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

extension UUID: CacheKey {
    /// Calls `body` with the 36 bytes of `uuidString`, which has capital letters.
    public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        uuidString.withKeyBytes(body)
    }
}
