import LarderJSONCoding
import LarderVocabulary

/// Why bytes are not a model of the requested type, if no decoder has thrown an error.
package enum DecodingProblem: Error {
    case rawBytes(any Error)
    case notText
    case noCodec(Codec)
    case otherType(String)
}

/// Describes the errors of coders. The text names types and fields, never values.
package enum CodingProblem {
    /// Why a value could not be encoded.
    package static func encoding(_ error: any Error, _ codec: Codec) -> String {
        guard case EncodingError.invalidValue(let value, let context) = error else { return "\(type(of: error))" }
        if let type = notFinite(value, context) {
            return "a value of type \(type) is not finite\(place(context.codingPath))"
        }
        if isTooDeep(context) {
            return "it nests more than \(JSONCoder.depthMax) objects and arrays, which is the limit"
        }
        var reason = "a value of type \(type(of: value)) cannot be encoded\(place(context.codingPath))"
        if codec == .propertyList, context.codingPath.isEmpty {
            reason += "; a property list holds structs, arrays and dictionaries at its top"
        }
        return reason
    }

    /// The type of a number or date that is not finite; nil for other values.
    private static func notFinite(_ value: Any, _ context: EncodingError.Context) -> Any.Type? {
        if let known = context.underlyingError as? NotFinite { return known.type }
        // The text of Foundation's encoder.
        if let number = value as? any FloatingPoint, !number.isFinite { return type(of: value) }
        return nil
    }

    private static func isTooDeep(_ context: EncodingError.Context) -> Bool {
        if context.underlyingError is NestingTooDeep { return true }
        // Foundation's encoder refuses a finished document for this reason only, with this text.
        return context.codingPath.isEmpty
            && context.debugDescription.hasPrefix("Unable to encode the given top-level value to JSON")
    }

    /// Why stored bytes could not be read.
    package static func decoding(_ error: any Error) -> String {
        switch error {
        case DecodingError.typeMismatch(let wanted, let context):
            "\(wanted) was expected\(place(context.codingPath)), but another type was found"
        case DecodingError.valueNotFound(let wanted, let context):
            "\(wanted) was expected\(place(context.codingPath)), but null was found"
        case DecodingError.keyNotFound(let field, let context):
            "the field '\(printableKey(field.stringValue.utf8))' is missing\(place(context.codingPath))"
        case DecodingError.dataCorrupted(let context):
            "it is not well-formed, or out of range\(place(context.codingPath))"
        case DecodingProblem.rawBytes(let error):
            "raw bytes cannot be decoded as JSON: \(decoding(error)); use bytes(forKey:) to read them unchanged"
        case DecodingProblem.notText: "the bytes are not UTF-8"
        case DecodingProblem.noCodec(.custom): "it needs the custom codec that wrote it, and this cache has none"
        case DecodingProblem.noCodec: "this version of Larder does not know that codec"
        case DecodingProblem.otherType(let name): "the custom decoder returned a \(name)"
        default: "\(type(of: error))"
        }
    }

    /// The underlying error that callers see: the decoder's own.
    package static func underlying(_ error: any Error) -> any Error {
        if case DecodingProblem.rawBytes(let error) = error { error } else { error }
    }

    /// A path in a model, in words.
    private static func place(_ path: [any CodingKey]) -> String {
        if path.isEmpty { return "" }
        let text = path.map { $0.intValue.map { "[\($0)]" } ?? "." + $0.stringValue }.joined()
        return " at '\(printableKey(text.utf8))'"
    }
}
