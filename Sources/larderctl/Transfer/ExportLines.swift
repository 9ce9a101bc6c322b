// Writes the lines of an export. docs/Operating.md describes their format.

import LarderClient
import LarderJSONCoding

/// The first line of an export.
struct ExportHeader: Equatable {
    static let format = "larder-entries"
    /// The version of the format that this program writes, and the only one that it reads.
    static let version: Int64 = 1

    /// When the export was started, in milliseconds since 1970.
    var created: Int64
    /// The larder's directory; nil if the daemon does not report it.
    var larder: String?
    var databases: [String]
    /// Whether `databases` contains all databases of the larder.
    var isOfAll: Bool
    /// The prefix of the exported keys; empty for all keys.
    var prefix: [UInt8]

    /// Whether the other export is of the same larder, databases and prefix. Ignores the start time.
    func isSameExport(as other: ExportHeader) -> Bool {
        larder == other.larder && prefix == other.prefix && isOfAll == other.isOfAll
            && (isOfAll || databases == other.databases)
    }

    var line: JSONText {
        [
            "format": Self.format, "version": Self.version, "created": created, "larder": larder,
            "databases": databases, "all": isOfAll, "prefix": prefix,
        ]
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
        ["database": database, "policy": policy.description, "grace": grace, "jitter": jitter]
    }
}

extension CarriedEntry {
    /// The encoding of a value.
    private enum Form { case literal, text, base64 }

    /// Values are encoded in pieces of this size in bytes, so that memory does not hold a second copy of a long value.
    /// A multiple of three, so that each piece can be encoded in base 64 separately.
    private static let pieceBytes = 3 << 16

    /// Writes the line of this entry.
    func writeLine(to lines: Output) throws {
        JSONText.present([
            "database": database, "key": key, "stored-at": storedAt, "rule": rule.name,
            "deadline": deadline?.json ?? .null, "grace": grace, "codec": codec == Codec.raw.description ? nil : codec,
            "tags": tags.isEmpty ? nil : tags,
        ]).write(to: &lines.buffer)
        // Remove the closing brace, because the value follows as last member of the object.
        lines.buffer.removeLast()
        let form = form
        let (opening, closing) =
            switch form {
            case .literal: (",\"json\":", "}")
            case .text: (",\"value\":\"", "\"}")
            case .base64: (",\"value\":{\"base64\":\"", "\"}}")
            }
        lines.bytes(opening.utf8)
        var start = 0
        while start < value.count {
            let end = pieceEnd(start, isText: form == .text)
            let piece = Array(value[start..<end])
            switch form {
            case .literal: lines.bytes(piece)
            case .text: JSONText.writeCharacters(piece, to: &lines.buffer)
            case .base64: lines.bytes(Base64.encoded(piece))
            }
            start = end
            try lines.flushIfLarge()
        }
        lines.bytes((closing + "\n").utf8)
        try lines.flushIfLarge()
    }

    /// - Parameter isText: whether the piece must end at the end of a UTF-8 character.
    private func pieceEnd(_ start: Int, isText: Bool) -> Int {
        var end = min(start + Self.pieceBytes, value.count)
        // A character has at most four bytes.
        let least = end - 4
        while isText, end > least, end < value.count, value[end] & 0xC0 == 0x80 { end -= 1 }
        return end
    }

    private var form: Form { isLiteral ? .literal : isText && !isMostlyEscapes ? .text : .base64 }

    /// Whether the value is JSON that can be written into the line unchanged, so that imports restore it exactly.
    private var isLiteral: Bool {
        guard value.withUnsafeBytes({ JSONOutline.isValue($0) }) else { return false }
        // The value must not contain line breaks or other control characters.
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

    /// Whether the escapes would make the text longer than base 64. Base 64 then limits the length of the line.
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
