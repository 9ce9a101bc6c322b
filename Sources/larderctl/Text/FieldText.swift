import LarderClient
import LarderCommandCatalog

/// Converts replies with lines of fields, such as INFO and CLIENT LIST, to JSON.
///
/// Works on bytes: a path among the fields may not be valid text.
enum FieldText {
    /// Converts the reply of a command; text is parsed if the command's row defines its format.
    static func json(_ reply: RESPValue, of command: CommandMetadata) -> JSONText {
        guard let text = reply.bytes else { return JSONText(reply) }
        return switch command.textForm {
        case .plain: JSONText(reply)
        case .sections: sections(text)
        case .fields: fields(text[...])
        case .linesOfFields: .array(lines(text).filter { !$0.isEmpty }.map(fields))
        }
    }

    /// Parses sections into an object. Each section becomes an object of its lines `name:value`, named like its heading
    /// in lower case.
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

    /// Fields of connections that are always text, even if they look like numbers, because clients choose them.
    private static let chosen: Set<String> = ["name", "lib-name", "lib-ver", "user", "db", "addr", "laddr", "flags"]

    /// Parses `name=value` pairs separated by spaces into an object.
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

    /// Returns a number as a number, and everything else, such as 1.2.3 or 1e5, as text.
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
