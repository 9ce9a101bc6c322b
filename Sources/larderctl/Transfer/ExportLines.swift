// Writes the lines of an export. docs/Operating.md describes them.

import LarderClient
import LarderJSONCoding

/// The first line.
struct ExportHeader: Equatable {
    static let format = "larder-entries"
    /// The version that this program writes, and the latest that it reads.
    static let version: Int64 = 1

    /// The start of the export, in milliseconds since 1970.
    var created: Int64
    /// The larder's directory, if the daemon reports it.
    var larder: String?
    var databases: [String]
    /// Whether these are all databases.
    var isOfAll: Bool
    /// The prefix of the keys; empty for all.
    var prefix: [UInt8]

    /// Whether the other export has the same larder, databases and prefix, regardless of the time.
    func isSameExport(as other: ExportHeader) -> Bool {
        larder == other.larder && prefix == other.prefix && isOfAll == other.isOfAll
            && (isOfAll || databases == other.databases)
    }

    var line: JSONText {
        .object([
            ("format", .text(Self.format)), ("version", .integer(Self.version)), ("created", .integer(created)),
            ("larder", larder.map { .text($0) } ?? .null), ("databases", .array(databases.map { .text($0) })),
            ("all", .bool(isOfAll)), ("prefix", .bytes(prefix)),
        ])
    }
}

/// The line before the entries of a database.
struct DatabaseLine {
    var database: String
    var policy: UpdatePolicy
    /// The grace in milliseconds.
    var grace: Int64
    /// The jitter in percent.
    var jitter: Int64

    var line: JSONText {
        .object([
            ("database", .text(database)), ("policy", .text(policy.description)), ("grace", .integer(grace)),
            ("jitter", .integer(jitter)),
        ])
    }
}

extension JSONText {
    /// The last line, which marks the export as complete.
    static func endLine(entries: Int) -> JSONText {
        .object([("end", .bool(true)), ("entries", .integer(Int64(entries)))])
    }
}

/// A buffer for output lines, written in large pieces. Single owner.
final class LineBuffer {
    var bytes: [UInt8] = []
    /// Including the contents of `bytes`.
    var byteCount: Int { writtenCount + bytes.count }
    private var writtenCount = 0
    private let write: ([UInt8]) throws -> Void

    private static let flushBytes = 262_144

    init(_ write: @escaping ([UInt8]) throws -> Void) { self.write = write }

    func add(_ line: JSONText) {
        line.write(to: &bytes)
        bytes.append(0x0A)
    }

    func flushIfLarge() throws {
        if bytes.count >= Self.flushBytes { try flush() }
    }

    func flush() throws {
        try write(bytes)
        writtenCount += bytes.count
        bytes.removeAll(keepingCapacity: true)
    }
}

extension CarriedEntry {
    /// The encoding of a value.
    private enum Form {
        case literal, text, base64

        var opening: String {
            switch self {
            case .literal: ",\"json\":"
            case .text: ",\"value\":\""
            case .base64: ",\"value\":{\"base64\":\""
            }
        }

        var closing: String {
            switch self {
            case .literal: "}"
            case .text: "\"}"
            case .base64: "\"}}"
            }
        }
    }

    /// Longer values are written in pieces of this size, to keep only one copy in memory. A multiple of three, so that
    /// pieces can be encoded in base 64 separately.
    private static let pieceBytes = 3 << 16

    /// Writes its line.
    func writeLine(to lines: LineBuffer) throws {
        var members: [(name: String, value: JSONText)] = [
            ("database", .text(database)), ("key", .bytes(key)), ("stored-at", .integer(storedAt)),
            ("rule", .text(rule.name)), ("deadline", .optional(deadline)),
        ]
        if let grace { members.append(("grace", .integer(grace))) }
        if codec != Codec.raw.description { members.append(("codec", .text(codec))) }
        if !tags.isEmpty { members.append(("tags", .array(tags.map { .bytes($0) }))) }
        JSONText.object(members).write(to: &lines.bytes)
        // Remove the closing brace: the value becomes a member of the same object.
        lines.bytes.removeLast()
        let form = form
        lines.bytes += form.opening.utf8
        var start = 0
        while start < value.count {
            let end = pieceEnd(start, isText: form == .text)
            let piece = Array(value[start..<end])
            switch form {
            case .literal: lines.bytes += piece
            case .text: JSONText.writeCharacters(piece, to: &lines.bytes)
            case .base64: Base64.encode(piece, into: &lines.bytes)
            }
            start = end
            try lines.flushIfLarge()
        }
        lines.bytes += form.closing.utf8
        lines.bytes.append(0x0A)
        try lines.flushIfLarge()
    }

    /// - Parameter isText: whether a piece must end at a character boundary.
    private func pieceEnd(_ start: Int, isText: Bool) -> Int {
        var end = min(start + Self.pieceBytes, value.count)
        // A character has at most four bytes.
        let least = end - 4
        while isText, end > least, end < value.count, value[end] & 0xC0 == 0x80 { end -= 1 }
        return end
    }

    private var form: Form { isLiteral ? .literal : isText && !isMostlyEscapes ? .text : .base64 }

    /// Whether the value is JSON that can be written unchanged, so that it is restored byte for byte.
    private var isLiteral: Bool {
        guard value.withUnsafeBytes({ JSONOutline.isValue($0) }) else { return false }
        // No line breaks between its parts, and no control characters.
        var last: UInt8 = 0
        for byte in value {
            if byte < 0x20 || byte == 0x7F || (last == 0xC2 && byte < 0xA0) { return false }
            last = byte
        }
        return true
    }

    /// Whether the value is UTF-8.
    private var isText: Bool {
        var start = 0
        while start < value.count {
            let end = pieceEnd(start, isText: true)
            guard end > start, String(validating: value[start..<end], as: UTF8.self) != nil else { return false }
            start = end
        }
        return true
    }

    /// Whether base 64 is shorter than the escaped text. This limits the length of a line.
    private var isMostlyEscapes: Bool {
        var added = 0
        for byte in value {
            switch byte {
            case 0x09, 0x0A, 0x0D, UInt8(ascii: "\""), UInt8(ascii: "\\"): added += 1
            case 0..<0x20, 0x7F, 0xC2: added += 5
            default: break
            }
        }
        return added > 64 + value.count / 3
    }
}
