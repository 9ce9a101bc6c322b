import LarderClient
import LarderCommandCatalog

/// Converts text replies with fields, such as those to INFO and CLIENT LIST, to JSON.
///
/// Works on bytes, because a path in a field need not be UTF-8.
enum FieldText {
    /// Converts the reply to a call, whose first words are the command.
    static func json(_ reply: RESPValue, to words: [[UInt8]]) -> JSONText {
        CommandMetadata.row(of: words).map { json(reply, of: $0) } ?? JSONText(reply)
    }

    /// Converts the reply to a command. Parses text in the format that the command table defines for the command.
    static func json(_ reply: RESPValue, of command: CommandMetadata) -> JSONText {
        guard let text = reply.bytes else { return JSONText(reply) }
        return switch command.textForm {
        case .plain: JSONText(reply)
        case .sections: sections(text)
        case .fields: fields(text[...])
        case .linesOfFields: .array(lines(text).filter { !$0.isEmpty }.map(fields))
        }
    }

    /// Converts a text with sections to an object. Each section becomes a member, named like its heading in lower case,
    /// whose value is an object of the lines `name:value`.
    static func sections(_ text: [UInt8]) -> JSONText {
        var sections: [(name: String, value: JSONText)] = []
        var heading = "general"
        var members: [(name: String, value: JSONText)] = []
        func endSection() {
            if !members.isEmpty { sections.append((heading, .object(members))) }
            members = []
        }
        for line in lines(text) {
            if line.first == UInt8(ascii: "#") {
                endSection()
                heading = String(decoding: line.dropFirst(), as: UTF8.self).lowercased().split(separator: " ")
                    .joined(separator: "-")
            } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
                members.append((String(decoding: line[..<colon], as: UTF8.self), number(line[(colon + 1)...])))
            }
        }
        endSection()
        return .object(sections)
    }

    /// The fields of CLIENT LIST that are always text, even if they look like numbers: clients choose their values.
    private static let chosen: Set<String> = ["name", "lib-name", "lib-ver", "user", "db", "addr", "laddr", "flags"]

    private static func fields(_ line: ArraySlice<UInt8>) -> JSONText {
        .object(pairs(line).map { ($0.name, chosen.contains($0.name) ? .bytes(Array($0.value)) : number($0.value)) })
    }

    /// Returns the pairs `name=value` of a line, which are separated by spaces.
    static func pairs(_ line: ArraySlice<UInt8>) -> [(name: String, value: ArraySlice<UInt8>)] {
        line.split { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D }.compactMap { word in
            guard let equals = word.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            return (String(decoding: word[..<equals], as: UTF8.self), word[(equals + 1)...])
        }
    }

    static func lines(_ text: [UInt8]) -> [ArraySlice<UInt8>] {
        text.split(separator: 0x0A).map { $0.last == 0x0D ? $0.dropLast() : $0 }
    }

    /// Converts a decimal number to a JSON number, and all other values, such as 1.2.3 or 1e5, to text.
    private static func number(_ bytes: ArraySlice<UInt8>) -> JSONText {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.wholeMatch(of: #/-?(0|[1-9][0-9]*)(\.[0-9]+)?/#) != nil else { return .bytes(Array(bytes)) }
        if let number = Int64(text) { return .integer(number) }
        if text.contains("."), let number = Double(text) { return .double(number) }
        return .bytes(Array(bytes))
    }
}
