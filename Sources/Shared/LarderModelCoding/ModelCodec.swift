import LarderJSONCoding
@_exported import LarderVocabulary

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Encodes models as bytes, and decodes bytes as models.
///
/// Each entry contains the number of its encoding, and is decoded accordingly. So a cache that writes property lists
/// can still read entries with JSON. Only entries that a custom codec has written need that codec again.
///
/// The library `Larder` and the client `LarderClient` use the same codecs.
public struct ModelCodec: Sendable {
    package enum Kind: Sendable {
        case standard
        case json
        case foundationJSON(JSONEncoder, JSONDecoder)
        case propertyList
        case custom(
            CodecIdentity, encode: @Sendable (any Encodable) throws -> [UInt8],
            decode: @Sendable (any Decodable.Type, [UInt8]) throws -> any Decodable)
    }

    package let kind: Kind
    /// Compares stored models with the declared indexes of a cache; nil outside a cache.
    package private(set) var checks: PropertyChecks?
    /// The rules of the models of a cache; nil for none.
    package private(set) var rules: ModelRules?

    /// The default. Models are stored as ``json``, but bytes (`Data`, `[UInt8]`, `ContiguousArray<UInt8>`) and text
    /// (`String`, as UTF-8) are stored unchanged. Bytes and text, also those from other programs, can be read as any of
    /// these types or as an optional of one. Entries that were stored as JSON are decoded as JSON.
    ///
    /// Text is not stored as JSON: most other programs store text without quotes and cannot specify a codec. So a text
    /// has the same bytes whichever program stores it, and a client rarely needs to ask the daemon for the codec.
    public static let standard = ModelCodec(kind: .standard)

    /// JSON for all values, including bytes and text. Other programs can read it. A `Date` is stored as seconds since
    /// 2001, without loss of precision, and `Data` as base64. Fields are in the order in which the model encodes them.
    /// It is an error to encode infinite numbers, NaN, or more than 511 nested objects and arrays. For other formats
    /// see ``json(encoder:decoder:)``.
    ///
    /// Larder's own coder is several times as fast as Foundation's, with the same results. Foundation's encoder is used
    /// instead if a model's `encode(to:)` returns to a nested container after using another one, or writes a key twice;
    /// `encode(to:)` is then called twice. Foundation's decoder is used instead if a text is not strict JSON in UTF-8,
    /// because Foundation can read some such texts.
    public static let json = ModelCodec(kind: .json)

    /// Returns a codec for JSON that uses your own coders, for example for dates in ISO 8601, sorted fields or keys in
    /// snake case. Do not change the coders afterwards, because many threads use them.
    public static func json(encoder: JSONEncoder, decoder: JSONDecoder) -> ModelCodec {
        ModelCodec(kind: .foundationJSON(encoder, decoder))
    }

    /// Binary property lists. A single number, text or date at the top level cannot be encoded.
    public static let propertyList = ModelCodec(kind: .propertyList)

    /// Returns a codec that uses your own closures. Any thread may call them, also concurrently.
    /// - Parameters:
    ///   - encode: returns the bytes of a model. Its errors become encoding errors.
    ///   - decode: returns a model of the given type; any other type is an error. Its errors become decoding errors.
    public static func custom(
        encode: @escaping @Sendable (any Encodable) throws -> [UInt8],
        decode: @escaping @Sendable (any Decodable.Type, [UInt8]) throws -> any Decodable
    ) -> ModelCodec {
        ModelCodec(kind: .custom(CodecIdentity(), encode: encode, decode: decode))
    }

    /// The codec that is stored with a model's entry. For bytes and text, ``standard`` stores ``Codec/raw`` instead.
    public var codec: Codec {
        switch kind {
        case .standard, .json, .foundationJSON: .json
        case .propertyList: .propertyList
        case .custom: .custom
        }
    }
}

/// The identity of a custom codec, because closures cannot be compared.
package final class CodecIdentity: Sendable {}

