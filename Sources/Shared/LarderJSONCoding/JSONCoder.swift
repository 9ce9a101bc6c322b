/// Codable models to JSON and back, several times as fast as Foundation's coders and with their results.
///
/// Writes what Foundation's `JSONEncoder` writes with `.withoutEscapingSlashes` and its default strategies, with an
/// object's fields in the model's order (Foundation's order is random). Reads what Foundation's `JSONDecoder` reads,
/// with the same values. One difference: a `Decimal` that is not a number is an error; Foundation writes a text that it
/// does not read.
///
/// Foundation handles the rare cases. It encodes models that write into a nested container after they continued with
/// the outer one, that write a key twice, or that nest deeper than some 500 levels; their `encode(to:)` is called
/// twice. It decodes texts that are not UTF-8 or not the JSON of RFC 8259, some of which it tolerates.
///
/// Errors are `EncodingError` and `DecodingError` with Foundation's coding paths. Their descriptions are Larder's own,
/// and never contain values of the text.
///
/// Thread-safe.
package struct JSONCoder: Sendable {
    /// The `userInfo` of a model's coder.
    package var userInfo: [CodingUserInfoKey: any Sendable]

    /// The limit for nested objects and arrays when encoding: that of Foundation.
    package static let depthMax = 511

    package init(userInfo: [CodingUserInfoKey: any Sendable] = [:]) { self.userInfo = userInfo }

    private static let encodingStates = StatePool<EncodingState>()
    private static let decodingStates = StatePool<DecodingState>()

    /// Returns the JSON of a value.
    /// - Throws: `EncodingError` for values that JSON cannot hold, and any error of the model.
    package func encode<Value: Encodable>(_ value: Value) throws -> [UInt8] {
        var state = Self.encodingStates.take() ?? EncodingState()
        state.userInfo = userInfo
        defer {
            state.core.pointee.reset()
            // If a model kept a container, the container refers to the state too. Then the state is not reused.
            if isKnownUniquelyReferenced(&state) { Self.encodingStates.put(state) }
        }
        do {
            try state.encode(value, nil)
        } catch  where !state.core.pointee.isIrregular {
            throw error
        } catch {}
        if state.core.pointee.isTooDeep {
            throw EncodingError.invalidValue(
                Value.self,
                EncodingError.Context(
                    codingPath: [], debugDescription: "the value nests more than \(Self.depthMax) objects and arrays",
                    underlyingError: NestingTooDeep()))
        }
        if state.core.pointee.isIrregular || state.core.pointee.isDeep {
            return try foundationEncode(value, userInfo: userInfo)
        }
        return Array(state.core.pointee.text.bytes)
    }

    /// Returns the value of a JSON text.
    /// - Throws: `DecodingError` for a text that is not JSON or has a value of another type, and any error of the
    ///   model.
    package func decode<Value: Decodable>(_ type: Value.Type, from text: UnsafeRawBufferPointer) throws -> Value {
        var madeBytes: Int?
        return try decode(type, from: text, madeBytes: &madeBytes)
    }

    /// Like ``decode(_:from:)-(_,UnsafeRawBufferPointer)``.
    /// - Parameter madeBytes: set to an upper bound of the memory that the value takes besides its own inline form, as
    ///   far as it was read from the text; nil if Foundation read it.
    package func decode<Value: Decodable>(
        _ type: Value.Type, from text: UnsafeRawBufferPointer, madeBytes: inout Int?
    ) throws -> Value {
        madeBytes = nil
        var state = Self.decodingStates.take() ?? DecodingState()
        defer {
            state.close()
            // If a model kept a container, the container refers to the state too. Then the state is not reused.
            if isKnownUniquelyReferenced(&state) { Self.decodingStates.put(state) }
        }
        guard state.open(text, userInfo) else { return try foundationDecode(type, text, userInfo: userInfo) }
        let value = try state.value(DocumentIndex.root, type, Place(depth: 0), nil)
        madeBytes = state.core.pointee.madeBytes
        return value
    }

    /// Like ``decode(_:from:)-(_,UnsafeRawBufferPointer)``.
    package func decode<Value: Decodable>(_ type: Value.Type, from text: [UInt8]) throws -> Value {
        try text.withUnsafeBytes { try decode(type, from: $0) }
    }
}
