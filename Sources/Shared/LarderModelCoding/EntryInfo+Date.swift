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
