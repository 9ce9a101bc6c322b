import LarderJSONCoding
@_exported import LarderVocabulary

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How models become bytes and bytes become models.
///
/// Each entry records how it was encoded. Reading follows that record, not the codec of the cache: a cache that writes
/// property lists still reads older JSON. Only entries of a custom codec need that codec again.
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

    /// The default: models are stored as ``json``, and bytes and text as they are. Bytes are `Data`, `[UInt8]` and
    /// `ContiguousArray<UInt8>`, text is `String`, in UTF-8; each of them, and optionals of them, can read what another
    /// stored, and what other programs store. What was stored as JSON is read as JSON.
    ///
    /// Text is not stored as JSON, because most other programs cannot specify a codec. Without quotes, their text has
    /// the same bytes as Larder's, and a client need not request the codec from the daemon, unless the text could also
    /// be JSON.
    public static let standard = ModelCodec(kind: .standard)

    /// JSON for everything, bytes and text too, so that other programs can read what Swift wrote. `Date` is seconds
    /// since 2001 (which loses nothing), `Data` is base64. Numbers that are not finite cannot be encoded, nor can more
    /// than 511 nested objects and arrays. Fields are in the order in which the model encodes them. See
    /// ``json(encoder:decoder:)`` for other choices.
    ///
    /// Larder's own coder writes and reads it, several times as fast as Foundation's, with the same results. Foundation
    /// takes over if a model's `encode(to:)` goes back to a nested container that it had left, or writes a key twice
    /// (its `encode(to:)` is then called twice), and for texts that are not strictly JSON in UTF-8, some of which it
    /// can read.
    public static let json = ModelCodec(kind: .json)

    /// JSON made and read by your own coders: with dates as ISO 8601, sorted fields, keys in snake case. Do not change
    /// the coders afterwards: they are used from many threads.
    public static func json(encoder: JSONEncoder, decoder: JSONDecoder) -> ModelCodec {
        ModelCodec(kind: .foundationJSON(encoder, decoder))
    }

    /// Binary property lists. The top level must be a struct, class, array or dictionary; a bare number, text or date
    /// cannot be encoded.
    public static let propertyList = ModelCodec(kind: .propertyList)

    /// Your own encoding. The closures are called from any thread that stores or reads, several at a time.
    /// - Parameters:
    ///   - encode: returns the bytes of a model. Its errors become encoding errors.
    ///   - decode: returns a model of the given type; any other type is an error. Its errors become decoding errors.
    public static func custom(
        encode: @escaping @Sendable (any Encodable) throws -> [UInt8],
        decode: @escaping @Sendable (any Decodable.Type, [UInt8]) throws -> any Decodable
    ) -> ModelCodec {
        ModelCodec(kind: .custom(CodecIdentity(), encode: encode, decode: decode))
    }

    /// The codec in the header of a model's entry; for bytes and text with ``standard`` it is ``Codec/raw``.
    public var codec: Codec {
        switch kind {
        case .standard, .json, .foundationJSON: .json
        case .propertyList: .propertyList
        case .custom: .custom
        }
    }
}

/// Distinguishes the closures of one custom codec from those of another.
package final class CodecIdentity: Sendable {}

extension ModelCodec {
    /// Distinguishes codecs that read entries differently; nil if this codec reads like the standard one.
    package var identity: AnyObject? {
        switch kind {
        case .standard, .json, .propertyList: nil
        case .foundationJSON(_, let decoder): decoder
        case .custom(let identity, _, _): identity
        }
    }
}

/// Bytes to store, in the type in which the encoder made them.
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

    /// Whether bytes and text are stored as they are.
    package var isStandard: Bool { if case .standard = kind { true } else { false } }

    /// The bytes of a value, and the codec for the header of its entry.
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

    /// Like ``decode(_:_:storedAs:)``, and also returns how much memory the model takes.
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

    /// Whether bytes begin like a binary property list. No other encoding of models begins in this way.
    package static func isPropertyList(_ bytes: some Collection<UInt8>) -> Bool { bytes.starts(with: "bplist".utf8) }

    private func decodeJSON<Value: Decodable>(_ type: Value.Type, _ bytes: UnsafeRawBufferPointer) throws -> Value {
        guard case .foundationJSON(_, let decoder) = kind else { return try Self.coder.decode(type, from: bytes) }
        return try decoder.decode(type, from: Data(bytes))
    }

    /// Raw bytes are bytes, and text if they are UTF-8. For a model they are read as JSON, or as a property list if
    /// they begin like one: a shell or another client stores models in this way, because it cannot specify the codec.
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
