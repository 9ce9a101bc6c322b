// Parses the lines of an export.

import LarderClient
import LarderJSONCoding
import LarderVocabulary

/// The error in a line of an export. The message describes the correct form.
struct LineDefect: Error {
    let message: String

    init(_ message: String) { self.message = message }
}

/// A parsed line of an export.
enum ExportLine {
    case header(ExportHeader)
    case database(DatabaseLine)
    case entry(CarriedEntry)
    /// The last line. The value is the number of entries in the export.
    case end(Int64)

    static func parsed(_ text: UnsafeRawBufferPointer) -> Result<ExportLine, LineDefect> {
        Result { () throws(LineDefect) in try parse(text) }
    }

    private static func parse(_ text: UnsafeRawBufferPointer) throws(LineDefect) -> ExportLine {
        let members: [JSONOutline.Member]
        do throws(JSONOutline.Defect) {
            members = try JSONOutline.members(text)
        } catch {
            throw LineDefect(
                "it is not a JSON object in UTF-8: the error is at byte \(error.offset + 1) of the line")
        }
        var parser = LineParser(text)
        for member in members where parser.members.updateValue(member.place, forKey: member.name) != nil {
            throw LineDefect("'\(printableKey(member.name.utf8))' is duplicate")
        }
        if parser.has("format") { return .header(try parser.header()) }
        if parser.has("end") { return .end(try parser.end()) }
        if parser.has("policy"), !parser.has("key") { return .database(try parser.databaseLine()) }
        return .entry(try parser.entry())
    }
}

/// Parses the members of one line.
private struct LineParser {
    private let text: UnsafeRawBufferPointer
    var members: [String: Range<Int>] = [:]

    init(_ text: UnsafeRawBufferPointer) { self.text = text }

    func has(_ name: String) -> Bool { members[name] != nil }

    // MARK: The lines

    func header() throws(LineDefect) -> ExportHeader {
        guard let format = string("format"), format == ExportHeader.format else {
            throw LineDefect(
                "its format is \(shown("format")), not \"\(ExportHeader.format)\", as written by larderctl export")
        }
        let version = try integer("version")
        guard version == ExportHeader.version else {
            throw LineDefect(
                "its version is \(version), but this larderctl reads version \(ExportHeader.version): use the "
                    + "larderctl that wrote it, or a newer one")
        }
        var databases: [String] = []
        for place in try elements("databases") {
            guard let name = JSONOutline.string(text, place) else {
                throw LineDefect("its \"databases\" must be names")
            }
            databases.append(name)
        }
        return ExportHeader(
            created: try integer("created"), larder: string("larder"), databases: databases,
            isOfAll: members["all"].map { text[$0.lowerBound] == UInt8(ascii: "t") } ?? false,
            prefix: try bytes("prefix"))
    }

    func end() throws(LineDefect) -> Int64 {
        try allow(["end", "entries"])
        return try integer("entries")
    }

    func databaseLine() throws(LineDefect) -> DatabaseLine {
        try allow(["database", "policy", "grace", "jitter"])
        guard let policy = string("policy").flatMap({ UpdatePolicy($0) }) else {
            throw LineDefect("its policy is \(shown("policy")), and must be one of \(UpdatePolicy.syntax)")
        }
        return DatabaseLine(
            database: try database(), policy: policy,
            grace: has("grace") ? try integer("grace", 0...UpdatePolicy.longestMilliseconds) : 0,
            jitter: has("jitter") ? try integer("jitter", 0...100) : 0)
    }

    func entry() throws(LineDefect) -> CarriedEntry {
        try allow([
            "database", "key", "stored-at", "rule", "deadline", "grace", "codec", "tags", "json", "value",
        ])
        let database = try database()
        let key = try bytes("key")
        guard key.count <= CarriedEntry.keyBytesMax else {
            throw LineDefect("its key has \(key.count) bytes, the limit is \(CarriedEntry.keyBytesMax)")
        }
        let deadline = has("deadline") && !isNull("deadline") ? try integer("deadline", 0...Int64.max) : nil
        let name = has("rule") ? string("rule") ?? "" : "governed"
        guard let rule = DeadlineRule(name, deadline: deadline ?? -1) else {
            throw LineDefect(
                "its rule is \(shown("rule")) with the deadline \(shown("deadline")): it must be \"governed\" (by the "
                    + "database's policy), \"never\", or \"own\" with a deadline in milliseconds since 1970")
        }
        return CarriedEntry(
            database: database, key: key, value: try value(), storedAt: try integer("stored-at", 0...Int64.max),
            rule: rule, deadline: deadline,
            grace: has("grace") ? try integer("grace", 0...UpdatePolicy.longestMilliseconds) : nil,
            codec: try codec(), tags: try tags())
    }

