// Writes JSON. Foundation's encoder is not used, because it has no form for keys and values that are not text.

import LarderPlatform
import LarderRESP
import LarderServices

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A JSON value to be written.
///
/// Bytes that are not UTF-8 text are written as `{"base64": "…"}`.
indirect enum JSONText {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case bytes([UInt8])
    /// A text that is JSON already.
    case raw([UInt8])
    case array([JSONText])
    /// The members, in the order in which they are written.
    case object([(name: String, value: JSONText)])

    static func text(_ text: String) -> JSONText { .bytes(Array(text.utf8)) }

    /// Returns an object of those members that are not nil.
    static func present(_ members: KeyValuePairs<String, (any JSONValue)?>) -> JSONText {
        .object(members.compactMap { name, value in value.map { (name, $0.json) } })
    }

    func write(to output: inout [UInt8]) {
        switch self {
        case .null: output += "null".utf8
        case .bool(let value): output += (value ? "true" : "false").utf8
        case .integer(let value): output += String(value).utf8
        // JSON has no infinity and no NaN, so write them as strings.
        case .double(let value): output += (value.isFinite ? "\(value)" : "\"\(value)\"").utf8
        case .bytes(let bytes): Self.write(bytes, to: &output)
        case .raw(let bytes): output += bytes
        case .array(let elements):
            output.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                element.write(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .object(let members):
            output.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                output += "\"\(LogFormat.escaped(member.name))\":".utf8
                member.value.write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ bytes: [UInt8], to output: inout [UInt8]) {
        if let text = String(validating: bytes, as: UTF8.self) {
            output += "\"\(LogFormat.escaped(text))\"".utf8
        } else {
            output += "{\"base64\":\"".utf8 + Base64.encoded(bytes) + "\"}".utf8
        }
    }
}

/// What can be a member of a JSON object that is written as a dictionary literal.
protocol JSONValue {
    var json: JSONText { get }
    /// Returns the array of these elements.
    static func json(of elements: [Self]) -> JSONText
}

extension JSONValue {
    static func json(of elements: [Self]) -> JSONText { .array(elements.map(\.json)) }
}

extension Bool: JSONValue { var json: JSONText { .bool(self) } }
extension Double: JSONValue { var json: JSONText { .double(self) } }
extension String: JSONValue { var json: JSONText { .text(self) } }
extension JSONText: JSONValue { var json: JSONText { self } }
extension Int64: JSONValue { var json: JSONText { .integer(self) } }
extension Int: JSONValue { var json: JSONText { .integer(Int64(self)) } }
extension UInt32: JSONValue { var json: JSONText { .integer(Int64(self)) } }
extension Array: JSONValue where Element: JSONValue { var json: JSONText { Element.json(of: self) } }

/// An array of bytes is text, or base 64.
extension UInt8: JSONValue {
    var json: JSONText { .integer(Int64(self)) }
    static func json(of elements: [UInt8]) -> JSONText { .bytes(elements) }
}

/// An object whose members are in the literal's order; null for nil.
extension JSONText: ExpressibleByDictionaryLiteral {
    init(dictionaryLiteral members: (String, (any JSONValue)?)...) {
        self = .object(members.map { ($0, $1?.json ?? .null) })
    }
}

extension JSONText {
    /// Converts a reply of the daemon.
    init(_ reply: RESPValue) {
        switch reply {
        case .simpleString(let text), .bigNumber(let text): self = .text(text)
        case .error(let text): self = .object([("error", .text(text))])
        case .integer(let number): self = .integer(number)
        case .bulk(let bytes), .verbatim(_, let bytes): self = .bytes(bytes)
        case .null: self = .null
        case .array(let elements), .set(let elements), .push(let elements):
            self = .array(elements.map { JSONText($0) })
        case .double(let number): self = .double(number)
        case .boolean(let value): self = .bool(value)
        case .map(let pairs): self = Self.object(of: pairs)
        }
    }

    /// Returns an object if all keys are text or numbers; otherwise an array of alternating keys and values.
    private static func object(of pairs: [RESPValue.Pair]) -> JSONText {
        var members: [(name: String, value: JSONText)] = []
        for pair in pairs {
            guard let name = pair.key.string ?? pair.key.int.map({ "\($0)" }) else {
                return .array(pairs.flatMap { [JSONText($0.key), JSONText($0.value)] })
            }
            members.append((name, JSONText(pair.value)))
        }
        return .object(members)
    }
}

/// Encodes and decodes base 64 with the standard alphabet and padding (RFC 4648, section 4).
enum Base64 {
    static func encoded(_ bytes: [UInt8]) -> Data { Data(bytes).base64EncodedData() }

    /// Decodes a text. Returns nil unless ``encoded(_:)`` would return exactly this text.
    static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let bytes = Data(base64Encoded: Data(text)) else { return nil }
        // Foundation also accepts a last letter whose unused bits are not zero.
        let end = Data(bytes.suffix(bytes.count % 3)).base64EncodedData()
        guard (bytes.count + 2) / 3 * 4 == text.count, end.elementsEqual(text.suffix(end.count)) else { return nil }
        return Array(bytes)
    }
}
