// Codable models as bytes.

import JSONCoding

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
