import LarderClient
import LarderCommandCatalog

/// Replies that are lines of fields, such as those of INFO and CLIENT LIST, as JSON.
///
/// Works on bytes: a path among the fields need not be text.
enum FieldText {
    /// The reply of a command; its text taken apart if its row says how.
    static func json(_ reply: RESPValue, of command: CommandMetadata) -> JSONText {
        guard let text = reply.bytes else { return JSONText(reply) }
        return switch command.textForm {
        case .plain: JSONText(reply)
        case .sections: sections(text)
        case .fields: fields(text[...])
        case .linesOfFields: .array(lines(text).filter { !$0.isEmpty }.map(fields))
        }
    }

    /// An object of sections, each an object of its lines of `name:value`. Sections have their headings' names, in small letters.
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

    /// The fields of connections that are text, whatever is in them: somebody has chosen them.
    private static let chosen: Set<String> = ["name", "lib-name", "lib-ver", "user", "db", "addr", "laddr", "flags"]

    /// An object of `name=value` between blanks.
    private static func fields(_ line: ArraySlice<UInt8>) -> JSONText {
        let words = line.split { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D }
        return .object(
            words.compactMap { word in
                guard let equals = word.firstIndex(of: UInt8(ascii: "=")) else { return nil }
                let (name, value) = (String(decoding: word[..<equals], as: UTF8.self), word[(equals + 1)...])
                return (name, chosen.contains(name) ? .bytes(Array(value)) : number(value))
            })
    }

    private static func lines(_ text: [UInt8]) -> [ArraySlice<UInt8>] {
        text.split(separator: 0x0A).map { $0.last == 0x0D ? $0.dropLast() : $0 }
    }

    /// A number as a number; everything else, such as 1.2.3 or 1e5, as text.
    private static func number(_ bytes: ArraySlice<UInt8>) -> JSONText {
        let text = String(decoding: bytes, as: UTF8.self)
        if let number = Int64(text), String(number) == text { return .integer(number) }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        if parts.count == 2, let whole = Int64(parts[0]), String(whole) == parts[0], !parts[1].isEmpty,
            parts[1].utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = Double(text)
        {
            return .double(number)
        }
        return .bytes(Array(bytes))
    }
}
