/// Why bytes cannot be the model that was asked for, where no decoder says so.
enum DecodingProblem: Error {
    case rawBytes(any Error)
    case notText
    case noCodec(Codec)
    case otherType(String)
}

extension LarderError {
    /// A value that could not be encoded. The text names types and fields, never values.
    static func encodingFailed(_ type: Any.Type, _ codec: Codec, _ key: Key, _ database: String?, _ error: any Error)
        -> LarderError
    {
        var reason = "\(Swift.type(of: error))"
        if case EncodingError.invalidValue(let value, let context) = error {
            reason = "a value of type \(Swift.type(of: value)) cannot be encoded\(place(context.codingPath))"
            if codec == .propertyList, context.codingPath.isEmpty {
                reason += "; a property list holds structs, arrays and dictionaries at its top"
            }
        }
        return LarderError(
            .encoding, "the value of type \(type) cannot be stored as \(codec): \(reason)", operation: "set",
            database: database, key: key.description, underlying: error)
    }

    /// A stored value that is not what was asked for. The text names types and fields, never values.
    static func decodingFailed(_ type: Any.Type, _ codec: Codec, _ key: Key, _ database: String, _ error: any Error)
        -> LarderError
    {
        LarderError(
            .decoding, "the value, stored as \(codec), cannot be read as \(type): \(reason(error))", operation: "get",
            database: database, key: key.description, underlying: error)
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case DecodingError.typeMismatch(let wanted, let context):
            "\(wanted) was expected\(place(context.codingPath)), and something else is there"
        case DecodingError.valueNotFound(let wanted, let context):
            "\(wanted) was expected\(place(context.codingPath)), and null is there"
        case DecodingError.keyNotFound(let field, let context):
            "the field '\(printableKey(field.stringValue.utf8))' is missing\(place(context.codingPath))"
        case DecodingError.dataCorrupted(let context):
            "it is not well-formed, or out of range\(place(context.codingPath))"
        case DecodingProblem.rawBytes(let error):
            "raw bytes were taken for JSON, and \(reason(error)); bytes(forKey:) reads them as they are"
        case DecodingProblem.notText: "the bytes are not UTF-8"
        case DecodingProblem.noCodec(.custom): "it needs the custom codec that wrote it, and this cache has none"
        case DecodingProblem.noCodec: "this version of Larder does not know that codec"
        case DecodingProblem.otherType(let name): "the custom decoder returned a \(name)"
        default: "\(Swift.type(of: error))"
        }
    }

    /// Where in a model, in words.
    private static func place(_ path: [any CodingKey]) -> String {
        if path.isEmpty { return "" }
        let text = path.map { $0.intValue.map { "[\($0)]" } ?? "." + $0.stringValue }.joined()
        return " at '\(printableKey(text.utf8))'"
    }
}
