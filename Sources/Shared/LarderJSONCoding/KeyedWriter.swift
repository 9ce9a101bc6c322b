/// The keyed container into which a model writes the fields of an object.
struct KeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    private let level: OpenLevel

    init(_ level: OpenLevel) { self.level = level }

    var codingPath: [any CodingKey] { level.path }

    /// Writes a field whose value can always be encoded.
    @inline(__always) private func write(_ key: Key, _ body: (inout EncodingCore) -> Void) throws {
        try level.core.pointee.beginField(key.stringValue, level)
        body(&level.core.pointee)
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
        try level.write(value, PathStep(key)) { try $0.beginField(key.stringValue, level) }
    }

    // MARK: Nested

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<
        Nested
    > { KeyedEncodingContainer(KeyedWriter<Nested>(nest(.object, key))) }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { UnkeyedWriter(nest(.array, key)) }
    func superEncoder() -> any Encoder { ValueWriter(nest(.undecided, PlainKey.superclass)) }
    func superEncoder(forKey key: Key) -> any Encoder { ValueWriter(nest(.undecided, key)) }

    private func nest(_ kind: Level.Kind, _ key: some CodingKey) -> OpenLevel {
        level.nest(kind, PathStep(key)) { try $0.beginField(key.stringValue, level) }
    }
}
