// JSON output. A separate writer, because keys and values are bytes, which a library's strings cannot hold.

import RESP

/// A JSON document.
///
/// Bytes that are not UTF-8 text are written as `{"base64": "…"}`.
indirect enum JSONText {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case bytes([UInt8])
    case array([JSONText])
    /// The names in their order of writing.
    case object([(name: String, value: JSONText)])

    static func text(_ text: String) -> JSONText { .bytes(Array(text.utf8)) }

    /// A number, or null for nil.
    static func optional(_ number: Int64?) -> JSONText { number.map { .integer($0) } ?? .null }

    func write(to output: inout [UInt8]) {
        switch self {
        case .null: output += "null".utf8
        case .bool(let value): output += (value ? "true" : "false").utf8
        case .integer(let value): output += String(value).utf8
        // JSON has no infinities and no NaN.
        case .double(let value): output += (value.isFinite ? "\(value)" : "\"\(value)\"").utf8
        case .bytes(let bytes): Self.write(bytes, to: &output)
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
                Self.writeString(Array(member.name.utf8), to: &output)
                output.append(UInt8(ascii: ":"))
                member.value.write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ bytes: [UInt8], to output: inout [UInt8]) {
        if String(validating: bytes, as: UTF8.self) != nil {
            writeString(bytes, to: &output)
        } else {
            output += "{\"base64\":\"".utf8
            writeBase64(bytes, to: &output)
            output += "\"}".utf8
        }
    }

    /// Writes UTF-8 text between quotes.
    private static func writeString(_ bytes: [UInt8], to output: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        output.append(UInt8(ascii: "\""))
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): output += [UInt8(ascii: "\\"), byte]
            case 0x0A: output += "\\n".utf8
            case 0x0D: output += "\\r".utf8
            case 0x09: output += "\\t".utf8
            case 0..<0x20, 0x7F: output += "\\u00".utf8 + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            // The control characters U+0080 to U+009F, which terminals obey as well; two bytes each.
            case 0xC2 where bytes[index + 1] < 0xA0: output += "\\u00".utf8
            case 0x80..<0xA0 where bytes[index - 1] == 0xC2: output += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: output.append(byte)
            }
        }
        output.append(UInt8(ascii: "\""))
    }

    private static func writeBase64(_ bytes: [UInt8], to output: inout [UInt8]) {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let piece = bytes[start..<min(start + 3, bytes.count)]
            var bits = piece.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            bits <<= UInt32(8 * (3 - piece.count))
            for place in 0..<4 {
                let letter = letters[Int(bits >> UInt32(18 - 6 * place)) & 63]
                output.append(place <= piece.count ? letter : UInt8(ascii: "="))
            }
        }
    }
}

extension JSONText {
    /// A reply of the server, of any form.
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

    /// An object if every key is text; else an array of alternating keys and values.
    private static func object(of pairs: [RESPValue.Pair]) -> JSONText {
        var members: [(name: String, value: JSONText)] = []
        for pair in pairs {
            guard let name = pair.key.string else {
                return .array(pairs.flatMap { [JSONText($0.key), JSONText($0.value)] })
            }
            members.append((name, JSONText(pair.value)))
        }
        return .object(members)
    }
}
