/// The unkeyed container into which a model writes the elements of an array.
struct UnkeyedWriter: UnkeyedEncodingContainer {
    private let level: OpenLevel

    init(_ level: OpenLevel) { self.level = level }

    var codingPath: [any CodingKey] { level.path }
    var count: Int { level.core.pointee.count(level) }

    /// Writes an element that can always be encoded.
    @inline(__always) private func write(_ body: (inout EncodingCore) -> Void) throws {
        try level.core.pointee.beginElement(level)
        body(&level.core.pointee)
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
        try level.write(value, PathStep(index: index)) { try $0.beginElement(level) }
    }

    // MARK: Nested

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
        KeyedEncodingContainer(KeyedWriter<Nested>(nest(.object)))
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { UnkeyedWriter(nest(.array)) }
    func superEncoder() -> any Encoder { ValueWriter(nest(.undecided)) }

    private func nest(_ kind: Level.Kind) -> OpenLevel {
        level.nest(kind, PathStep(index: count)) { try $0.beginElement(level) }
    }
}
