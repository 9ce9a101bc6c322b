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
            try results(words, otherKind: .wrongKind(expected: "string")) { document, value in
                document.kind(value) == .string ? .integer(document.string(value).utf8.count) : nil
            }
        },
        .jsonArrlen: { words throws(CommandError) in
            try results(words, otherKind: .noPath(orElse: "not an array")) { document, value in
                document.kind(value) == .array ? .integer(document.count(value)) : nil
            }
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
        _ reply: @escaping (Record?, inout ReplyBuffer) throws(CommandError) -> Void
    ) throws(CommandError) -> EntryPlan {
        read([try words.key(1)], path) { (records, replies) throws(CommandError) in try reply(records[0], &replies) }
    }

    private static func read(
        _ keys: [Key], _ path: JSONPath,
        _ reply: @escaping ([Record?], inout ReplyBuffer) throws(CommandError) -> Void
    ) -> EntryPlan {
        let plan = EntryPlan.records(keys, cost: { $0.reduce(0, +) * Limits.parsingCost }, reply: reply)
        return plan.offLoop(if: path.mayRevisit)
    }

    /// Replies with a result for each value of a path; for a legacy path, with the result for the first value.
    /// - Parameters:
    ///   - noEntry: the error if there is no entry; nil for null. `legacyNoEntry`: the same for legacy paths.
    ///   - noValue: the error if a legacy path finds no value; nil for null.
    ///   - otherKind: the error if the first value of a legacy path has no result.
    ///   - isNested: whether RESP3 gets the reply in an array.
    ///   - result: returns nil for values of another kind, which give null.
    private static func results(
        _ words: CallWords, noEntry: CommandError? = .noDocument, legacyNoEntry: CommandError? = nil,
        noValue: CommandError? = .noPath, otherKind: CommandError = .noPath, isNested: Bool = false,
        _ result: @escaping (borrowing JSONDocument, Int) -> RESPValue?
    ) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        return try read(words, path) { (record, replies) throws(CommandError) in
            let reply = try record?.withDocument { (document) throws(CommandError) -> RESPValue in
                let values = try document.values(path)
                guard path.isLegacy else {
                    return .array(values.map { result(document, $0) ?? .null })
                }
                guard let first = values.first else {
                    if let noValue { throw noValue }
                    return .null
                }
                guard let found = result(document, first) else { throw otherKind }
                return found
            }
            if reply == nil, let failure = path.isLegacy ? legacyNoEntry : noEntry { throw failure }
            if isNested, replies.version == .three { replies.array(count: 1) }
            replies.write(reply ?? .null)
        }
    }

    @Sendable private static func jsonObjlen(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try results(
            words, noEntry: .noPath(orElse: "not an object"), noValue: nil, otherKind: .wrongKind(expected: "object")
        ) { document, value in
            document.kind(value) == .object ? .integer(document.count(value)) : nil
        }
    }

    @Sendable private static func jsonObjkeys(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try results(words, noValue: nil, otherKind: .noPath(orElse: "not an object")) { document, value in
            guard document.kind(value) == .object else { return nil }
            return .array(document.members(value).map { .bulk(document.string($0)) })
        }
    }

    @Sendable private static func jsonType(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try results(words, noEntry: nil, noValue: nil, isNested: true) { document, value in
            switch document.kind(value) {
            case .null: .bulk("null")
            case .no, .yes: .bulk("boolean")
            case .number: .bulk(document.isInteger(value) ? "integer" : "number")
            case .string: .bulk("string")
            case .object: .bulk("object")
            case .array: .bulk("array")
            }
        }
    }

    @Sendable private static func jsonArrindex(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count <= 6 else { throw .arity("json.arrindex") }
        let wanted = try words.json(3)
        let start = words.count > 4 ? Int(clamping: try words.integer(4)) : 0
        let end = words.count > 5 ? Int(clamping: try words.integer(5)) : 0
        return try results(
            words, noEntry: .noPath, legacyNoEntry: .noPath, otherKind: .wrongKind(expected: "array")
        ) { document, value in
            guard document.kind(value) == .array else { return nil }
            return .integer(document.firstIndex(of: wanted, in: value, start, end) ?? -1)
        }
    }

    @Sendable private static func jsonResp(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try results(words, noEntry: nil) { $0.resp($1) }
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
        let plan = try read(words, .root) { [format, paths, names] (record, replies) throws(CommandError) in
            guard let record else { return replies.null() }
            let text = try record.withDocument { (document) throws(CommandError) in
                try selected(paths, names, document, limits)
            }
            guard let formatted = text.withUnsafeBytes({ format.write($0, most: limits.replyBytesMax) }) else {
                throw .tooLongReply(limits)
            }
            replies.bulk(formatted)
        }
        // The reply may be much longer than the value.
        let mayGrow = paths.count > 1 || paths[0].mayRepeat || !format.indent.isEmpty || !format.newline.isEmpty
        return plan.offLoop(if: mayGrow)
    }

    /// The maximum length in bytes of the texts for INDENT, NEWLINE and SPACE.
    private static let formatBytesMax = 64

    /// Returns the values of one path, or an object with the values of several paths.
    private static func selected(
        _ paths: [JSONPath], _ names: [String], _ document: borrowing JSONDocument, _ limits: Limits
    ) throws(CommandError) -> [UInt8] {
        let isLegacy = paths.allSatisfy(\.isLegacy)
        guard paths.count > 1 else {
            guard let text = try text(of: paths[0], isLegacy: isLegacy, in: document, limits.replyBytesMax, limits)
            else { throw .noPath }
            return text
        }
        var members: [[UInt8]] = []
        var room = limits.replyBytesMax
        var shown: Set<String> = []
        for (path, name) in zip(paths, names) where shown.insert(name).inserted {
            guard let text = try text(of: path, isLegacy: isLegacy, in: document, room, limits) else { throw .noPath }
            room -= text.count
            members.append(JSONText.member(name, text))
        }
        return [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
    }

    /// Returns the values of a path, or for a legacy path its first value; nil if a legacy path finds nothing.
    /// - Parameter room: the maximum length of the result in bytes.
    private static func text(
        of path: JSONPath, isLegacy: Bool, in document: borrowing JSONDocument, _ room: Int, _ limits: Limits
    ) throws(CommandError) -> [UInt8]? {
        let values = try document.values(path)
        let shown = isLegacy ? values.prefix(1) : values[...]
        guard shown.reduce(0, { $0 + document.place($1).count + 1 }) <= room else { throw .tooLongReply(limits) }
        return isLegacy ? shown.first.map { [UInt8](document.bytes($0)) } : document.array(values)
    }

    @Sendable private static func jsonMget(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(words.count - 1)
        let keys = try (1..<words.count - 1).map { (index) throws(CommandError) in try words.key(index) }
        let limits = words.server.limits
        return read(keys, path) { (records, replies) throws(CommandError) in
            // As in RedisJSON, entries that are not JSON give null.
            var texts: [[UInt8]?] = []
            var room = limits.replyBytesMax
            for record in records {
                let text = try record.flatMap { record throws(CommandError) in
                    try self.text(of: path, in: record, room, limits)
                }
                room -= text?.count ?? 0
                texts.append(text)
            }
            replies.array(count: texts.count)
            for text in texts { replies.word(text) }
        }
    }

    /// Returns the values of a path without white space; nil if the entry is not JSON, or a legacy path finds nothing.
    private static func text(
        of path: JSONPath, in record: Record, _ room: Int, _ limits: Limits
    ) throws(CommandError) -> [UInt8]? {
        let text: [UInt8]?
        do throws(CommandError) {
            text = try record.withDocument { (document) throws(CommandError) in
                try self.text(of: path, isLegacy: path.isLegacy, in: document, room, limits)
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
}

extension Record {
    /// Calls `body` with the document that the entry contains. Throws ``CommandError/notJSON`` if it contains none.
    fileprivate func withDocument<Result>(
        _ body: (borrowing JSONDocument) throws(CommandError) -> Result
    ) throws(CommandError) -> Result {
        try withoutActuallyEscaping(body) { body in
            withPayload { payload in
                Swift.Result { () throws(CommandError) in try JSONDocument.with(payload, body) }
            }
        }.get()
    }
}

extension JSONDocument {
    fileprivate func array(_ values: [Int]) -> [UInt8] { JSONText.array(values.map { bytes($0) }) }

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
    fileprivate func resp(_ value: Int) -> RESPValue {
        switch kind(value) {
        case .null: return .null
        case .no: return .simpleString("false")
        case .yes: return .simpleString("true")
        case .number: return RESPValue(digits: [UInt8](bytes(value)))
        case .string: return .bulk(string(value))
        case .array: return .array([.simpleString("[")] + children(value).map { resp($0) })
        case .object:
            return .array([.simpleString("{")] + members(value).flatMap { [.bulk(string($0)), resp($0 + 1)] })
        }
    }
}
