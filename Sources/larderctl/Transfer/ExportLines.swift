// Writes and parses the lines of an export. docs/Operating.md describes their format.

import LarderClient
import LarderJSONCoding
import LarderServices
import LarderVocabulary

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
    /// The indexes of each database. A member of this line, because earlier versions ignore it here only.
    var indexes: [String: [ListedIndex]] = [:]

    /// Whether the other export is of the same larder, databases and prefix. Ignores the start time and the indexes.
    func isSameExport(as other: ExportHeader) -> Bool {
        larder == other.larder && prefix == other.prefix && isOfAll == other.isOfAll
            && (isOfAll || databases == other.databases)
    }

    var line: JSONText {
        let list = databases.flatMap { database in
            (indexes[database] ?? []).map { index -> JSONText in
                ["database": database, "name": index.name, "prefix": index.prefix, "paths": index.paths]
            }
        }
        return .present([
            "format": Self.format, "version": Self.version, "created": created, "larder": larder?.json ?? JSONText.null,
            "databases": databases, "all": isOfAll, "prefix": prefix, "indexes": list.isEmpty ? nil : list,
        ])
    }
}

/// The line before the entries of a database. The grace is in milliseconds, the jitter in percent.
struct DatabaseLine {
    var database: String
    var policy: UpdatePolicy
    var grace: Int64
    var jitter: Int64

    var line: JSONText { ["database": database, "policy": policy.description, "grace": grace, "jitter": jitter] }
}

extension StoredEntry {
    /// The encoding of a value.
    private enum Form { case literal, text, base64 }

    /// Values are encoded in pieces of this size in bytes, so that memory does not hold a second copy of a long value.
    /// A multiple of three, so that each piece can be encoded in base 64 separately.
    private static let pieceBytes = 3 << 16

