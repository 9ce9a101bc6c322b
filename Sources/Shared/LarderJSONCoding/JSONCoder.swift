/// Encodes and decodes Codable models as JSON, several times as fast as Foundation's coders, with the same results.
///
/// Writes the same text as Foundation's `JSONEncoder` with `.withoutEscapingSlashes` and the default strategies. There
/// are two differences. An object's fields are in the model's order, while Foundation's order is random. Encoding a
/// `Decimal` that is not a number throws, while Foundation writes a text that it cannot decode. Accepts the same texts
/// as Foundation's `JSONDecoder`, with the same values.
///
/// Foundation's coders are used in rare cases. Its encoder is used for models that nest deeper than about 500 levels,
/// write a key twice, or write into a nested container after continuing with its parent. `encode(to:)` is then called
/// twice. Its decoder is used for texts that are not UTF-8 or not JSON as in RFC 8259, because Foundation accepts some
/// such texts.
///
/// Errors are `EncodingError` and `DecodingError` with Foundation's coding paths. Larder writes their descriptions,
/// which never contain values of the text.
///
/// Thread-safe.
package struct JSONCoder: Sendable {
    /// The `userInfo` of the encoders and decoders that models get.
    package var userInfo: [CodingUserInfoKey: any Sendable]

    /// The maximum number of nested objects and arrays when encoding, the same as Foundation's.
    package static let depthMax = 511

    package init(userInfo: [CodingUserInfoKey: any Sendable] = [:]) { self.userInfo = userInfo }

    private static let encodingStates = StatePool<EncodingState>()
    private static let decodingStates = StatePool<DecodingState>()

    /// Encodes a value as JSON.
    /// - Throws: `EncodingError` for values that JSON cannot represent, and any error of the model.
    package func encode<Value: Encodable>(_ value: Value) throws -> [UInt8] {
        var state = Self.encodingStates.take() ?? EncodingState()
        state.userInfo = userInfo
        defer {
            state.core.pointee.reset()
            // If the model has kept a container, that container refers to the state too. Such a state is not reused.
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

    /// Decodes a value from a JSON text.
    /// - Throws: `DecodingError` for a text that is not JSON or contains another type, and any error of the model.
    package func decode<Value: Decodable>(_ type: Value.Type, from text: UnsafeRawBufferPointer) throws -> Value {
        var madeBytes: Int?
        return try decode(type, from: text, madeBytes: &madeBytes)
    }

    /// Like ``decode(_:from:)-(_,UnsafeRawBufferPointer)``.
    /// - Parameter madeBytes: is set to an upper bound, in bytes, of the memory allocated for the decoded value in
    ///   addition to its inline value; nil if Foundation decoded the value.
    package func decode<Value: Decodable>(
        _ type: Value.Type, from text: UnsafeRawBufferPointer, madeBytes: inout Int?
    ) throws -> Value {
        madeBytes = nil
        var state = Self.decodingStates.take() ?? DecodingState()
        defer {
            state.close()
            // If the model has kept a container, that container refers to the state too. Such a state is not reused.
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
