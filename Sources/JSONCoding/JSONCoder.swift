/// Codable models to JSON and back, several times as fast as Foundation's coders and with their results.
///
/// Writes what Foundation's `JSONEncoder` writes with `.withoutEscapingSlashes` and its default strategies, the fields of an
/// object in the order in which the model encodes them (Foundation's order is random). Reads what Foundation's
/// `JSONDecoder` reads, with the same values. But for one thing: a `Decimal` that is no number, of which Foundation makes a
/// text that it does not read, is an error.
///
/// Foundation itself does what is rare: models that write into a nested container after they went on with the one
/// around it, that write a key twice, or that nest deeper than some 500 levels; texts that are not UTF-8 or not the JSON of
/// RFC 8259, of which Foundation tolerates some. A model of the first sort finds its `encode(to:)` called twice.
///
/// Errors are `EncodingError` and `DecodingError` with coding paths as Foundation gives them; the descriptions are in
/// words of our own, and never hold values of the text.
///
/// Thread-safe.
package struct JSONCoder: Sendable {
    /// What models find in their coder's `userInfo`.
    package var userInfo: [CodingUserInfoKey: any Sendable]

    /// How many objects and arrays may be inside one another in what is encoded: as many as Foundation allows.
    package static let depthMax = 511

    package init(userInfo: [CodingUserInfoKey: any Sendable] = [:]) { self.userInfo = userInfo }

    private static let encodingStates = StatePool<EncodingState>()
    private static let decodingStates = StatePool<DecodingState>()

    /// The JSON of a value.
    /// - Throws: `EncodingError` for what JSON cannot hold, and whatever the model throws.
    package func encode<Value: Encodable>(_ value: Value) throws -> [UInt8] {
        var state = Self.encodingStates.take() ?? EncodingState()
        state.userInfo = userInfo
        defer {
            state.core.pointee.reset()
            // A model that kept a container has the state too: then it is not used again.
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

    /// The value in a JSON text.
    /// - Throws: `DecodingError` for a text that is no JSON or not such a value, and whatever the model throws.
    package func decode<Value: Decodable>(_ type: Value.Type, from text: UnsafeRawBufferPointer) throws -> Value {
        var madeBytes: Int?
        return try decode(type, from: text, madeBytes: &madeBytes)
    }

    /// Like ``decode(_:from:)-(_,UnsafeRawBufferPointer)``.
    /// - Parameter madeBytes: gets an upper bound of the memory that the value takes besides its own inline form, as far as
    ///   it was read from the text; nil if Foundation read it.
    package func decode<Value: Decodable>(
        _ type: Value.Type, from text: UnsafeRawBufferPointer, madeBytes: inout Int?
    ) throws -> Value {
        madeBytes = nil
        var state = Self.decodingStates.take() ?? DecodingState()
        defer {
            state.close()
            // A model that kept a container has the state too: then it is not used again.
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
