import LarderClient
import LarderCommandCatalog

/// Replies as redis-cli shows them to people: with their types, strings in quotes, elements numbered. No byte of a reply
/// reaches the terminal as a control character.
struct TypedReply {
    /// Nobody wants to read the rest.
    struct Stopped: Error {}

    private let output: Output
    private let isStopped: () -> Bool

    /// - Parameter isStopped: asked now and then while a long reply is written.
    init(_ output: Output, isStopped: @escaping () -> Bool) {
        self.output = output
        self.isStopped = isStopped
    }

    /// Writes a message that has come without being asked for.
    func writeMessage(_ message: RESPValue) throws {
        output.bytes("-> ".utf8)
        try write(message, indent: 3)
    }

    /// Writes the reply of a command; nil for one that the catalog does not have.
    func write(_ reply: RESPValue, of command: CommandMetadata?) throws {
        if let text = text(of: reply, command) {
            output.line(text.last == 0x0A ? Array(text.dropLast()) : text)
        } else {
            try write(reply, indent: 0)
        }
    }

    /// What is shown as it is, line by line.
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

    /// Writes the rest of a line that has begun, and what belongs below it.
    private func write(_ reply: RESPValue, indent: Int) throws {
        switch reply {
        case .array(let elements): try write(elements, mark: ")", empty: "(empty array)", indent)
        case .set(let elements): try write(elements, mark: "~", empty: "(empty set)", indent)
        case .push(let elements): try write(elements, mark: ")", empty: "(empty push)", indent)
        case .map(let pairs): try write(pairs, indent)
        default: output.line(Self.word(reply))
        }
        if isStopped() { throw Stopped() }
        try output.flushIfLarge()
    }

    private func write(_ elements: [RESPValue], mark: String, empty: String, _ indent: Int) throws {
        if elements.isEmpty { output.line(empty) }
        for (index, element) in elements.enumerated() {
            let margin = begin(index, of: elements.count, mark, indent)
            try write(element, indent: margin)
        }
    }

    private func write(_ pairs: [RESPValue.Pair], _ indent: Int) throws {
        if pairs.isEmpty { output.line("(empty map)") }
        for (index, pair) in pairs.enumerated() {
            let margin = begin(index, of: pairs.count, "#", indent)
            output.bytes((Self.word(pair.key) + " => ").utf8)
            try write(pair.value, indent: margin)
        }
    }

    /// Begins the line of an element.
    /// - Returns: where its text stands.
    private func begin(_ index: Int, of count: Int, _ mark: String, _ indent: Int) -> Int {
        let width = "\(count)".count
        let number = "\(index + 1)"
        // The first one stands on the line of what is around it.
        let margin = (index == 0 ? 0 : indent) + width - number.count
        output.bytes((String(repeating: " ", count: margin) + number + mark + " ").utf8)
        return indent + width + mark.count + 1
    }

    /// A value in one line.
    private static func word(_ reply: RESPValue) -> String {
        switch reply {
        case .simpleString(let text): safe(Array(text.utf8))
        case .error(let text): "(error) " + safe(Array(text.utf8))
        case .integer(let number): "(integer) \(number)"
        case .double(let number): "(double) \(number)"
        case .bigNumber(let digits): "(big number) " + safe(Array(digits.utf8))
        case .boolean(let value): "(\(value))"
        case .null: "(nil)"
        case .bulk(let bytes), .verbatim(_, let bytes): quoted(bytes)
        case .array, .set, .map, .push: "(…)"
        }
    }

    private static func safe(_ bytes: [UInt8]) -> String {
        String(decoding: TerminalText.escaped(bytes, keepsLines: false), as: UTF8.self)
    }

    /// In the form that can be typed in.
    static func quoted(_ bytes: [UInt8]) -> String {
        var escaped: [UInt8] = []
        escaped.reserveCapacity(bytes.count + 2)
        for byte in bytes {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { escaped.append(UInt8(ascii: "\\")) }
            escaped.append(byte)
        }
        return "\"\(safe(escaped))\""
    }
}
