// Codable models as the bytes of the daemon's entries, with this module's errors.

import RESP

/// A codec in a process that does not see the headers of entries. The daemon tells an entry's codec only on request
/// (`META`). So the codec is guessed: a cache's own, except that binary property lists are recognised by their first
/// bytes, and that bytes are stored as they are. Only if that fails, the daemon is asked, and the value is read
/// accordingly.
enum RemoteCoding {
    /// - Throws: `invalidArgument` for a value that no daemon accepts.
    static func check(valueBytes count: Int, key: [UInt8]) throws(LarderClientError) {
        guard count > CommandRules.wordBytesMax else { return }
        throw LarderClientError(
            .invalidArgument, "the value has \(count) bytes, and may have at most \(CommandRules.wordBytesMax)",
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
            throw LarderClientError(
                .encode,
                "the value of type \(type(of: model)) cannot be stored as \(codec.codec): "
                    + CodingProblem.encoding(error, codec.codec),
                operation: "SET", key: printableKey(key), underlying: error)
        }
        try check(valueBytes: payload.count, key: key)
        return (payload.bytes, used)
    }

    /// - Parameter storedAs: asks the daemon for the entry's codec; nil when the entry is gone.
    static func decode<Model: Decodable>(
        _ type: Model.Type, from bytes: [UInt8], _ codec: ModelCodec, key: [UInt8], _ operation: String = "GET",
        storedAs ask: () async throws(LarderClientError) -> Codec?
    ) async throws(LarderClientError) -> Model {
        guard let guess = guess(type, bytes, codec) else {
            return try decode(type, from: bytes, codec, storedAs: try await ask() ?? .raw, key: key, operation)
        }
        do throws(LarderClientError) {
            return try decode(type, from: bytes, codec, storedAs: guess, key: key, operation)
        } catch {
            guard let told = try await ask(), told != guess else { throw error }
            return try decode(type, from: bytes, codec, storedAs: told, key: key, operation)
        }
    }

    /// Like ``decode(_:from:_:key:storedAs:)``, for callers that block.
    static func decodeBlocking<Model: Decodable>(
        _ type: Model.Type, from bytes: [UInt8], _ codec: ModelCodec, key: [UInt8],
        storedAs ask: () throws(LarderClientError) -> Codec?
    ) throws(LarderClientError) -> Model {
        guard let guess = guess(type, bytes, codec) else {
            return try decode(type, from: bytes, codec, storedAs: try ask() ?? .raw, key: key)
        }
        do throws(LarderClientError) {
            return try decode(type, from: bytes, codec, storedAs: guess, key: key)
        } catch {
            guard let told = try ask(), told != guess else { throw error }
            return try decode(type, from: bytes, codec, storedAs: told, key: key)
        }
    }

    /// - Returns: nil if only the daemon can tell: the bytes look like bytes encoded as JSON.
    private static func guess(_ type: Any.Type, _ bytes: [UInt8], _ codec: ModelCodec) -> Codec? {
        if codec.codec == .custom { return .custom }
        if RawBytes.isHeld(by: type) {
            let (first, last) = (bytes.first, bytes.last)
            let looksLikeJSON =
                first == UInt8(ascii: "\"") && last == UInt8(ascii: "\"")
                || first == UInt8(ascii: "[") && last == UInt8(ascii: "]") || bytes == Array("null".utf8)
            return looksLikeJSON || bytes.starts(with: "bplist".utf8) ? nil : .raw
        }
        // If somebody has stored them as text, they are text.
        if type == String?.self, bytes == Array("null".utf8) { return nil }
        return bytes.starts(with: "bplist".utf8) ? .propertyList : .json
    }

    private static func decode<Model: Decodable>(
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
