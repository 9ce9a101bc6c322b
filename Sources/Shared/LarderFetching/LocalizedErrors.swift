#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Foundation shows errors by `localizedDescription`, which does not use `description`.

extension FetchError: LocalizedError {
    /// The description of the error.
    public var errorDescription: String? { description }
}
