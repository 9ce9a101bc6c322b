/// The encoder that a model's `encode(to:)` gets.
struct ValueWriter: Encoder {
    let level: OpenLevel

    init(_ level: OpenLevel) { self.level = level }

    var codingPath: [any CodingKey] { level.path }
    var userInfo: [CodingUserInfoKey: Any] { level.state.userInfo }

    // These functions cannot throw, so ``JSONCoder`` checks at the end whether the document is irregular.

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        try? level.core.pointee.decide(level, .object)
        return KeyedEncodingContainer(KeyedWriter<Key>(level))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        try? level.core.pointee.decide(level, .array)
        return UnkeyedWriter(level)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    /// Writes the single value of this level.
    @inline(__always) private func write(_ body: (inout EncodingCore) -> Void) throws {
        try level.core.pointee.decide(level, .scalar)
        body(&level.core.pointee)
    }
}

extension ValueWriter: SingleValueEncodingContainer {
    func encodeNil() throws { try write { $0.text.append("null") } }
    func encode(_ value: Bool) throws { try write { $0.text.append(isTrue: value) } }
    func encode(_ value: String) throws { try write { $0.text.append(quoting: value) } }
    func encode(_ value: Double) throws { try encodeValue(value) }
    func encode(_ value: Float) throws { try encodeValue(value) }
    func encode<Value: FixedWidthInteger & Encodable>(_ value: Value) throws {
        try write { $0.text.append(integer: value) }
    }
    // The protocol has default implementations of these functions, which Swift prefers to a generic function.
    func encode(_ value: Int128) throws { try write { $0.text.append(integer: value) } }
    func encode(_ value: UInt128) throws { try write { $0.text.append(integer: value) } }
    func encode<Value: Encodable>(_ value: Value) throws { try encodeValue(value) }

    private func encodeValue<Value: Encodable>(_ value: Value) throws {
        try level.write(value, nil) { try $0.decide(level, .scalar) }
    }
}
