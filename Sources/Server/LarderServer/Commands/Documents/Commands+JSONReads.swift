import LarderCommandCatalog
import LarderEngine
import LarderJSONCoding
import LarderRESP

/// The commands of RedisJSON that read entries which contain JSON. They reply as RedisJSON 2.8 does, but return numbers
/// with the digits that were stored.
extension CommandTable {
    static let jsonReadPlanners: Planners = [
        .jsonGet: jsonGet,
        .jsonMget: jsonMget,
        .jsonType: jsonType,
        .jsonStrlen: { words throws(CommandError) in
            try length(words, of: [.string], or: .wrongKind(expected: "string")) { $0.string($1).utf8.count }
        },
        .jsonArrlen: { words throws(CommandError) in
            try length(words, of: [.array], or: .noPath(orElse: "not an array"), absent: .noPath) { $0.count($1) }
        },
        .jsonObjlen: jsonObjlen,
        .jsonObjkeys: jsonObjkeys,
        .jsonArrindex: jsonArrindex,
        .jsonResp: jsonResp,
    ]

    /// Reads a document, and writes a reply from it.
    /// - Parameters:
    ///   - reply: gets nil if there is no entry. Throws before it writes anything.
    private static func read(
        _ words: CallWords, _ path: JSONPath,
        _ reply: @escaping (CommandDocument?, inout ReplyBuffer) throws(CommandError) -> Void
    ) throws(CommandError) -> EntryPlan {
        read([try words.key(1)], path) { (records, replies) throws(CommandError) in
            guard let record = records[0] else { return try reply(nil, &replies) }
            try reply(CommandDocument(record), &replies)
        }
    }

    private static func read(
        _ keys: [Key], _ path: JSONPath,
        _ reply: @escaping ([Record?], inout ReplyBuffer) throws(CommandError) -> Void
    ) -> EntryPlan {
        let plan = EntryPlan.records(keys, cost: { $0.reduce(0, +) * Limits.parsingCost }, reply: reply)
        return path.mayRevisit ? .long(bytes: .max) { plan } : plan
    }

    /// The entry of a command, parsed when it is needed.
    private struct CommandDocument {
        private let record: Record

        init(_ record: Record) { self.record = record }

        func with<Result>(
            _ body: (borrowing JSONDocument) throws(CommandError) -> Result
        ) throws(CommandError) -> Result {
            try withoutActuallyEscaping(body) { body in
                record.withPayload { payload in
                    Swift.Result { () throws(CommandError) in try JSONDocument.with(payload, body) }
                }
            }.get()
        }
    }