extension ModelCodec {
    /// The same object for all codecs that decode in the same way; nil for codecs that decode like ``standard``.
    package var identity: AnyObject? {
        if let rules, rules.changesReads { return rules }
        return switch kind {
        case .standard, .json, .propertyList: nil
        case .foundationJSON(_, let decoder): decoder
        case .custom(let identity, _, _): identity
        }
    }
}

/// The encoded bytes of a value, in the type that the encoder returned.
package enum Payload: Sendable {
    case bytes([UInt8])
    case data(Data)

    package var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .data(let data): data.count
        }
    }

    package var bytes: [UInt8] {
        switch self {
        case .bytes(let bytes): bytes
        case .data(let data): [UInt8](data)
        }
    }

    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        switch self {
        case .bytes(let bytes): try bytes.span.bytes.withUnsafeBytes(body)
        case .data(let data): try data.bytes.withUnsafeBytes(body)
        }
    }
}

extension ModelCodec {
    private static let coder = JSONCoder()
    private static let propertyListDecoder = PropertyListDecoder()
    private static let propertyListEncoder: PropertyListEncoder = {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return encoder
    }()

    /// Whether bytes and text are stored unchanged.
    package var isStandard: Bool { if case .standard = kind { true } else { false } }

    /// Encodes a value. Returns its bytes, and the codec to store with its entry.
    package func encode<Value: Encodable>(_ value: Value) throws -> (Payload, Codec) {
        if case .standard = kind, let bytes = RawBytes.payload(of: value) { return (bytes, .raw) }
        try verify(value)
        let payload = try encodeModel(value)
        try checks?.verify(value, payload, self)
        return (payload, codec)
    }

    /// The codec of a cache, whose models are compared with its declared indexes.
    package var ofCache: ModelCodec {
        var codec = self
        codec.checks = PropertyChecks()
        return codec
    }

    /// Throws if a model fails a check of its schema.
    package func verify(_ model: some Encodable) throws { try rules?.verify(model) }

    package func hasSchema(of type: Any.Type) -> Bool { rules?.contains(type) ?? false }

    /// Whether some models are checked before they are stored.
    package var hasChecks: Bool { rules?.hasChecks ?? false }

    /// The codec of a cache whose models have rules.
    package func following(_ schemas: [any ModelSchema]) -> ModelCodec {
        guard !schemas.isEmpty else { return self }
        var codec = self
        codec.rules = ModelRules(schemas)
        return codec
    }

    func encodeModel<Value: Encodable>(_ value: Value) throws -> Payload {
        switch kind {
        case .standard, .json: return .bytes(try Self.coder.encode(value))
        case .foundationJSON(let encoder, _):
            let text = try encoder.encode(value)
            try text.withUnsafeBytes { try FoundationText.refuseNaN(in: $0) }
            return .data(text)
        case .propertyList: return .data(try Self.propertyListEncoder.encode(value))
        case .custom(_, let encode, _): return .bytes(try encode(value))
        }
    }

