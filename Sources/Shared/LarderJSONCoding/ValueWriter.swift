/// The encoder that a model's `encode(to:)` gets.
struct ValueWriter: Encoder {
    let state: EncodingState
    private let depth: Int32
    private let serial: UInt64

    init(_ state: EncodingState, _ depth: Int, _ serial: UInt64) {
        self.state = state
        self.depth = Int32(truncatingIfNeeded: depth)
        self.serial = serial
    }

    var codingPath: [any CodingKey] { state.core.pointee.path(upTo: Int(depth)) }
    var userInfo: [CodingUserInfoKey: Any] { state.userInfo }

    // These functions cannot throw, so ``JSONCoder`` checks at the end whether the document is irregular.

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        try? state.core.pointee.decide(Int(depth), serial, .object)
        return KeyedEncodingContainer(KeyedWriter<Key>(state, Int(depth), serial))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        try? state.core.pointee.decide(Int(depth), serial, .array)
        return UnkeyedWriter(state, Int(depth), serial)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    /// Writes the single value of this level.
    @inline(__always) private func write(_ body: (inout EncodingCore) -> Void) throws {
        try state.core.pointee.decide(Int(depth), serial, .scalar)
        body(&state.core.pointee)
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
        try state.write(value, Int(depth), serial, nil) { try $0.decide(Int(depth), serial, .scalar) }
    }
}
