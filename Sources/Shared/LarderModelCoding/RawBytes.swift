#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The types that are bytes or text, which the standard codec stores unchanged.
package enum RawBytes {
    /// Whether a type is `String` or an optional of it.
    package static func isText(_ type: Any.Type) -> Bool { type == String.self || type == String?.self }

    /// Whether a type is one of the byte array types, or an optional of such a type.
    package static func isHeld(by type: Any.Type) -> Bool {
        type == Data.self || type == [UInt8].self || type == Data?.self || type == [UInt8]?.self
            || type == ContiguousArray<UInt8>.self || type == ContiguousArray<UInt8>?.self
    }

    /// Returns the bytes of a value of one of these types; nil for other types, and for a nil optional.
    static func payload<Value>(of value: Value) -> Payload? {
        guard isHeld(by: Value.self) || isText(Value.self) else { return nil }
        switch value {
        case let text as String: return .bytes(Array(text.utf8))
        case let data as Data: return .data(data)
        case let bytes as [UInt8]: return .bytes(bytes)
        case let bytes as ContiguousArray<UInt8>: return .bytes(Array(bytes))
        default: return nil
        }
    }

    /// Returns the bytes as a value of one of the byte array types; nil for other types.
    static func value<Value>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) -> Value? {
        guard isHeld(by: type) else { return nil }
        if type == Data.self || type == Data?.self { return Data(bytes) as? Value }
        if type == [UInt8].self || type == [UInt8]?.self { return Array(bytes) as? Value }
        return ContiguousArray(bytes) as? Value
    }
}
