import LarderJSONCoding
import LarderVocabulary

/// Why stored bytes cannot be decoded as the requested type, if the reason is not an error of the decoder.
package enum DecodingProblem: Error {
    case rawBytes(any Error)
    case notText
    case noCodec(Codec)
    case otherType(String)
}

/// Describes the errors of encoders and decoders. The texts contain the names of types and fields, but no values.
package enum CodingProblem {
    /// Returns why a value could not be encoded.
    package static func encoding(_ error: any Error, _ codec: Codec) -> String {
        if let mismatch = error as? PropertyChecks.Mismatch { return mismatch.text }
        if let problem = error as? SchemaProblem { return problem.text }
        guard case EncodingError.invalidValue(let value, let context) = error else { return "\(type(of: error))" }
        if let type = notFinite(value, context) {
            return "a value of type \(type) is not finite\(place(context.codingPath))"
        }
        if isTooDeep(context) {
            return "it nests more than \(JSONCoder.depthMax) objects and arrays, which is the limit"
        }
        var reason = "a value of type \(type(of: value)) cannot be encoded\(place(context.codingPath))"
        if codec == .propertyList, context.codingPath.isEmpty {
            reason += "; at its top level, a property list can have only structs, arrays and dictionaries"
        }
        return reason
    }

    /// Returns the type of a number or date that is infinite or not a number; nil for other errors.
    private static func notFinite(_ value: Any, _ context: EncodingError.Context) -> Any.Type? {
        if let known = context.underlyingError as? NotFinite { return known.type }
        // Foundation's encoder reports the value itself.
        if let number = value as? any FloatingPoint, !number.isFinite { return type(of: value) }
        return nil
    }

    private static func isTooDeep(_ context: EncodingError.Context) -> Bool {
        if context.underlyingError is NestingTooDeep { return true }
        // Foundation's encoder throws this text, without a path, only if the nesting is too deep.
        return context.codingPath.isEmpty
            && context.debugDescription.hasPrefix("Unable to encode the given top-level value to JSON")
    }

    /// Returns why stored bytes could not be decoded.
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
        case let problem as SchemaProblem: problem.text
        case DecodingProblem.notText: "the bytes are not UTF-8"
        case DecodingProblem.noCodec(.custom): "it needs the custom codec that wrote it, and this cache has none"
        case DecodingProblem.noCodec: "this version of Larder does not know that codec"
        case DecodingProblem.otherType(let name): "the custom decoder returned a \(name)"
        default: "\(type(of: error))"
        }
    }

    /// Returns the decoder's own error, which callers get as underlying error.
    package static func underlying(_ error: any Error) -> any Error {
        if case DecodingProblem.rawBytes(let error) = error { error } else { error }
    }

    /// Describes a path in a model, for error messages; empty for the top level.
    private static func place(_ path: [any CodingKey]) -> String {
        if path.isEmpty { return "" }
        let text = path.map { $0.intValue.map { "[\($0)]" } ?? "." + $0.stringValue }.joined()
        return " at '\(printableKey(text.utf8))'"
    }
}
