/// The key of an entry: text, any bytes, an integer, a UUID.
///
/// `String`, `Substring` and `[UInt8]` are keys. An integer is the text of its decimal digits: `42` and `"42"` are one
/// key, for other programs too. A `UInt8` is a byte and not a key. A `UUID` is its `uuidString`. A type with such a raw
/// value is a key if it is declared as one:
///
/// ```swift
/// enum Setting: String, CacheKey { case theme, language }
/// try cache.set("dark", forKey: Setting.theme)
/// ```
///
/// Keys are equal if their bytes are equal. Swift considers strings equal that only look the same ("é" as one scalar or
/// as two); here they are two keys, as they are for every other program that reads the larder. A key has at most 65,536
/// bytes; the empty key is allowed.
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
    /// The key's bytes, copied.
    package var keyBytes: [UInt8] { withKeyBytes { [UInt8]($0) } }
}
