import JSONCoding
@_exported import LarderVocabulary

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How models become bytes and bytes become models.
///
/// Each entry says how it was encoded. Reading follows that and not the codec of the cache: a cache that writes property
/// lists still reads the JSON that is there. Only entries made by a custom codec need that codec again.
///
/// The library `Larder` and the client `LarderClient` take the same codecs.
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

    /// The default: models as ``json``, and bytes as they are. Bytes are `Data`, `[UInt8]` and `ContiguousArray<UInt8>`;
    /// each of them, and optionals of them, reads what another stored. What was stored as JSON is
    /// read as JSON.
    public static let standard = ModelCodec(kind: .standard)

    /// JSON for everything, bytes too, so that other programs can read what Swift wrote. `Date` is seconds since 2001 (which loses
    /// nothing), `Data` is base64; numbers that are not finite cannot be encoded, nor what has
    /// more than 511 objects and arrays inside one another. Fields are in the order in which the
    /// model encodes them. See ``json(encoder:decoder:)`` for other choices.
    ///
    /// Written and read by a coder of Larder's own, several times as fast as Foundation's, with its results. A model whose
    /// `encode(to:)` goes back to a nested container that it had left, or writes a key twice, is left to Foundation, and
    /// its `encode(to:)` then called twice; so are texts that are not strictly JSON in UTF-8, which Foundation reads in part.
    public static let json = ModelCodec(kind: .json)

    /// JSON made and read by coders of your own: with dates as ISO 8601, sorted fields, keys in snake case. Do not
    /// change the coders afterwards: they are used from many threads.
    public static func json(encoder: JSONEncoder, decoder: JSONDecoder) -> ModelCodec {
        ModelCodec(kind: .foundationJSON(encoder, decoder))
    }

    /// Binary property lists. At the top they hold structs, classes, arrays and dictionaries; a bare number, text or
    /// date cannot be encoded.
    public static let propertyList = ModelCodec(kind: .propertyList)

    /// Your own encoding. The closures are called from whatever thread stores or reads, several at a time.
    /// - Parameters:
    ///   - encode: makes the bytes of a model. What it throws arrives as an error for encoding.
    ///   - decode: makes a model of the type it is given; any other type is an error. What it throws arrives as an
    ///     error for decoding.
    public static func custom(
        encode: @escaping @Sendable (any Encodable) throws -> [UInt8],
        decode: @escaping @Sendable (any Decodable.Type, [UInt8]) throws -> any Decodable
    ) -> ModelCodec {
        ModelCodec(kind: .custom(CodecIdentity(), encode: encode, decode: decode))
    }

    /// What the header of an entry says of a model; of bytes, ``standard`` says ``Codec/raw``.
    public var codec: Codec {
        switch kind {
        case .standard, .json, .foundationJSON: .json
        case .propertyList: .propertyList
        case .custom: .custom
        }
    }
}

/// Tells the closures of one custom codec from those of another.
package final class CodecIdentity: Sendable {}

extension ModelCodec {
    /// What makes this codec read entries otherwise than others do; nil where it reads like the standard one.
    package var identity: AnyObject? {
        switch kind {
        case .standard, .json, .propertyList: nil
        case .foundationJSON(_, let decoder): decoder
        case .custom(let identity, _, _): identity
        }
    }
}

/// Bytes to be stored, in whatever hands the encoder left them.
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

    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        switch self {
        case .bytes(let bytes): bytes.withUnsafeBytes { body($0) }
        case .data(let data): data.withUnsafeBytes { body($0) }
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

    /// The bytes of a value, and what the header of its entry says of them.
    package func encode<Value: Encodable>(_ value: Value) throws -> (Payload, Codec) {
        if case .standard = kind, let bytes = RawBytes.payload(of: value) { return (bytes, .raw) }
        return (try encodeModel(value), codec)
    }

    private func encodeModel<Value: Encodable>(_ value: Value) throws -> Payload {
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

    /// Decodes stored bytes by the codec that their entry names.
    /// - Throws: ``DecodingProblem``, or what the decoder throws.
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

    /// As ``decode(_:_:storedAs:)``, and tells how much memory the model takes.
    package func decode<Value: Decodable>(
        _ type: Value.Type, _ bytes: UnsafeRawBufferPointer, storedAs codec: Codec, _ size: inout ModelSize
    ) throws -> Value {
        if codec == .json, readsJSONItself {
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

    private func decodeJSON<Value: Decodable>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) throws -> Value {
        guard case .foundationJSON(_, let decoder) = kind else { return try Self.coder.decode(type, from: bytes) }
        return try decoder.decode(type, from: Data(bytes))
    }

    /// Raw bytes are bytes, and text if they are UTF-8. For a model they are taken for JSON: that is what a shell or
    /// another client stores, which cannot say so.
    private func decodeRaw<Value: Decodable>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) throws -> Value {
        if let value = RawBytes.value(type, bytes) { return value }
        guard type == String.self || type == String?.self else {
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
