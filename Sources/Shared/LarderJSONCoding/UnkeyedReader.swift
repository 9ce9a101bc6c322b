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

    private var step: PathStep { PathStep(index: Int(index)) }

    /// Reads the next element, and moves past it. If reading fails, the position does not change.
    @inline(__always) private mutating func take<Value>(_ type: Value.Type, _ read: (Int) throws -> Value) throws
        -> Value
    {
        guard !isAtEnd else { throw endReached(type) }
        let value = try read(Int(next))
        pass()
        return value
    }

    private mutating func pass() {
        next = state.core.pointee.node(Int(next)).next
        index &+= 1
    }

    private func endReached(_ type: Any.Type) -> DecodingError {
        .valueNotFound(type, state.context("\(type) was expected, but the array has ended", place, step))
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd else { throw endReached(Never.self) }
        guard state.isNull(Int(next)) else { return false }
        pass()
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let (state, place, step) = (state, place, step)
        state.core.pointee.note(made: Made.growth &* MemoryLayout<Value>.stride)
        return try take(type) { node in try state.value(node, type, place, step) }
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
        let (state, place, step) = (state, place, step)
        return try take(KeyedDecodingContainer<Nested>.self) { node in
            KeyedDecodingContainer(try KeyedReader<Nested>(state, node, place, step))
        }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let (state, place, step) = (state, place, step)
        return try take((any UnkeyedDecodingContainer).self) { node in try UnkeyedReader(state, node, place, step) }
    }

    mutating func superDecoder() throws -> any Decoder {
        let (state, place, step) = (state, place, step)
        return try take((any Decoder).self) { node in
            ValueReader(state, node, state.core.pointee.enterNested(place, step))
        }
    }

    // MARK: Elements of simple types

    mutating func decode(_ type: Bool.Type) throws -> Bool {
        let (state, place, step) = (state, place, step)
        return try take(type) { node in try state.bool(node, place, step) }
    }
    mutating func decode(_ type: String.Type) throws -> String {
        let (state, place, step) = (state, place, step)
        return try take(type) { node in try state.string(node, place, step) }
    }
    mutating func decode(_ type: Double.Type) throws -> Double {
        let (state, place, step) = (state, place, step)
        return try take(type) { node in try state.double(node, type, place, step) }
    }
    mutating func decode(_ type: Float.Type) throws -> Float {
        let (state, place, step) = (state, place, step)
        return try take(type) { node in try state.float(node, place, step) }
    }
    mutating func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value {
        try integer(type)
    }
    // The protocol has default implementations of these functions, which Swift prefers to a generic function.
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }

    @inline(__always)
    private mutating func integer<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value {
        let (state, place, step) = (state, place, step)
        return try take(type) { node in try state.integer(node, type, place, step) }
    }
}
