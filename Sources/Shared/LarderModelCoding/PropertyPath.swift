import LarderJSONCoding

/// The names of stored properties.
package enum PropertyPath {
    /// Returns the names in a key path, joined by dots; nil if it contains a computed property or a subscript.
    package static func names(of property: AnyKeyPath) -> String? {
        // The description of a key path is `\Type.name.name`; optional steps end with `?`.
        let description = String(describing: property)
        let prefix = "\\\(type(of: property).rootType)."
        let names = description.dropFirst(prefix.count).replacing("?", with: "").replacing("!", with: "")
        guard description.hasPrefix(prefix), !names.isEmpty, names != "self", !names.contains("<"), !names.contains("(")
        else { return nil }
        return String(names)
    }

    /// Whether a key path has `!`: to apply it ends the process if the value is nil.
    static func unwraps(_ property: AnyKeyPath) -> Bool { "\(property)".contains("!") }
}

extension ModelCodec {
    /// An array of one element, because a text or bytes alone are not stored as JSON.
    private struct OnlyElement<Value: Encodable>: Encodable {
        let value: Value

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(value)
        }
    }

    /// Encodes a value as JSON, also a text or bytes.
    /// - Returns: nil if the codec, or the program's encoder, does not write JSON.
    package func json(of value: some Encodable) throws -> JSONText? {
        guard codec == .json else { return nil }
        let array: [UInt8]
        do {
            array = try encodeModel(OnlyElement(value: value)).bytes
        } catch EncodingError.invalidValue(let value, let context) {
            // Without the index in the array.
            throw EncodingError.invalidValue(
                value,
                EncodingError.Context(
                    codingPath: Array(context.codingPath.dropFirst()), debugDescription: context.debugDescription,
                    underlyingError: context.underlyingError))
        }
        return try? JSONText(onlyElementOf: array)
    }
}
