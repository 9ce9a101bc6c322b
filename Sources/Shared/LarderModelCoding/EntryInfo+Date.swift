#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Times as Foundation's `Date`.

extension EntryInfo {
    /// When the value was last written.
    public var storedAt: Date { Date(timeIntervalSince1970: Double(storedAtMilliseconds) / 1000) }

    /// The instant from which the entry is no longer returned; nil if it does not expire.
    public var deadline: Date? {
        deadlineMilliseconds.map { Date(timeIntervalSince1970: Double($0) / 1000) }
    }
}
