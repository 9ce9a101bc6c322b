/// The keyed container from which a model reads the fields of an object.
struct KeyedReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let state: DecodingState
    private let object: Int
    private let place: Place

    /// - Parameters:
    ///   - node: the node of the object. The initializer throws a type mismatch if it is not an object.
    ///   - place: the place of the node, or of the parent container if `step` is not nil.
    ///   - step: the step from the parent to a nested container; nil if `place` is the place of the node itself.
    init(_ state: DecodingState, _ node: Int, _ place: Place, _ step: PathStep?) throws {
        guard state.core.pointee.node(node).kind == .object else {
            throw state.mismatch([String: Any].self, node, place, step)
        }
        self.state = state
        object = node
        self.place = step.map { state.core.pointee.enterNested(place, $0) } ?? place
        state.core.pointee.prepare(node)
        // Count memory for all fields: if the model is a class, it stores them outside its inline value.
        state.core.pointee.note(made: Made.simpleBytes &* Int(state.core.pointee.node(node).end))
    }

    var codingPath: [any CodingKey] { state.core.pointee.path(place) }
    var allKeys: [Key] { state.core.pointee.namesToCollect(of: object).compactMap { Key(stringValue: $0) } }
    func contains(_ key: Key) -> Bool { state.core.pointee.field(key.stringValue, of: object) != nil }

    /// Returns the node of a field's value. Throws if there is no such field.
    @inline(__always) private func find(_ key: Key) throws -> Int {
        guard let node = state.core.pointee.field(key.stringValue, of: object) else { throw missing(key) }
        return node
    }

    /// Returns the node of a field's value; nil if there is no such field, or if its value is null.
    @inline(__always) private func findPresent(_ key: Key) -> Int? {
        guard let node = state.core.pointee.field(key.stringValue, of: object), !state.isNull(node) else {
            state.core.pointee.note(made: Made.simpleBytes)
            return nil
        }
        return node
    }

    @inline(never) private func missing(_ key: Key) -> DecodingError {
        .keyNotFound(key, state.context("there is no field '\(key.stringValue)'", place, nil))
    }

    func decodeNil(forKey key: Key) throws -> Bool { state.isNull(try find(key)) }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        state.core.pointee.note(field: MemoryLayout<Value>.stride, of: object)
        return try state.value(try find(key), type, place, PathStep(key))
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        state.core.pointee.note(field: MemoryLayout<Value?>.stride, of: object)
        guard let node = findPresent(key) else { return nil }
        return try state.value(node, type, place, PathStep(key))
    }

    // MARK: Nested

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws
        -> KeyedDecodingContainer<Nested>
    {
        KeyedDecodingContainer(try KeyedReader<Nested>(state, try find(key), place, PathStep(key)))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try UnkeyedReader(state, try find(key), place, PathStep(key))
    }

    func superDecoder() -> any Decoder { superDecoder(PlainKey.superclass) }
    func superDecoder(forKey key: Key) -> any Decoder { superDecoder(key) }

    /// Returns a decoder for a field. If there is no such field, the decoder reads null.
    private func superDecoder(_ key: some CodingKey) -> any Decoder {
        let node = state.core.pointee.field(key.stringValue, of: object) ?? 0
        return ValueReader(state, node, state.core.pointee.enterNested(place, PathStep(key)))
    }

    // MARK: Fields of simple types

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try state.bool(try find(key), place, PathStep(key))
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try state.string(try find(key), place, PathStep(key))
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try state.real(try find(key), type, place, PathStep(key))
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        try state.real(try find(key), type, place, PathStep(key))
    }
    // Inlined, because Swift does not specialize a generic function of a generic type for the integer type alone.
    @inline(__always)
    func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try integer(type, key)
    }
    // The protocol has default implementations of the following functions, which Swift prefers to generic functions.
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try integer(type, key) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try integer(type, key) }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try findPresent(key).map { try state.bool($0, place, PathStep(key)) }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try findPresent(key).map { try state.string($0, place, PathStep(key)) }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try findPresent(key).map { try state.real($0, type, place, PathStep(key)) }
    }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try findPresent(key).map { try state.real($0, type, place, PathStep(key)) }
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: Int128.Type, forKey key: Key) throws -> Int128? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try presentInteger(type, key) }
    func decodeIfPresent(_ type: UInt128.Type, forKey key: Key) throws -> UInt128? { try presentInteger(type, key) }

    @inline(__always)
    private func integer<Value: FixedWidthInteger & Decodable>(_ type: Value.Type, _ key: Key) throws -> Value {
        try state.integer(try find(key), type, place, PathStep(key))
    }

    @inline(__always)
    private func presentInteger<Value: FixedWidthInteger & Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
        try findPresent(key).map { try state.integer($0, type, place, PathStep(key)) }
    }
}
