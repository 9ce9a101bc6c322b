/// What an entry can be found by: text, any bytes, a whole number, a UUID.
///
/// `String`, `Substring` and `[UInt8]` are keys. Integers are the text of their decimal digits, so that `42` and `"42"` are
/// one key, for other programs too; a `UInt8` is a byte and no key. A `UUID` is its `uuidString`. So is every type with such
/// a raw value that is declared to be one:
///
/// ```swift
/// enum Setting: String, CacheKey { case theme, language }
/// try cache.set("dark", forKey: Setting.theme)
/// ```
///
/// Keys are the same when their bytes are the same. Swift holds strings for equal that only look the same ("é" as one
/// scalar or as two); here they are two keys, as they are for every other program that reads the larder. A key has at
/// most 65,536 bytes; the empty key is allowed.
public protocol CacheKey {
    /// Calls `body` once with the key's bytes, which are valid only inside it.
    func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result
}

extension String: CacheKey {
    /// Calls `body` with the UTF-8 of the string.
    @inlinable public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // Most strings have their UTF-8 in one piece, and can be read without the copy that others need.
        if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
        var text = self
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}

extension Substring: CacheKey {
    /// Calls `body` with the UTF-8 of the text.
    @inlinable public func withKeyBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // Most strings have their UTF-8 in one piece, and can be read without the copy that others need.
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
    /// Calls `body` with the decimal digits of the number, behind `-` where it is negative.
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
    /// The key's bytes, copied.
    package var keyBytes: [UInt8] { withKeyBytes { [UInt8]($0) } }
}
