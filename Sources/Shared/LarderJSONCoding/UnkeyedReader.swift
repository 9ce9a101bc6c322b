/// The unkeyed container from which a model reads the elements of an array.
///
/// It has only three words, so that Swift stores it in `any UnkeyedDecodingContainer` without an allocation.
struct UnkeyedReader: UnkeyedDecodingContainer {
    private let state: DecodingState
    private let array: UInt32
    /// The node of the next element.
    private var next: UInt32
    private var index: UInt32 = 0
    private let place: Place

    /// For the parameters see ``KeyedReader/init(_:_:_:_:)``.
    init(_ state: DecodingState, _ node: Int, _ place: Place, _ step: PathStep?) throws {
        guard state.core.pointee.node(node).kind == .array else { throw state.mismatch([Any].self, node, place, step) }
        self.state = state
        array = UInt32(truncatingIfNeeded: node)
        next = array + 1
        self.place = step.map { state.core.pointee.enterNested(place, $0) } ?? place
        // Count memory for simple elements, because the model may store them in a growing collection.
        let count = Int(state.core.pointee.node(node).end)
        state.core.pointee.note(made: Made.array(Made.growth &* count, stride: Made.simpleBytes))
    }

    var codingPath: [any CodingKey] { state.core.pointee.path(place) }
    var count: Int? { Int(state.core.pointee.node(Int(array)).end) }
    var currentIndex: Int { Int(index) }
    var isAtEnd: Bool { index >= state.core.pointee.node(Int(array)).end }

    /// Reads the next element, and moves past it. If reading fails, the position does not change.
    /// - Parameter read: gets the node of the element, the place of the array, and the step to the element.
    @inline(__always) private mutating func take<Value>(
        _ type: Value.Type, _ read: (DecodingState, Int, Place, PathStep) throws -> Value
    ) throws -> Value {
        guard !isAtEnd else { throw endReached(type) }
        let value = try read(state, Int(next), place, PathStep(index: Int(index)))
        pass()
        return value
    }

    private mutating func pass() {
        next = state.core.pointee.node(Int(next)).next
        index &+= 1
    }

    private func endReached(_ type: Any.Type) -> DecodingError {
        .valueNotFound(
            type, state.context("\(type) was expected, but the array has ended", place, PathStep(index: Int(index))))
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd else { throw endReached(Never.self) }
        guard state.isNull(Int(next)) else { return false }
        pass()
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        state.core.pointee.note(made: Made.growth &* MemoryLayout<Value>.stride)
        return try take(type) { try $0.value($1, type, $2, $3) }
    }

    mutating func decodeIfPresent<Value: Decodable>(_ type: Value.Type) throws -> Value? {
        // In the model's collection, nil needs as much space as a value.
        state.core.pointee.note(made: Made.growth &* MemoryLayout<Value?>.stride)
        guard !isAtEnd, try !decodeNil() else { return nil }
        return try decode(type)
    }

    // MARK: Nested

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested>
    {
        try take(KeyedDecodingContainer<Nested>.self) {
            KeyedDecodingContainer(try KeyedReader<Nested>($0, $1, $2, $3))
        }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try take((any UnkeyedDecodingContainer).self) { try UnkeyedReader($0, $1, $2, $3) }
    }

    mutating func superDecoder() throws -> any Decoder {
        try take((any Decoder).self) { ValueReader($0, $1, $0.core.pointee.enterNested($2, $3)) }
    }

    // MARK: Elements of simple types

    mutating func decode(_ type: Bool.Type) throws -> Bool { try take(type) { try $0.bool($1, $2, $3) } }
    mutating func decode(_ type: String.Type) throws -> String { try take(type) { try $0.string($1, $2, $3) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try take(type) { try $0.real($1, type, $2, $3) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try take(type) { try $0.real($1, type, $2, $3) } }
    mutating func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value { try integer(type) }
    // The protocol has default implementations of these functions, which Swift prefers to a generic function.
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }

    @inline(__always)
    private mutating func integer<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value {
        try take(type) { try $0.integer($1, type, $2, $3) }
    }
}
