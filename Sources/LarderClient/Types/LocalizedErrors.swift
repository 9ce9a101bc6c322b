#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Foundation shows errors by `localizedDescription`, which does not use `description`.

extension LarderClientError: LocalizedError {
    /// The same text as ``description``.
    public var errorDescription: String? { description }
}