    /// Replies with a result for each value of a path; for a legacy path, with the result for the first value.
    /// - Parameters:
    ///   - kinds: the kinds of values that have a result; others give null.
    ///   - failure: the error if the first value of a legacy path is of another kind.
    ///   - absent: the error if a legacy path finds no value; nil for null.
    ///   - noEntry: the error for other paths if there is no entry.
    private static func results(
        _ words: CallWords, of kinds: Set<JSONKind>, or failure: CommandError, absent: CommandError? = .noPath,
        noEntry: CommandError = .noDocument, _ result: @escaping (borrowing JSONDocument, Int) -> JSONResult
    ) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        return try read(words, path) { (document, replies) throws(CommandError) in
            guard let document else {
                guard path.isLegacy else { throw noEntry }
                return replies.null()
            }
            let results = try document.with { (document) throws(CommandError) -> JSONResult in
                let values = try document.values(path)
                if path.isLegacy {
                    guard let first = values.first else {
                        if let absent { throw absent }
                        return .null
                    }
                    guard kinds.contains(document.kind(first)) else { throw failure }
                    return result(document, first)
                }
                var results: [JSONResult] = []
                for value in values {
                    results.append(kinds.contains(document.kind(value)) ? result(document, value) : .null)
                }
                return .list(results)
            }
            results.write(to: &replies)
        }
    }

    private static func length(
        _ words: CallWords, of kinds: Set<JSONKind>, or failure: CommandError, absent: CommandError? = .noPath,
        noEntry: CommandError = .noDocument, _ count: @escaping (borrowing JSONDocument, Int) -> Int
    ) throws(CommandError) -> EntryPlan {
        try results(words, of: kinds, or: failure, absent: absent, noEntry: noEntry) { .integer(count($0, $1)) }
    }

    @Sendable private static func jsonObjlen(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try length(
            words, of: [.object], or: .wrongKind(expected: "object"), absent: nil,
            noEntry: .noPath(orElse: "not an object")
        ) { $0.count($1) }
    }

    @Sendable private static func jsonObjkeys(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try results(words, of: [.object], or: .noPath(orElse: "not an object"), absent: nil) { document, object in
            .list(document.members(object).map { .text(Array(document.string($0).utf8)) })
        }
    }

    // MARK: Values

    @Sendable private static func jsonGet(_ words: CallWords) throws(CommandError) -> EntryPlan {
        var format = JSONFormat()
        var paths: [JSONPath] = []
        var names: [String] = []
        var index = 2
        while index < words.count {
            let option = index
            func isOption(_ word: StaticString) -> Bool { words.isWord(option, word) }
            if isOption("NOESCAPE") {
                index += 1
                continue
            }
            if isOption("INDENT") || isOption("NEWLINE") || isOption("SPACE") || isOption("FORMAT") {
                guard index + 1 < words.count else { throw .arity("json.get") }
                let value = words.array(index + 1)
                guard value.count <= formatBytesMax else {
                    throw CommandError("ERR INDENT, NEWLINE and SPACE have at most \(formatBytesMax) bytes")
                }
                if isOption("INDENT") { format.indent = value }
                if isOption("NEWLINE") { format.newline = value }
                if isOption("SPACE") { format.space = value }
                if isOption("FORMAT"), !words.isWord(index + 1, "STRING") {
                    throw CommandError("ERR wrong reply format: FORMAT must be STRING")
                }
                index += 2
                continue
            }
            paths.append(try words.path(index))
            names.append(words.text(index))
            index += 1
        }
        if paths.isEmpty { paths = [.root] }
        let limits = words.server.limits
        let plan = try read(words, .root) { [format, paths, names] (document, replies) throws(CommandError) in
            guard let document else { return replies.null() }
            let text = try document.with { (document) throws(CommandError) in
                try selected(paths, names, document, limits)
            }
            guard let formatted = text.withUnsafeBytes({ format.write($0, most: limits.replyBytesMax) }) else {
                throw .tooLongReply(limits)
            }
            replies.bulk(formatted)
        }
        // The reply may be much longer than the value.
        let mayGrow = paths.count > 1 || paths[0].mayRepeat || !format.indent.isEmpty || !format.newline.isEmpty
        return mayGrow ? .long(bytes: .max) { plan } : plan
    }

    /// The maximum length in bytes of the texts for INDENT, NEWLINE and SPACE.
    private static let formatBytesMax = 64

    /// Returns the values of one path, or an object with the values of several paths.
    private static func selected(
        _ paths: [JSONPath], _ names: [String], _ document: borrowing JSONDocument, _ limits: Limits
    ) throws(CommandError) -> [UInt8] {
        let isLegacy = paths.allSatisfy(\.isLegacy)
        var members: [[UInt8]] = []
        var count = 0
        var shown: Set<String> = []
        for (path, name) in zip(paths, paths.count > 1 ? names : [""]) where shown.insert(name).inserted {
            let values = try document.values(path)
            var text: [UInt8]
            if isLegacy {
                guard let first = values.first else { throw .noPath }
                text = [UInt8](document.bytes(first))
            } else {
                count += values.reduce(0) { $0 + document.place($1).count + 1 }
                guard count <= limits.replyBytesMax else { throw .tooLongReply(limits) }
                text = document.array(values)
            }
            if isLegacy { count += text.count }
            guard count <= limits.replyBytesMax else { throw .tooLongReply(limits) }
            if paths.count > 1 { text = JSONText.quoted(name).bytes + [UInt8(ascii: ":")] + text }
            members.append(text)
        }
        guard paths.count > 1 else { return members[0] }
        return [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
    }

    @Sendable private static func jsonMget(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(words.count - 1)
        var keys: [Key] = []
        for index in 1..<words.count - 1 { keys.append(try words.key(index)) }
        let limits = words.server.limits
        return read(keys, path) { (records, replies) throws(CommandError) in
            // As in RedisJSON, entries that are not JSON give null.
            var texts: [[UInt8]?] = []
            var room = limits.replyBytesMax
            for record in records {
                let text = try record.flatMap { record throws(CommandError) in
                    try self.text(of: path, in: CommandDocument(record), room, limits)
                }
                room -= text?.count ?? 0
                texts.append(text)
            }
            replies.array(count: texts.count)
            for text in texts { replies.word(text) }
        }
    }

    /// Returns the values of a path, without white space; nil if the entry is not JSON, or a legacy path finds nothing.
    /// - Parameter room: the maximum length of the result in bytes.
    private static func text(
        of path: JSONPath, in document: CommandDocument, _ room: Int, _ limits: Limits
    ) throws(CommandError) -> [UInt8]? {
        let text: [UInt8]?
        do throws(CommandError) {
            text = try document.with { (document) throws(CommandError) in
                let values = try document.values(path)
                guard !path.isLegacy else { return values.first.map { [UInt8](document.bytes($0)) } }
                let count = values.reduce(2) { $0 + document.place($1).count + 1 }
                guard count <= room else { throw .tooLongReply(limits) }
                return document.array(values)
            }
        } catch {
            if error == .notJSON { return nil }
            throw error
        }
        guard let text else { return nil }
        guard let compact = text.withUnsafeBytes({ JSONFormat.compact.write($0, most: room) }) else {
            throw .tooLongReply(limits)
        }
        return compact
    }

    @Sendable private static func jsonType(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        return try read(words, path) { (document, replies) throws(CommandError) in
            let types = try document?.with { (document) throws(CommandError) -> JSONResult in
                let values = try document.values(path)
                if path.isLegacy { return values.first.map { .text(typeName(document, $0)) } ?? .null }
                var types: [JSONResult] = []
                for value in values { types.append(.text(typeName(document, value))) }
                return .list(types)
            }
            // As in RedisJSON, the reply is in an array for RESP3.
            if replies.version == .three { replies.array(count: 1) }
            (types ?? .null).write(to: &replies)
        }
    }

    private static func typeName(_ document: borrowing JSONDocument, _ value: Int) -> [UInt8] {
        let name: StaticString
        switch document.kind(value) {
        case .null: name = "null"
        case .no, .yes: name = "boolean"
        case .number: name = document.isInteger(value) ? "integer" : "number"
        case .string: name = "string"
        case .object: name = "object"
        case .array: name = "array"
        }
        return Array("\(name)".utf8)
    }

    // MARK: JSON.ARRINDEX

    @Sendable private static func jsonArrindex(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count <= 6 else { throw .arity("json.arrindex") }
        let path = try words.path(2)
        let wanted = try words.json(3)
        let start = words.count > 4 ? try words.integer(4) : 0
        let end = words.count > 5 ? try words.integer(5) : 0
        return try read(words, path) { (document, replies) throws(CommandError) in
            guard let document else { throw .noPath }
            let results = try document.with { (document) throws(CommandError) -> JSONResult in
                let values = try document.values(path)
                var results: [JSONResult] = []
                for value in values {
                    guard document.kind(value) == .array else {
                        if path.isLegacy { throw .wrongKind(expected: "array") }
                        results.append(.null)
                        continue
                    }
                    let place = document.firstIndex(of: wanted, in: value, Int(clamping: start), Int(clamping: end))
                    results.append(.integer(place ?? -1))
                    if path.isLegacy { break }
                }
                guard path.isLegacy else { return .list(results) }
                guard let first = results.first else { throw .noPath }
                return first
            }
            results.write(to: &replies)
        }
    }

    // MARK: JSON.RESP

    @Sendable private static func jsonResp(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        return try read(words, path) { (document, replies) throws(CommandError) in
            let result = try document?.with { (document) throws(CommandError) -> JSONResult in
                let values = try document.values(path)
                if path.isLegacy {
                    guard let first = values.first else { throw .noPath }
                    return document.resp(first)
                }
                var results: [JSONResult] = []
                for value in values { results.append(document.resp(value)) }
                return .list(results)
            }
            (result ?? .null).write(to: &replies)
        }
    }
}

