import LarderVocabulary

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension UUID: CacheKey {
    /// Calls `body` with the 36 bytes of `uuidString`, which has capital letters.
    public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        uuidString.withKeyBytes(body)
    }
}