    /// Decodes stored bytes with the codec that is stored with their entry.
    /// - Throws: ``DecodingProblem``, or the decoder's error.
    package func decode<Value: Decodable>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer, storedAs codec: Codec)
        throws -> Value
    {
        switch (codec, kind) {
        case (.json, _): return try decodeJSON(type, bytes)
        case (.propertyList, _): return try Self.propertyListDecoder.decode(type, from: Data(bytes))
        case (.custom, .custom(_, _, let decode)):
            let model = try decode(type, Array(bytes))
            guard let value = model as? Value else { throw DecodingProblem.otherType("\(Swift.type(of: model))") }
            return value
        case (.raw, _): return try decodeRaw(type, bytes)
        case (let codec, _): throw DecodingProblem.noCodec(codec)
        }
    }

    /// Like ``decode(_:_:storedAs:)``, but also measures the memory of the model.
    package func decode<Value: Decodable>(
        _ type: Value.Type, _ bytes: UnsafeRawBufferPointer, storedAs codec: Codec, _ size: inout ModelSize
    ) throws -> Value {
        if codec == .json, readsJSONItself, rules?.ofReads(type) == nil {
            var made: Int?
            let value = try Self.coder.decode(type, from: bytes, madeBytes: &made)
            if let made { size.note(counted: made, of: value) } else { size.measure(value) }
            return value
        }
        let value = try decode(type, bytes, storedAs: codec)
        size.measure(value)
        return value
    }

    private var readsJSONItself: Bool {
        switch kind {
        case .standard, .json: true
        case .foundationJSON, .propertyList, .custom: false
        }
    }

    /// Whether bytes begin like a binary property list. JSON never begins like that.
    package static func isPropertyList(_ bytes: some Collection<UInt8>) -> Bool { bytes.starts(with: "bplist".utf8) }

    private func decodeJSON<Value: Decodable>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) throws -> Value {
        guard let rules = rules?.ofReads(type) else { return try decodeText(type, bytes) }
        return try rules.read(bytes, self, completes: rules.completes) { try decodeText(type, $0) }.value
    }

    /// Returns the text of a model with its defaults, or after its upgrade; nil if the stored text is current.
    /// - Throws: the errors of ``decode(_:_:storedAs:)``, and if a check fails.
    package func currentText<Value: Codable>(
        of type: Value.Type, _ bytes: UnsafeRawBufferPointer, storedAs codec: Codec
    ) throws -> [UInt8]? {
        guard codec == .json || codec == .raw, !Self.isPropertyList(bytes), let rules = rules?.ofReads(type) else {
            return nil
        }
        let (model, changed) = try rules.read(bytes, self, completes: true) { try decodeText(type, $0) }
        if changed != nil { try rules.verify(model) }
        return changed
    }

    /// The default of a property that a stored text of a type lacks; nil if there is none.
    package func defaultText(of place: String, _ type: Any.Type) throws -> [UInt8]? {
        try rules?.ofReads(type)?.json(of: place, self)?.bytes
    }

    private func decodeText<Value: Decodable>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) throws -> Value {
        guard case .foundationJSON(_, let decoder) = kind else { return try Self.coder.decode(type, from: bytes) }
        return try decoder.decode(type, from: Data(bytes))
    }

    /// Decodes bytes that were stored without a codec: unchanged for bytes, and as UTF-8 for text. Models are decoded
    /// as JSON, or as a property list if the bytes begin like one, because other clients cannot specify a codec.
    private func decodeRaw<Value: Decodable>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) throws -> Value {
        if let value = RawBytes.value(type, bytes) { return value }
        guard RawBytes.isText(type) else {
            if Self.isPropertyList(bytes) { return try decode(type, bytes, storedAs: .propertyList) }
            do {
                return try decodeJSON(type, bytes)
            } catch {
                throw DecodingProblem.rawBytes(error)
            }
        }
        guard let text = String(validating: bytes, as: UTF8.self), let value = text as? Value else {
            throw DecodingProblem.notText
        }
        return value
    }
}

/// The types that are bytes or text, which the standard codec stores unchanged.
package enum RawBytes {
    package static func isText(_ type: Any.Type) -> Bool { type == String.self || type == String?.self }

    /// Whether a type is one of the byte array types, or an optional of such a type.
    package static func isHeld(by type: Any.Type) -> Bool {
        type == Data.self || type == [UInt8].self || type == Data?.self || type == [UInt8]?.self
            || type == ContiguousArray<UInt8>.self || type == ContiguousArray<UInt8>?.self
    }

    /// Returns the bytes of a value of one of these types; nil for other types, and for a nil optional.
    static func payload<Value>(of value: Value) -> Payload? {
        guard isHeld(by: Value.self) || isText(Value.self) else { return nil }
        switch value {
        case let text as String: return .bytes(Array(text.utf8))
        case let data as Data: return .data(data)
        case let bytes as [UInt8]: return .bytes(bytes)
        case let bytes as ContiguousArray<UInt8>: return .bytes(Array(bytes))
        default: return nil
        }
    }

    /// Returns the bytes as a value of one of the byte array types; nil for other types.
    static func value<Value>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) -> Value? {
        guard isHeld(by: type) else { return nil }
        if type == Data.self || type == Data?.self { return Data(bytes) as? Value }
        if type == [UInt8].self || type == [UInt8]?.self { return Array(bytes) as? Value }
        return ContiguousArray(bytes) as? Value
    }
}
