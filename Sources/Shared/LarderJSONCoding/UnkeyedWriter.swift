/// The unkeyed container into which a model writes the elements of an array.
struct UnkeyedWriter: UnkeyedEncodingContainer {
    private let state: EncodingState
    private let depth: Int
    private let serial: UInt64

    init(_ state: EncodingState, _ depth: Int, _ serial: UInt64) {
        self.state = state
        self.depth = depth
        self.serial = serial
    }

    var codingPath: [any CodingKey] { state.core.pointee.path(upTo: depth) }
    var count: Int { state.core.pointee.count(depth, serial) }

    /// Writes an element that can always be encoded.
    @inline(__always) private func write(_ body: (inout EncodingCore) -> Void) throws {
        try state.core.pointee.beginElement(depth, serial)
        body(&state.core.pointee)
    }

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
        let index = count
        try state.write(value, depth, serial, PathStep(index: index)) { try $0.beginElement(depth, serial) }
    }

    // MARK: Nested

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        let nested = nest(.object)
        return KeyedEncodingContainer(KeyedWriter<Nested>(state, nested.depth, nested.serial))
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        let nested = nest(.array)
        return UnkeyedWriter(state, nested.depth, nested.serial)
    }

    func superEncoder() -> any Encoder {
        let nested = nest(.undecided)
        return ValueWriter(state, nested.depth, nested.serial)
    }

    private func nest(_ kind: Level.Kind) -> (depth: Int, serial: UInt64) {
        state.nest(kind, PathStep(index: count)) { try $0.beginElement(depth, serial) }
    }
}