extension JSONDocument {
    /// An array that contains values, as a text.
    fileprivate func array(_ values: [Int]) -> [UInt8] {
        var text: [UInt8] = [UInt8(ascii: "[")]
        for (index, value) in values.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            text += bytes(value)
        }
        return text + [UInt8(ascii: "]")]
    }

    /// The index of the first element that equals `wanted`, from `start` up to but not including `end`. Negative
    /// indices count from the end. As in RedisJSON, an end of 0 is that of the array.
    fileprivate func firstIndex(of wanted: JSONText, in array: Int, _ start: Int, _ end: Int) -> Int? {
        let elements = children(array)
        guard !elements.isEmpty else { return nil }
        let first = start < 0 ? max(0, elements.count + start) : min(start, elements.count - 1)
        let last = end == 0 ? elements.count : end < 0 ? max(0, elements.count + end) : min(end, elements.count)
        guard first < last else { return nil }
        return wanted.bytes.withUnsafeBytes { text in
            guard let wanted = JSONDocument(text) else { return nil }
            for index in first..<last where isEqual(elements[index], to: wanted, Self.root) { return index }
            return nil
        }
    }

    /// A value in types of RESP, as JSON.RESP returns it.
    fileprivate func resp(_ value: Int) -> JSONResult {
        switch kind(value) {
        case .null: return .null
        case .no: return .status("false")
        case .yes: return .status("true")
        case .number: return .number([UInt8](bytes(value)))
        case .string: return .text(Array(string(value).utf8))
        case .array:
            var items: [JSONResult] = [.status("[")]
            for child in children(value) { items.append(resp(child)) }
            return .list(items)
        case .object:
            var items: [JSONResult] = [.status("{")]
            for name in members(value) {
                items.append(.text(Array(string(name).utf8)))
                items.append(resp(name + 1))
            }
            return .list(items)
        }
    }
}
