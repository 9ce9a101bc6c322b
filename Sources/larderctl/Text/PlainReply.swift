import LarderClient

/// Writes replies as text for scripts: one line for each element, with nested arrays and maps indented. Null is written
/// as (nil) within an array or map; a reply that is null writes nothing.
enum PlainReply {
    static func write(_ reply: RESPValue, to output: Output) { write(reply, indent: 0, to: output) }

    private static func write(_ reply: RESPValue, indent: Int, to output: Output) {
        let margin = Array(repeating: UInt8(ascii: " "), count: indent)
        switch reply {
        case .null:
            if indent > 0 { output.line(margin + Array("(nil)".utf8)) }
        case .array(let elements), .set(let elements), .push(let elements):
            for element in elements { writeElement(element, indent: indent, to: output) }
        case .map(let pairs):
            for pair in pairs { write(pair, indent: indent, to: output) }
        default:
            output.line(margin + word(reply))
        }
    }

    private static func writeElement(_ element: RESPValue, indent: Int, to output: Output) {
        let margin = Array(repeating: UInt8(ascii: " "), count: indent)
        switch element {
        case .array, .set, .map, .push:
            output.line(margin + Array("-".utf8))
            write(element, indent: indent + 2, to: output)
        default:
            output.oneLine(margin + word(element))
        }
    }

    private static func write(_ pair: RESPValue.Pair, indent: Int, to output: Output) {
        let name = Array(repeating: UInt8(ascii: " "), count: indent) + word(pair.key) + Array(":".utf8)
        switch pair.value {
        case .array, .set, .map, .push:
            output.oneLine(name)
            write(pair.value, indent: indent + 2, to: output)
        default:
            output.oneLine(name + Array(" ".utf8) + word(pair.value))
        }
    }

    /// Returns the text of a value that is not an array, a set, a map or a push.
    private static func word(_ reply: RESPValue) -> [UInt8] {
        switch reply {
        case .null: Array("(nil)".utf8)
        case .error(let text): Array("(error) \(text)".utf8)
        case .integer(let number): Array("\(number)".utf8)
        case .double(let number): Array("\(number)".utf8)
        case .boolean(let value): Array("\(value)".utf8)
        default: reply.bytes ?? Array("(…)".utf8)
        }
    }
}