    // MARK: Members

    private func value() throws(LineDefect) -> [UInt8] {
        switch (members["json"], has("value")) {
        case (_?, true): throw LineDefect("it has both \"json\" and \"value\": an entry has one of them")
        case (nil, false): throw LineDefect("it has neither \"json\" nor \"value\": an entry has one of them")
        case (let place?, false):
            guard place.count <= Input.bytesMax else { throw tooLong(place.count) }
            return Array(text[place])
        case (nil, true):
            let value = try bytes("value")
            guard value.count <= Input.bytesMax else { throw tooLong(value.count) }
            return value
        }
    }

    private func tooLong(_ count: Int) -> LineDefect {
        LineDefect("its value has \(count) bytes, the limit is \(Input.bytesMax)")
    }

    private func codec() throws(LineDefect) -> String {
        guard has("codec") else { return Codec.raw.description }
        guard let name = string("codec"), Codec(name: name) != nil || UInt8(name) != nil else {
            throw LineDefect("its codec is \(shown("codec")), and must be \"raw\", \"json\", \"plist\" or \"custom\"")
        }
        return name
    }

    private func tags() throws(LineDefect) -> [[UInt8]] {
        guard has("tags") else { return [] }
        var tags: [[UInt8]] = []
        for place in try elements("tags") { tags.append(try bytes(place, "tags")) }
        do throws(TagRules.Impossible) {
            return try TagRules.checked(tags)
        } catch {
            throw LineDefect(error.message)
        }
    }

    private func database() throws(LineDefect) -> String {
        guard let name = string("database"), !name.isEmpty else {
            throw LineDefect(
                has("database")
                    ? "its database is \(shown("database")), and must be a name" : "its \"database\" is missing")
        }
        return name
    }

    private func allow(_ names: [String]) throws(LineDefect) {
        for name in members.keys.sorted() where !names.contains(name) {
            throw LineDefect(
                "unknown member \"\(printableKey(name.utf8))\"" + Suggestion.text(for: name, among: names))
        }
    }

    private func isNull(_ name: String) -> Bool { members[name].map { text[$0.lowerBound] == 0x6E } ?? false }

    private func string(_ name: String) -> String? { members[name].flatMap { JSONOutline.string(text, $0) } }

    private func elements(_ name: String) throws(LineDefect) -> [Range<Int>] {
        guard let place = members[name], let elements = JSONOutline.elements(text, place) else {
            throw LineDefect("its \"\(name)\" are \(shown(name)), and must be an array")
        }
        return elements
    }

    private func integer(_ name: String, _ range: ClosedRange<Int64> = Int64.min...Int64.max) throws(LineDefect)
        -> Int64
    {
        guard let place = members[name] else { throw LineDefect("its \"\(name)\" is missing") }
        guard let number = Int64(String(decoding: text[place].prefix(24), as: UTF8.self)), range.contains(number) else {
            let rule =
                range.upperBound < .max
                ? "a whole number from \(range.lowerBound) to \(range.upperBound)"
                : "a whole number" + (range.lowerBound == 0 ? ", 0 or more" : "")
            throw LineDefect("its \"\(name)\" is \(shown(name)), and must be \(rule)")
        }
        return number
    }

    /// Returns the bytes of a member: a string, or an object with base 64.
    private func bytes(_ name: String) throws(LineDefect) -> [UInt8] {
        guard let place = members[name] else { throw LineDefect("its \"\(name)\" is missing") }
        return try bytes(place, name)
    }

    private func bytes(_ place: Range<Int>, _ name: String) throws(LineDefect) -> [UInt8] {
        if let text = JSONOutline.string(text, place) { return Array(text.utf8) }
        let inner = UnsafeRawBufferPointer(rebasing: text[place])
        if let members = try? JSONOutline.members(inner), members.count == 1, members[0].name == "base64" {
            // Base 64 needs no escapes in JSON, so decode the bytes between the quotes directly.
            let place = members[0].place
            if place.count >= 2, inner[place.lowerBound] == UInt8(ascii: "\""),
                let bytes = Base64.decode(
                    UnsafeRawBufferPointer(rebasing: inner[place.lowerBound + 1..<place.upperBound - 1]))
            {
                return bytes
            }
        }
        throw LineDefect("its \"\(name)\" must be a string, or {\"base64\":\"…\"} for bytes that are not UTF-8")
    }

    /// Returns up to 64 bytes of a member, escaped. Not for values of entries, which messages must not contain.
    private func shown(_ name: String) -> String {
        guard let place = members[name] else { return "missing" }
        return printableKey(text[place].prefix(64))
    }
}
