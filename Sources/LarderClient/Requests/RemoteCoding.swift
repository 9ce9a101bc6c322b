// Encoding of Codable models to the bytes of the daemon's entries, and decoding.

import LarderRESP

/// Encodes models, and chooses the codec to decode stored bytes. `GET` returns only the bytes of an entry; the daemon
/// returns its codec only on request (`META`). A second request for each read would halve the speed. So the codec is
/// inferred from the bytes, and requested only if the bytes are ambiguous:
///
/// - A type that holds bytes or text gets the bytes unchanged (``Codec/raw``). If the bytes could also be JSON or a
///   property list, the codec is requested.
/// - Other types are decoded as JSON, or as a property list if the bytes begin like one. This suits raw entries too, so
///   the codec is not requested.
/// - A cache with a custom codec tries that codec first.
/// - If decoding fails, the value is decoded with the codec that the daemon returns. Redis stores no codecs. A value in
///   Redis is assumed to have the cache's own codec, or to be raw.
enum RemoteCoding {
    /// Checks the size of a value.
    /// - Throws: `invalidArgument` for a value that the daemon would not accept.
    static func check(valueBytes count: Int, key: [UInt8]) throws(LarderClientError) {
        guard count > CommandRules.wordBytesMax else { return }
        throw LarderClientError(
            .invalidArgument, "the value has \(count) bytes; the limit is \(CommandRules.wordBytesMax)",
            operation: "SET",
            key: printableKey(key))
    }

    static func encode(_ model: some Encodable, _ codec: ModelCodec, key: [UInt8]) throws(LarderClientError)
        -> (bytes: [UInt8], codec: Codec)
    {
        let (payload, used): (Payload, Codec)
        do {
            (payload, used) = try codec.encode(model)
        } catch {
            throw failure(error, type(of: model), codec, key)
        }
        try check(valueBytes: payload.count, key: key)
        return (payload.bytes, used)
    }

    /// The error for a model that cannot be stored.
    static func failure(
        _ error: any Error, _ model: Any.Type, _ codec: ModelCodec, _ key: [UInt8], _ operation: String = "SET"
    ) -> LarderClientError {
        LarderClientError(
            .encode,
            "the value of type \(model) cannot be stored as \(codec.codec): "
                + CodingProblem.encoding(error, codec.codec),
            operation: operation, key: printableKey(key), underlying: error)
    }

    /// - Parameter storedAs: requests the entry's codec from the daemon; returns nil if the entry no longer exists, or
    ///   the server does not support codecs.
    static func decode<Model: Decodable>(
        _ type: Model.Type, from bytes: [UInt8], _ codec: ModelCodec, key: [UInt8], _ operation: String = "GET",
        storedAs ask: () async throws(LarderClientError) -> Codec?
    ) async throws(LarderClientError) -> Model {
        if let model = decodeByGuess(type, from: bytes, codec) { return model }
        return try decode(type, from: bytes, codec, reported: try await ask(), key: key, operation)
    }

    /// Decodes bytes with the codec that they probably have. Returns nil if there is no such codec, or if decoding
    /// fails: the codec must then be requested from the daemon.
    static func decodeByGuess<Model: Decodable>(_ type: Model.Type, from bytes: [UInt8], _ codec: ModelCodec)
        -> Model?
    {
        guard let guess = guess(type, bytes, codec) else { return nil }
        return try? bytes.withUnsafeBytes { try codec.decode(type, $0, storedAs: guess) }
    }

    /// Chooses the codec without a request.
    /// - Returns: the codec, inferred from the bytes; nil if it must be requested from the daemon.
    private static func guess(_ type: Any.Type, _ bytes: [UInt8], _ codec: ModelCodec) -> Codec? {
        if codec.codec == .custom { return .custom }
        let isPropertyList = ModelCodec.isPropertyList(bytes)
        if RawBytes.isHeld(by: type) {
            let (first, last) = (bytes.first, bytes.last)
            let looksLikeJSON =
                first == UInt8(ascii: "\"") && last == UInt8(ascii: "\"")
                || first == UInt8(ascii: "[") && last == UInt8(ascii: "]") || bytes == Array("null".utf8)
            return looksLikeJSON || isPropertyList ? nil : .raw
        }
        if RawBytes.isText(type) { return isPropertyList || couldBeJSON(bytes) ? nil : .raw }
        return isPropertyList ? .propertyList : .json
    }

    /// Returns whether bytes look like a JSON document, judged by their first and last characters. The codec of such
    /// bytes must be requested, so that a model's JSON is not returned as text.
    private static func couldBeJSON(_ bytes: [UInt8]) -> Bool {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        guard let start = bytes.firstIndex(where: { !isBlank($0) }),
            let end = bytes.lastIndex(where: { !isBlank($0) })
        else { return false }
        let (first, last) = (bytes[start], bytes[end])
        switch first {
        case UInt8(ascii: "\""): return last == first
        case UInt8(ascii: "{"): return last == UInt8(ascii: "}")
        case UInt8(ascii: "["): return last == UInt8(ascii: "]")
        case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"):
            return ["true", "false", "null"].contains { bytes[start...end].elementsEqual($0.utf8) }
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return bytes[start...end].allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
        default: return false
        }
    }

    /// Decodes bytes that ``decodeByGuess(_:from:_:)`` cannot decode.
    /// - Parameter reported: the codec that the daemon has returned; nil for none.
    static func decode<Model: Decodable>(
        _ type: Model.Type, from bytes: [UInt8], _ codec: ModelCodec, reported: Codec?, key: [UInt8],
        _ operation: String
    ) throws(LarderClientError) -> Model {
        if reported == nil, !codec.isStandard, guess(type, bytes, codec) == nil,
            let value = try? decode(type, from: bytes, codec, storedAs: codec.codec, key: key, operation)
        {
            return value
        }
        return try decode(type, from: bytes, codec, storedAs: reported ?? .raw, key: key, operation)
    }

    static func decode<Model: Decodable>(
        _ type: Model.Type, from bytes: [UInt8], _ codec: ModelCodec, storedAs stored: Codec, key: [UInt8],
        _ operation: String = "GET"
    ) throws(LarderClientError) -> Model {
        do {
            return try bytes.withUnsafeBytes { try codec.decode(type, $0, storedAs: stored) }
        } catch {
            throw LarderClientError(
                .decode, "the value, stored as \(stored), cannot be read as \(type): \(CodingProblem.decoding(error))",
                operation: operation, key: printableKey(key), underlying: CodingProblem.underlying(error))
        }
    }
}
