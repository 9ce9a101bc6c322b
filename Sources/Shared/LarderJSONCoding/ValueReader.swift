/// The decoder that a model's `init(from:)` gets.
struct ValueReader: Decoder {
    let state: DecodingState
    private let node: UInt32
    private let place: Place

    init(_ state: DecodingState, _ node: Int, _ place: Place) {
        self.state = state
        self.node = UInt32(truncatingIfNeeded: node)
        self.place = place
    }

    var codingPath: [any CodingKey] { state.core.pointee.path(place) }
    var userInfo: [CodingUserInfoKey: Any] { state.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(try KeyedReader<Key>(state, Int(node), place, nil))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try UnkeyedReader(state, Int(node), place, nil) }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

extension ValueReader: SingleValueDecodingContainer {
    func decodeNil() -> Bool { state.isNull(Int(node)) }
    func decode(_ type: Bool.Type) throws -> Bool { try state.bool(Int(node), place, nil) }
    func decode(_ type: String.Type) throws -> String { try state.string(Int(node), place, nil) }
    func decode(_ type: Double.Type) throws -> Double { try state.real(Int(node), type, place, nil) }
    func decode(_ type: Float.Type) throws -> Float { try state.real(Int(node), type, place, nil) }
    func decode<Value: FixedWidthInteger & Decodable>(_ type: Value.Type) throws -> Value {
        try state.integer(Int(node), type, place, nil)
    }
    // The protocol has default implementations of these functions, which Swift prefers to a generic function.
    func decode(_ type: Int128.Type) throws -> Int128 { try state.integer(Int(node), type, place, nil) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try state.integer(Int(node), type, place, nil) }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try state.value(Int(node), type, place, nil) }
}
