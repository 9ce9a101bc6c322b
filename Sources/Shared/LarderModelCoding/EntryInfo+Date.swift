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
