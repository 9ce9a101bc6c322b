#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Without this conformance, Foundation's `localizedDescription` of an error would not contain its `description`.

extension LarderError: LocalizedError {
    /// The error in words, as `description`.
    public var errorDescription: String? { description }
}
