#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Foundation shows errors by `localizedDescription`, which knows nothing of `description`.

extension LarderError: LocalizedError {
    /// The error in words, as `description`.
    public var errorDescription: String? { description }
}
