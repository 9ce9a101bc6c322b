import LarderCommandCatalog
import LarderEngine
import LarderJSONCoding
import LarderRESP

/// EDIT changes fields of an entry that contains JSON: all steps or none.
extension CommandTable {
    static let editPlanners: Planners = [.edit: edit]

    @Sendable private static func edit(_ words: CallWords) throws(CommandError) -> EntryPlan {
        var reader = EditReader(words)
        let edits = try reader.edits()
        let returned = reader.returned
        return try .change(words, builtBytes: 0) { (update, context) throws(CommandError) in
            let text = update.payload(0)
            try context.admit(parsing: text?.count ?? 0)
            let changed: [UInt8]?
            do throws(JSONEdit.Failure) { changed = try JSONEdit.apply(edits, to: text) } catch {
                throw CommandError(error)
            }
            guard let changed else {
                guard let returned else { return .ok }
                let value = text.flatMap { returned.value(in: $0) }
                return .written { $0.word(value) }
            }
            let value = returned.flatMap { path in changed.withUnsafeBytes { path.value(in: $0) } }
            try update.store(changed, context)
            return returned == nil ? .ok : .written { $0.word(value) }
        }
    }
}

extension CommandError {
    fileprivate init(_ failure: JSONEdit.Failure) {
        switch failure {
        case .noDocument: self = .noDocument
        case .notJSON: self = .notJSON
        case .step(let number, let reason): self.init("ERR step \(number): \(reason)")
        }
    }
}

extension Update {
    /// Stores a changed document. The entry keeps its deadline rule.
    func store(_ document: [UInt8], _ context: ChangeContext) throws(CommandError) {
        try context.admit(document.count, self)
        document.withUnsafeBytes { replace(0, payload: $0) }
    }
}

/// Parses the steps of EDIT.
private struct EditReader {
    private let words: CallWords
    private var index = 2
    /// The path after RETURN; nil without this option.
    private(set) var returned: EditPath?

    init(_ words: CallWords) { self.words = words }

    mutating func edits() throws(CommandError) -> [JSONEdit] {
        var edits: [JSONEdit] = []
        while index < words.count {
            if words.isWord(index, "RETURN") {
                guard index + 2 == words.count else { throw CommandError("ERR RETURN path must be the end of EDIT") }
                returned = try path(index + 1)
                break
            }
            edits.append(try edit(number: edits.count + 1))
        }
        guard !edits.isEmpty else {
            throw CommandError("ERR EDIT needs a step: SET, DEL, INCR, APPEND, ADDUNIQUE, REMOVE or PUSH")
        }
        return edits
    }

    private mutating func edit(number: Int) throws(CommandError) -> JSONEdit {
        let step = index
        let kind = kind(step)
        guard index + 1 < words.count else { throw missing("a path", number) }
        let path = try path(index + 1)
        index += 2
        switch kind {
        case .set: return JSONEdit(path, .set(try value(number)))
        case .delete: return JSONEdit(path, .delete)
        case .increment: return JSONEdit(path, .increment(try value(number, "a number") { $0.isNumber }))
        case .append: return JSONEdit(path, .append(try value(number, "a JSON string") { $0.isString }))
        case .addUnique: return JSONEdit(path, .addUnique(try values(number)))
        case .remove: return JSONEdit(path, .remove(try values(number)))
        case .push: return JSONEdit(path, .push(try values(number)))
        case nil:
            throw CommandError(
                "ERR step \(number): expected SET, DEL, INCR, APPEND, ADDUNIQUE, REMOVE, PUSH or RETURN, found '",
                shown(words.bytes(step), 64), "'")
        }
    }

    private func path(_ index: Int) throws(CommandError) -> EditPath {
        guard let text = String(validating: words.bytes(index), as: UTF8.self), let path = EditPath(text) else {
            throw CommandError(
                "ERR invalid path '", shown(words.bytes(index), 128),
                "': expected at most \(EditPath.stepsMax) names and indices, such as a.b.0, or $; "
                    + "JSON.SET and its like take JSONPath")
        }
        return path
    }

    private func missing(_ what: String, _ number: Int) -> CommandError {
        CommandError("ERR step \(number): expected \(what), found the end of the command")
    }

    private mutating func value(
        _ number: Int, _ kind: String = "a JSON value", _ isRight: (JSONText) -> Bool = { _ in true }
    ) throws(CommandError) -> JSONText {
        guard index < words.count else { throw missing(kind, number) }
        let value: JSONText
        do throws(CommandError) { value = try words.json(index) } catch {
            let isContainer = words.bytes(index).first.map { "[{".utf8.contains($0) } ?? false
            throw CommandError(
                "ERR step \(number): '", shown(words.bytes(index), 64),
                isContainer ? "' is not JSON of at most 511 levels" : "' is not JSON; a text needs double quotes")
        }
        guard isRight(value) else {
            throw CommandError("ERR step \(number): expected \(kind), found '", shown(words.bytes(index), 64), "'")
        }
        index += 1
        return value
    }

    /// Parses values up to the next step. No step begins like a JSON value.
    private mutating func values(_ number: Int) throws(CommandError) -> [JSONText] {
        var values = [try value(number)]
        while index < words.count, kind(index) == nil, !words.isWord(index, "RETURN") {
            values.append(try value(number))
        }
        return values
    }

    private enum Kind { case set, delete, increment, append, addUnique, remove, push }

    private static let kinds: [(word: StaticString, kind: Kind)] = [
        ("SET", .set), ("DEL", .delete), ("INCR", .increment), ("APPEND", .append), ("ADDUNIQUE", .addUnique),
        ("REMOVE", .remove), ("PUSH", .push),
    ]

    /// The kind of the step that begins with a word; nil if none does.
    private func kind(_ index: Int) -> Kind? { Self.kinds.first { words.isWord(index, $0.word) }?.kind }
}
