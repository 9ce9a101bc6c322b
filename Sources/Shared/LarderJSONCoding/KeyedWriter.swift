/// The keyed container into which a model writes the fields of an object.
struct KeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    private let state: EncodingState
    private let depth: Int
    private let serial: UInt64

    init(_ state: EncodingState, _ depth: Int, _ serial: UInt64) {
        self.state = state
        self.depth = depth
        self.serial = serial
    }

    var codingPath: [any CodingKey] { state.core.pointee.path(upTo: depth) }

    /// Writes a field whose value can always be encoded.
    @inline(__always) private func write(_ key: Key, _ body: (inout EncodingCore) -> Void) throws {
        try state.core.pointee.beginField(key.stringValue, depth, serial)
        body(&state.core.pointee)
    }

    func encodeNil(forKey key: Key) throws { try write(key) { $0.text.append("null") } }
    func encode(_ value: Bool, forKey key: Key) throws { try write(key) { $0.text.append(isTrue: value) } }
    func encode(_ value: String, forKey key: Key) throws { try write(key) { $0.text.append(quoting: value) } }
    func encode(_ value: Double, forKey key: Key) throws { try encodeValue(value, key) }
    func encode(_ value: Float, forKey key: Key) throws { try encodeValue(value, key) }
    // Inlined, because Swift does not specialize a generic function of a generic type for the integer type alone.
    @inline(__always)
    func encode<Value: FixedWidthInteger & Encodable>(_ value: Value, forKey key: Key) throws {
        try write(key) { $0.text.append(integer: value) }
    }
    // The protocol has default implementations of these functions, which Swift prefers to a generic function.
    func encode(_ value: Int128, forKey key: Key) throws { try write(key) { $0.text.append(integer: value) } }
    func encode(_ value: UInt128, forKey key: Key) throws { try write(key) { $0.text.append(integer: value) } }
    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try encodeValue(value, key) }

    private func encodeValue<Value: Encodable>(_ value: Value, _ key: Key) throws {
        try state.write(value, depth, serial, PathStep(key)) { try $0.beginField(key.stringValue, depth, serial) }
    }

    // MARK: Nested

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<
        Nested
    > {
        let nested = nest(.object, key)
        return KeyedEncodingContainer(KeyedWriter<Nested>(state, nested.depth, nested.serial))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        let nested = nest(.array, key)
        return UnkeyedWriter(state, nested.depth, nested.serial)
    }

    func superEncoder() -> any Encoder {
        let nested = nest(.undecided, PlainKey.superclass)
        return ValueWriter(state, nested.depth, nested.serial)
    }

    func superEncoder(forKey key: Key) -> any Encoder {
        let nested = nest(.undecided, key)
        return ValueWriter(state, nested.depth, nested.serial)
    }

    private func nest(_ kind: Level.Kind, _ key: some CodingKey) -> (depth: Int, serial: UInt64) {
        state.nest(kind, PathStep(key)) { try $0.beginField(key.stringValue, depth, serial) }
    }
}
