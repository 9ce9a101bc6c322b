// Codable models.

import JSONCoding
import RESP

/// JSON as Larder stores it.
enum ModelCoding {
    private static let coder = JSONCoder()

    static func encode(_ model: some Encodable, key: String) throws(LarderClientError) -> [UInt8] {
        do {
            return try coder.encode(model)
        } catch {
            throw LarderClientError(
                .encode, "a model of type \(type(of: model)) could not be written as JSON: \(reason(error))",
                operation: "SET", key: printableKey(key.utf8), underlying: error)
        }
    }

    static func decode<Model: Decodable>(_ type: Model.Type, from bytes: [UInt8], key: String)
        throws(LarderClientError) -> Model
    {
        do {
            return try coder.decode(type, from: bytes)
        } catch {
            throw LarderClientError(
                .decode, "the stored value is not a \(type) in JSON: \(reason(error))",
                operation: "GET", key: printableKey(key.utf8), underlying: error)
        }
    }

    /// What a coder complains of, without the value: where in the model it was, and what was expected there.
    private static func reason(_ error: any Error) -> String {
        func place(_ context: [any CodingKey]) -> String {
            let path = context.map(\.stringValue).joined(separator: ".")
            return path.isEmpty ? "at the top" : "at '\(path)'"
        }
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            return "'\(key.stringValue)' is missing \(place(context.codingPath))"
        case DecodingError.typeMismatch(let type, let context):
            return "not a \(type) \(place(context.codingPath))"
        case DecodingError.valueNotFound(let type, let context):
            return "null instead of a \(type) \(place(context.codingPath))"
        case DecodingError.dataCorrupted(let context):
            return context.codingPath.isEmpty ? "not JSON" : "not valid \(place(context.codingPath))"
        case EncodingError.invalidValue(_, let context):
            return "not possible \(place(context.codingPath))"
        default:
            return "\(type(of: error))"
        }
    }
}

extension LarderClient {
    /// Stores a model as JSON: the same bytes that the Larder library writes by default, which other programs can
    /// read.
    /// - Parameters:
    ///   - key: the entry's name; an entry of that name is replaced, with its deadline.
    ///   - policy: how long this entry stays fresh; nil leaves it to the database's policy.
    /// - Throws: `encode` when the model cannot be written as JSON.
    public func set(_ value: some Encodable, forKey key: String, policy: UpdatePolicy? = nil)
        throws(LarderClientError)
    {
        let bytes = try ModelCoding.encode(value, key: key)
        try store(bytes, forKey: Array(key.utf8), policy: policy, codec: .json)
    }

    /// The model of a fresh entry; nil when there is none.
    /// - Throws: `decode`, naming the type and the key, when the entry's value is not such a model in JSON.
    public func value<Model: Decodable>(_ type: Model.Type, forKey key: String) throws(LarderClientError) -> Model? {
        guard let bytes = try bytes(forKey: key) else { return nil }
        return try ModelCoding.decode(type, from: bytes, key: key)
    }

    /// The models of those keys that have a fresh entry, read at one instant.
    /// - Throws: `decode`, naming the type and the key, when an entry's value is not such a model in JSON.
    public func values<Model: Decodable>(_ type: Model.Type, forKeys keys: some Sequence<String>)
        throws(LarderClientError) -> [String: Model]
    {
        let keys = Array(keys)
        guard !keys.isEmpty else { return [:] }
        let replies = try answer(["MGET"] + keys).elements
        guard let replies, replies.count == keys.count else {
            throw LarderClientError.unexpectedReply(to: "MGET", "one value for each key")
        }
        var models: [String: Model] = [:]
        for (key, reply) in zip(keys, replies) where !reply.isNull {
            guard case .bulk(let bytes) = reply else {
                throw LarderClientError.unexpectedReply(to: "MGET", "a value", key: printableKey(key.utf8))
            }
            models[key] = try ModelCoding.decode(type, from: bytes, key: key)
        }
        return models
    }
}
