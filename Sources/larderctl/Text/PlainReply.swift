import LarderClient

/// Writes replies as text for scripts: one line for each element, with nested arrays and maps indented. Null is written
/// as (nil) within an array or map; a reply that is null writes nothing.
enum PlainReply {
    static func write(_ reply: RESPValue, to output: Output) { write(reply, indent: 0, to: output) }

    private static func write(_ reply: RESPValue, indent: Int, to output: Output) {
        switch reply {
        case .null:
            if indent > 0 { output.line(margin(indent) + Array("(nil)".utf8)) }
        case .array(let elements), .set(let elements), .push(let elements):
            for element in elements { writePart(element, name: nil, indent: indent, to: output) }
        case .map(let pairs):
            for pair in pairs {
                writePart(pair.value, name: word(pair.key) + Array(":".utf8), indent: indent, to: output)
            }
        default:
            output.line(margin(indent) + word(reply))
        }
    }

    /// Writes an element of an array, or a value of a map with its name: on one line, or with its own parts below.
    private static func writePart(_ part: RESPValue, name: [UInt8]?, indent: Int, to output: Output) {
        switch part {
        case .array, .set, .map, .push:
            output.oneLine(margin(indent) + (name ?? Array("-".utf8)))
            write(part, indent: indent + 2, to: output)
        default:
            output.oneLine(margin(indent) + (name.map { $0 + Array(" ".utf8) } ?? []) + word(part))
        }
    }

    private static func margin(_ indent: Int) -> [UInt8] { Array(repeating: UInt8(ascii: " "), count: indent) }

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
