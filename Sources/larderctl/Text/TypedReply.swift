import LarderClient
import LarderCommandCatalog

/// Writes replies like redis-cli: with types, quoted strings and numbered elements. Escapes control characters.
struct TypedReply {
    /// The error if the user has stopped the output.
    struct Stopped: Error {}

    let output: Output
    /// Returns whether the user has stopped the output. Called while a reply is written.
    let isStopped: () -> Bool

    /// Writes a push message, such as one of a subscription.
    func writeMessage(_ message: RESPValue) throws {
        output.bytes("-> ".utf8)
        try write(message, indent: 3)
    }

    /// Writes a reply.
    /// - Parameter command: the command; nil if it is not in the command table.
    func write(_ reply: RESPValue, of command: CommandMetadata?) throws {
        if let text = text(of: reply, command) {
            output.line(text.last == 0x0A ? Array(text.dropLast()) : text)
        } else {
            try write(reply, indent: 0)
        }
    }

    /// Returns the text of a reply that is shown as lines of text, such as that to INFO; nil for other replies.
    private func text(of reply: RESPValue, _ command: CommandMetadata?) -> [UInt8]? {
        let bytes: [UInt8]
        switch reply {
        case .verbatim(_, let text): bytes = text
        case .bulk(let text):
            guard let command else { return nil }
            if case .plain = command.textForm { return nil }
            bytes = text
        default: return nil
        }
        return bytes.filter { $0 != 0x0D }
    }

    /// Writes a value at the end of a line that has been started, and further lines if necessary.
    private func write(_ reply: RESPValue, indent: Int) throws {
        if let parts = reply.parts {
            let (kind, mark) =
                switch reply {
                case .set: ("set", "~")
                case .map: ("map", "#")
                case .push: ("push", ")")
                default: ("array", ")")
                }
            if parts.isEmpty { output.line("(empty \(kind))") }
            let width = "\(parts.count)".count
            for (index, part) in parts.enumerated() {
                // The first part is on the same line as the number of its array or map.
                let margin = String(repeating: " ", count: index == 0 ? 0 : indent)
                let name = part.key.map { Self.word($0) + " => " } ?? ""
                output.bytes("\(margin)\("\(index + 1)".padded(width, isRight: true))\(mark) \(name)".utf8)
                try write(part.value, indent: indent + width + mark.count + 1)
            }
        } else {
            output.line(Self.word(reply))
        }
        if isStopped() { throw Stopped() }
        try output.flushIfLarge()
    }

    /// Returns the text of a value on one line.
    private static func word(_ reply: RESPValue) -> String {
        switch reply {
        case .simpleString(let text): TerminalText.escaped(text)
        case .error(let text): "(error) " + TerminalText.escaped(text)
        case .integer(let number): "(integer) \(number)"
        case .double(let number): "(double) \(number)"
        case .bigNumber(let digits): "(big number) " + TerminalText.escaped(digits)
        case .boolean(let value): "(\(value))"
        case .null: "(nil)"
        case .bulk(let bytes), .verbatim(_, let bytes): quoted(bytes)
        case .array, .set, .map, .push: "(…)"
        }
    }

    /// Returns bytes as text in quotes, as a user would type them.
    static func quoted(_ bytes: [UInt8]) -> String {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(bytes.count + 2)
        for byte in bytes {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { escaped.append(UInt8(ascii: "\\")) }
            escaped.append(byte)
        }
        return "\"\(String(decoding: TerminalText.escaped(escaped, keepsLines: false), as: UTF8.self))\""
    }
}

/// Writes replies as text for scripts: one line for each element, with nested arrays and maps indented. Null is written
/// as (nil) within an array or map; a reply that is null writes nothing.
enum PlainReply {
    static func write(_ reply: RESPValue, to output: Output) {
        if !reply.isNull { write(reply, indent: 0, to: output) }
    }

    private static func write(_ reply: RESPValue, indent: Int, to output: Output) {
        guard let parts = reply.parts else { return output.line(word(reply)) }
        for (key, value) in parts {
            let name = key.map { word($0) + Array(":".utf8) }
            if value.parts == nil {
                output.oneLine(margin(indent) + (name.map { $0 + Array(" ".utf8) } ?? []) + word(value))
            } else {
                // The parts of the value are on the lines below.
                output.oneLine(margin(indent) + (name ?? Array("-".utf8)))
                write(value, indent: indent + 2, to: output)
            }
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

extension RESPValue {
    /// The parts of an array, a set, a push message or a map, with their keys in a map; nil for other values.
    fileprivate var parts: [(key: RESPValue?, value: RESPValue)]? {
        if case .map(let pairs) = self { return pairs.map { ($0.key, $0.value) } }
        return elements?.map { (nil, $0) }
    }
}