    func writeLine(_ database: String, to lines: Output) throws {
        JSONText.present([
            "database": database, "key": key, "stored-at": storedAt, "rule": rule,
            "deadline": deadline < 0 ? JSONText.null : deadline.json, "grace": grace < 0 ? nil : grace,
            "codec": codec == Codec.raw.description ? nil : codec, "tags": tags.isEmpty ? nil : tags,
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
            case .text: lines.bytes(LogFormat.escaped(String(decoding: piece, as: UTF8.self)).utf8)
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

/// The error in a line of an export. The message describes the correct form.
struct LineDefect: Error {
    let message: String

    init(_ message: String) { self.message = message }
}

enum ExportLine {
    case header(ExportHeader)
    case database(DatabaseLine)
    case entry(StoredEntry, database: String)
    /// The last line. The value is the number of entries in the export.
    case end(Int64)

    static func parsed(_ text: UnsafeRawBufferPointer) -> Result<ExportLine, LineDefect> {
        Result { () throws(LineDefect) in
            let line = try LineParser(text)
            if line.has("format") { return .header(try line.header()) }
            if line.has("end") {
                try line.allow(["end", "entries"])
                return .end(try line.integer("entries"))
            }
            if line.has("policy"), !line.has("key") { return .database(try line.databaseLine()) }
            return .entry(try line.entry(), database: try line.database())
        }
    }
}

/// Parses the members of one line.
private struct LineParser {
    private let text: UnsafeRawBufferPointer
    private var members: [String: Range<Int>] = [:]

    init(_ text: UnsafeRawBufferPointer) throws(LineDefect) {
        self.text = text
        let list: [JSONOutline.Member]
        do throws(JSONOutline.Defect) { list = try JSONOutline.members(text) } catch {
            throw LineDefect("it is not a JSON object in UTF-8: the error is at byte \(error.offset + 1) of the line")
        }
        for member in list where members.updateValue(member.place, forKey: member.name) != nil {
            throw LineDefect("'\(printableKey(member.name.utf8))' is duplicate")
        }
    }

    func has(_ name: String) -> Bool { members[name] != nil }

    // MARK: The lines

    func header() throws(LineDefect) -> ExportHeader {
        guard string("format") == ExportHeader.format else {
            throw LineDefect(
                "its format is \(shown("format")), not \"\(ExportHeader.format)\", as written by larderctl export")
        }
        let version = try integer("version")
        guard version == ExportHeader.version else {
            throw LineDefect(
                "its version is \(version), but this larderctl reads version \(ExportHeader.version): use the "
                    + "larderctl that wrote it, or a newer one")
        }
        let places = try elements("databases")
        let databases = places.compactMap { JSONOutline.string(text, $0) }
        guard databases.count == places.count else { throw LineDefect("its \"databases\" must be names") }
        var header = ExportHeader(
            created: try integer("created"), larder: string("larder"), databases: databases,
            isOfAll: startsWith("t", "all"), prefix: try bytes("prefix"))
        for place in try has("indexes") ? elements("indexes") : [] {
            let index = try LineParser(UnsafeRawBufferPointer(rebasing: text[place]))
            let paths = try index.elements("paths").compactMap { JSONOutline.string(index.text, $0) }
            guard let name = index.string("name") else { throw LineDefect("each of its \"indexes\" must have a name") }
            let (database, prefix) = (try index.database(), try index.bytes("prefix"))
            header.indexes[database, default: []].append(ListedIndex(name: name, prefix: prefix, paths: paths))
        }
        return header
    }

    func databaseLine() throws(LineDefect) -> DatabaseLine {
        try allow(["database", "policy", "grace", "jitter"])
        guard let policy = string("policy").flatMap({ UpdatePolicy($0) }) else {
            throw wrong("policy", "one of \(UpdatePolicy.syntax)")
        }
        return DatabaseLine(
            database: try database(), policy: policy,
            grace: try integer("grace", 0...UpdatePolicy.longestMilliseconds, ifMissing: 0),
            jitter: try integer("jitter", 0...100, ifMissing: 0))
    }

    func entry() throws(LineDefect) -> StoredEntry {
        try allow(["database", "key", "stored-at", "rule", "deadline", "grace", "codec", "tags", "json", "value"])
        _ = try database()
        let key = try bytes("key")
        guard key.count <= StoredEntry.keyBytesMax else {
            throw LineDefect("its key has \(key.count) bytes, the limit is \(StoredEntry.keyBytesMax)")
        }
        let deadline = startsWith("n", "deadline") ? -1 : try integer("deadline", 0...Int64.max, ifMissing: -1)
        let rule = has("rule") ? string("rule") ?? "" : "governed"
        guard ["governed", "never"].contains(rule) || rule == "own" && deadline >= 0 else {
            throw LineDefect(
                "its rule is \(shown("rule")) with the deadline \(shown("deadline")): it must be \"governed\" (by the "
                    + "database's policy), \"never\", or \"own\" with a deadline in milliseconds since 1970")
        }
        return StoredEntry(
            key: key, value: try value(), storedAt: try integer("stored-at", 0...Int64.max), rule: rule,
            deadline: deadline, grace: try integer("grace", 0...UpdatePolicy.longestMilliseconds, ifMissing: -1),
            codec: try codec(), tags: try tags())
    }

    // MARK: Members

    private func value() throws(LineDefect) -> [UInt8] {
        guard has("json") != has("value") else {
            throw LineDefect(
                "it has \(has("json") ? "both" : "neither") \"json\" \(has("json") ? "and" : "nor") \"value\": "
                    + "an entry has one of them")
        }
        let value = if let json = members["json"] { Array(text[json]) } else { try bytes("value") }
        guard value.count <= Input.bytesMax else {
            throw LineDefect("its value has \(value.count) bytes, the limit is \(Input.bytesMax)")
        }
        return value
    }

    private func codec() throws(LineDefect) -> String {
        guard has("codec") else { return Codec.raw.description }
        guard let name = string("codec"), Codec(name: name) != nil || UInt8(name) != nil else {
            throw wrong("codec", "\"raw\", \"json\", \"plist\" or \"custom\"")
        }
        return name
    }

    private func tags() throws(LineDefect) -> [[UInt8]] {
        guard has("tags") else { return [] }
        var tags: [[UInt8]] = []
        for place in try elements("tags") { tags.append(try bytes(place, "tags")) }
        do throws(TagRules.Impossible) { return try TagRules.checked(tags) } catch { throw LineDefect(error.message) }
    }

    func database() throws(LineDefect) -> String {
        guard let name = string("database"), !name.isEmpty else {
            throw has("database") ? wrong("database", "a name") : missing("database")
        }
        return name
    }

    func allow(_ names: [String]) throws(LineDefect) {
        for name in members.keys.sorted() where !names.contains(name) {
            throw LineDefect("unknown member \"\(printableKey(name.utf8))\"" + Suggestion.text(for: name, among: names))
        }
    }

    /// Whether the value of a member starts with a letter, such as `n` for null.
    private func startsWith(_ letter: Unicode.Scalar, _ name: String) -> Bool {
        members[name].map { text[$0.lowerBound] == UInt8(ascii: letter) } ?? false
    }

    private func string(_ name: String) -> String? { members[name].flatMap { JSONOutline.string(text, $0) } }

    private func elements(_ name: String) throws(LineDefect) -> [Range<Int>] {
        guard let place = members[name], let elements = JSONOutline.elements(text, place) else {
            throw LineDefect("its \"\(name)\" are \(shown(name)), and must be an array")
        }
        return elements
    }

    /// - Parameter ifMissing: the number if there is no such member; nil if there must be one.
    func integer(
        _ name: String, _ range: ClosedRange<Int64> = Int64.min...Int64.max, ifMissing: Int64? = nil
    ) throws(LineDefect) -> Int64 {
        guard let place = members[name] else { if let ifMissing { return ifMissing } else { throw missing(name) } }
        guard let number = Int64(String(decoding: text[place].prefix(24), as: UTF8.self)), range.contains(number) else {
            let rule =
                range.upperBound < .max
                ? " from \(range.lowerBound) to \(range.upperBound)" : range.lowerBound == 0 ? ", 0 or more" : ""
            throw wrong("\"\(name)\"", "a whole number\(rule)", of: name)
        }
        return number
    }

    /// Returns the bytes of a member: a string, or an object with base 64.
    private func bytes(_ name: String) throws(LineDefect) -> [UInt8] {
        guard let place = members[name] else { throw missing(name) }
        return try bytes(place, name)
    }

    private func bytes(_ place: Range<Int>, _ name: String) throws(LineDefect) -> [UInt8] {
        if let text = JSONOutline.string(text, place) { return Array(text.utf8) }
        let inner = UnsafeRawBufferPointer(rebasing: text[place])
        // Base 64 needs no escapes in JSON, so decode the bytes between the quotes directly.
        guard let members = try? JSONOutline.members(inner), members.count == 1, members[0].name == "base64",
            case let place = members[0].place, place.count >= 2, inner[place.lowerBound] == UInt8(ascii: "\""),
            let bytes = Base64.decode(UnsafeRawBufferPointer(rebasing: inner[place.dropFirst().dropLast()]))
        else {
            throw LineDefect("its \"\(name)\" must be a string, or {\"base64\":\"…\"} for bytes that are not UTF-8")
        }
        return bytes
    }

    // MARK: Errors

    private func missing(_ name: String) -> LineDefect { LineDefect("its \"\(name)\" is missing") }

    private func wrong(_ shownName: String, _ rule: String, of name: String? = nil) -> LineDefect {
        LineDefect("its \(shownName) is \(shown(name ?? shownName)), and must be \(rule)")
    }

    /// Returns up to 64 bytes of a member, escaped. Not for values of entries, which messages must not contain.
    private func shown(_ name: String) -> String {
        guard let place = members[name] else { return "missing" }
        return printableKey(text[place].prefix(64))
    }
}
