/// A type that can be the key of an entry: text, bytes, an integer or a UUID.
///
/// `String`, `Substring` and `[UInt8]` are keys. An integer is stored as its decimal digits: `42` and `"42"` are the
/// same key, also in other programs. `UInt8` is not a key, because it means a byte. A `UUID` is stored as its
/// `uuidString`. A type whose raw value is a key becomes a key by declaring the conformance:
///
/// ```swift
/// enum Setting: String, CacheKey { case theme, language }
/// try cache.set("dark", forKey: Setting.theme)
/// ```
///
/// Keys are equal if their bytes are equal. Two strings that Swift considers equal ("é" as one scalar or as two) may
/// have different bytes. Such strings are different keys, as in all other programs that read the larder. A key has at
/// most 65,536 bytes; the empty key is allowed.
public protocol CacheKey {
    /// Calls `body` once with the key's bytes. They are valid only during the call.
    func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result
}

extension String: CacheKey {
    /// Calls `body` with the UTF-8 of the string.
    @inlinable public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // Read the UTF-8 in place if it is contiguous, as in most strings. Otherwise copy it.
        if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
        var text = self
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}

extension Substring: CacheKey {
    /// Calls `body` with the UTF-8 of the text.
    @inlinable public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // Read the UTF-8 in place if it is contiguous, as in most strings. Otherwise copy it.
        if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
        var text = self
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}

extension [UInt8]: CacheKey {
    /// Calls `body` with the bytes.
    @inlinable public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes { body($0) }
    }
}

extension Int: CacheKey {}
extension Int16: CacheKey {}
extension Int32: CacheKey {}
extension Int64: CacheKey {}
extension UInt: CacheKey {}
extension UInt16: CacheKey {}
extension UInt32: CacheKey {}
extension UInt64: CacheKey {}

extension CacheKey where Self: FixedWidthInteger {
    /// Calls `body` with the decimal digits of the number, after `-` if it is negative.
    @inlinable public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        description.withKeyBytes(body)
    }
}

extension CacheKey where Self: RawRepresentable, RawValue: CacheKey {
    /// Calls `body` with the bytes of the raw value.
    @inlinable public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        rawValue.withKeyBytes(body)
    }
}

extension CacheKey {
    /// A copy of the key's bytes.
    package var keyBytes: [UInt8] { withKeyBytes { [UInt8]($0) } }
}
