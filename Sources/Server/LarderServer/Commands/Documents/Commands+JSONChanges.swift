import LarderCommandCatalog
import LarderEngine
import LarderJSONCoding
import LarderRESP

/// The commands of RedisJSON that change entries which contain JSON. They reply as RedisJSON 2.8 does. Bytes that a
/// command does not change stay as they are.
extension CommandTable {
    static let jsonChangePlanners: Planners = [
        .jsonSet: jsonSet,
        .jsonMset: jsonMset,
        .jsonMerge: jsonMerge,
        .jsonDel: jsonDel,
        .jsonForget: jsonDel,
        .jsonClear: jsonClear,
        .jsonNumincrby: { words throws(CommandError) in try number(words, multiplies: false) },
        .jsonNummultby: { words throws(CommandError) in try number(words, multiplies: true) },
        .jsonToggle: jsonToggle,
        .jsonStrappend: jsonStrappend,
        .jsonArrappend: { words throws(CommandError) in
            let values = try words.jsons(from: 3)
            return try changeArrays(words) { document, array, splices in
                splices.insert(values, at: document.count(array), of: array, in: document)
                return .integer(document.count(array) + values.count)
            }
        },
        .jsonArrinsert: jsonArrinsert,
        .jsonArrpop: jsonArrpop,
        .jsonArrtrim: jsonArrtrim,
    ]

    private typealias Change = (
        _ document: borrowing JSONDocument, _ value: Int, _ splices: inout JSONSplices
    ) throws(CommandError) -> RESPValue

    /// Changes a document.
    /// - Parameter body: returns the reply, and the changed text; nil if nothing is changed. Its first argument is nil
    ///   if there is no entry.
    private static func change(
        _ words: CallWords, _ path: JSONPath,
        _ body: @escaping (UnsafeRawBufferPointer?) throws(CommandError) -> (reply: ChangeReply, text: [UInt8]?)
    ) throws(CommandError) -> EntryPlan {
        let plan = try EntryPlan.change(words, builtBytes: 0) { (update, context) throws(CommandError) in
            let text = update.payload(0)
            try context.admit(parsing: text?.count ?? 0)
            let (reply, changed) = try body(text)
            if let changed { try update.store(changed, context) }
            return reply
        }
        return plan.offLoop(if: path.mayRevisit)
    }

    /// Changes all values of a path that have one of these kinds.
    /// - Parameter reply: makes the reply from the results: for a legacy path from that of the last changed value,
    ///   otherwise from those of all values, with null for other kinds.
    private static func changeAll(
        _ words: CallWords, _ path: JSONPath, of kinds: Set<JSONKind>, else reason: String, _ change: @escaping Change,
        reply: @escaping (RESPValue, inout ReplyBuffer) -> Void = { $1.write($0) }
    ) throws(CommandError) -> EntryPlan {
        try self.change(words, path) { (text) throws(CommandError) in
            guard let text else { throw .noDocument }
            let (results, changed) = try JSONDocument.with(text) { (document) throws(CommandError) in
                var splices = JSONSplices()
                var results: [Int: RESPValue] = [:]
                let values = try document.values(path)
                for value in values where kinds.contains(document.kind(value)) && results[value] == nil {
                    results[value] = try change(document, value, &splices)
                }
                if path.isLegacy {
                    guard let last = values.last(where: { results[$0] != nil }) else { throw .noPath(orElse: reason) }
                    return ([results[last] ?? .null], try splices.changing(text))
                }
                return (values.map { results[$0] ?? .null }, try splices.changing(text))
            }
            let result = path.isLegacy ? results[0] : .array(results)
            return (.written { reply(result, &$0) }, changed)
        }
    }

    private static func changeArrays(_ words: CallWords, _ change: @escaping Change) throws(CommandError) -> EntryPlan {
        try changeAll(words, try words.path(2), of: [.array], else: "not an array", change)
    }

    // MARK: JSON.SET

    private enum Existence { case any, absent, present }

    @Sendable private static func jsonSet(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        let value = try words.json(3)
        var (options, existence) = (OptionReader(words, from: 4), Existence.any)
        while let option = options.next() {
            switch option {
            case "nx" where existence == .any: existence = .absent
            case "xx" where existence == .any: existence = .present
            case "format" where words.isWord(try options.value(), "JSON"): break
            default: throw .syntax
            }
        }
        return try change(words, path) { [existence] (text) throws(CommandError) in
            let changed = try set(path, value, existence, in: text)
            return (changed == nil ? .null : .ok, changed)
        }
    }

    /// - Returns: the changed text; nil if nothing is changed.
    private static func set(
        _ path: JSONPath, _ value: JSONText, _ existence: Existence, in text: UnsafeRawBufferPointer?
    ) throws(CommandError) -> [UInt8]? {
        guard let text else {
            if existence == .present { return nil }
            guard path.isRoot else { throw .notAtRoot }
            return value.bytes
        }
        return try JSONDocument.with(text) { (document) throws(CommandError) in
            if path.isRoot { return existence == .absent ? nil : value.bytes }
            var splices = JSONSplices()
            let found = try document.outermostValues(path)
            if existence != .absent, !found.isEmpty {
                for place in found { splices.replace(document.place(place), with: value.bytes) }
            } else if existence != .present {
                guard path.isStatic else { throw CommandError("ERR wrong static path") }
                guard let (parent, name) = path.parent else {
                    if found.isEmpty { throw CommandError("ERR array index out of range") }
                    return nil
                }
                for object in try document.outermostValues(parent)
                where document.kind(object) == .object && document.member(name, of: object) == nil {
                    splices.add(name, value, to: object, of: document)
                }
            }
            return try splices.changing(text)
        }
    }

    @Sendable private static func jsonMset(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count % 3 == 1 else { throw .arity("json.mset") }
        let keys = try words.keys(from: 1, step: 3)
        var parts: [(path: JSONPath, value: JSONText)] = []
        for index in keys.indices { parts.append((try words.path(3 * index + 2), try words.json(3 * index + 3))) }
        let plan = EntryPlan.change(
            ChangePlan(keys: keys, builtBytes: 0) { [parts] (update, context) throws(CommandError) in
                // Store nothing before all texts are known.
                var texts: [Key: [UInt8]] = [:]
                var work = 0
                for (index, part) in parts.enumerated() {
                    let key = keys[index]
                    work += texts[key]?.count ?? update.payload(index)?.count ?? 0
                    guard work <= JSONEdit.workMax else {
                        throw CommandError("ERR the texts are too long for \(parts.count) paths in a call: send fewer")
                    }
                    try context.admit(parsing: update.payload(index)?.count ?? 0)
                    let changed: [UInt8]?
                    if let text = texts[key] {
                        changed = try text.withUnsafeBufferPointer { (text) throws(CommandError) in
                            try set(part.path, part.value, .any, in: UnsafeRawBufferPointer(text))
                        }
                    } else {
                        changed = try set(part.path, part.value, .any, in: update.payload(index))
                    }
                    // As in RedisJSON, places that do not exist are skipped.
                    if let changed { texts[key] = changed }
                }
                try context.admit(texts.values.reduce(0) { $0 + $1.count }, update)
                for (index, key) in keys.enumerated() {
                    guard let text = texts.removeValue(forKey: key) else { continue }
                    text.withUnsafeBytes { update.replace(index, payload: $0) }
                }
                return .ok
            })
        return plan.offLoop(if: parts.contains { $0.path.mayRevisit })
    }

    // MARK: JSON.MERGE

    @Sendable private static func jsonMerge(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        let patch = try words.json(3)
        guard words.count == 4 || words.count == 6 && words.isWord(4, "FORMAT") && words.isWord(5, "JSON") else {
            throw .syntax
        }
        return try change(words, path) { (text) throws(CommandError) in
            guard let text else {
                guard path.isRoot else { throw .notAtRoot }
                return (.ok, patch.bytes)
            }
            let changed = try JSONDocument.with(text) { (document) throws(CommandError) -> [UInt8]? in
                let found = try document.outermostValues(path)
                guard found.isEmpty else {
                    var splices = JSONSplices()
                    for value in found {
                        splices.replace(document.place(value), with: document.merging(patch, into: value))
                    }
                    return try splices.changing(text)
                }
                return try set(path, patch, .any, in: text)
            }
            return (changed == nil ? .null : .ok, changed)
        }
    }

    // MARK: Removing

    @Sendable private static func jsonDel(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        guard words.count <= 3 else { throw .arity(words.name) }
        let plan = try EntryPlan.change(words, builtBytes: 0) { (update, context) throws(CommandError) in
            guard let text = update.payload(0) else {
                if path.isRoot { update.removeEvicted(0) }
                return .integer(0)
            }
            try context.admit(parsing: text.count)
            let (count, changed) = try JSONDocument.with(text) { (document) throws(CommandError) -> (Int, [UInt8]?) in
                if path.isRoot { return (1, nil) }
                let found = try document.outermostValues(path)
                if found == [JSONDocument.root] { return (1, nil) }
                var splices = JSONSplices()
                splices.remove(Set(found), from: document)
                return (found.count, try splices.changing(text))
            }
            if count > 0, changed == nil { update.remove(0) }
            if let changed { try update.store(changed, context) }
            return .integer(count)
        }
        return plan.offLoop(if: path.mayRevisit)
    }

    @Sendable private static func jsonClear(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        guard words.count <= 3 else { throw .arity("json.clear") }
        return try change(words, path) { (text) throws(CommandError) in
            guard let text else { throw .noDocument }
            return try JSONDocument.with(text) { (document) throws(CommandError) in
                var splices = JSONSplices()
                var count = 0
                for value in Set(try document.values(path)).sorted() {
                    let empty: StaticString
                    switch document.kind(value) {
                    case .object where document.count(value) > 0: empty = "{}"
                    case .array where document.count(value) > 0: empty = "[]"
                    case .number where document.double(value) != 0: empty = "0"
                    default: continue
                    }
                    splices.replace(document.place(value), with: Array("\(empty)".utf8))
                    count += 1
                }
                return (.integer(count), try splices.changing(text))
            }
        }
    }

    // MARK: Numbers, booleans and strings

    private static func number(_ words: CallWords, multiplies: Bool) throws(CommandError) -> EntryPlan {
        let amount = try words.json(3)
        guard amount.isNumber else { throw CommandError("ERR bad input number") }
        let path = try words.path(2)
        return try changeAll(
            words, path, of: [.number], else: "does not contains a number",
            { (document, value, splices) throws(CommandError) in
                let digits: [UInt8]
                do throws(JSONNumber.Failure) {
                    digits = try document.combining(value, with: amount, multiplies: multiplies)
                } catch {
                    throw CommandError("ERR \(error.reason)")
                }
                splices.replace(document.place(value), with: digits)
                return .bulk(digits)
            },
            reply: { result, replies in
                // RESP2 gets a text with all numbers, RESP3 an array of numbers.
                let numbers = result.elements ?? [result]
                if replies.version == .three {
                    replies.write(.array(numbers.map { $0.bytes.map { RESPValue(digits: $0) } ?? .null }))
                } else {
                    let texts = numbers.map { $0.bytes ?? Array("null".utf8) }
                    replies.bulk(path.isLegacy ? texts[0] : JSONText.array(texts))
                }
            })
    }

    @Sendable private static func jsonToggle(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let path = try words.path(2)
        return try changeAll(words, path, of: [.yes, .no], else: "not a bool") { document, value, splices in
            let isTrue = document.kind(value) == .no
            let text = Array((isTrue ? "true" : "false").utf8)
            splices.replace(document.place(value), with: text)
            return path.isLegacy ? .bulk(text) : .integer(isTrue ? 1 : 0)
        }
    }

    @Sendable private static func jsonStrappend(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count <= 4 else { throw .arity("json.strappend") }
        let text = try words.json(words.count - 1)
        guard text.isString else { throw .wrongKind(expected: "string") }
        let escaped = Array(text.bytes.dropFirst().dropLast())
        let change: Change = { document, value, splices in
            // Two escaped texts in a row are the escaped text of both.
            splices.insert(escaped, at: document.place(value).upperBound - 1)
            return .integer(document.string(value).utf8.count + text.string.utf8.count)
        }
        let path = words.count == 3 ? .root : try words.path(2)
        return try changeAll(words, path, of: [.string], else: "not a string", change)
    }

    // MARK: Arrays

    @Sendable private static func jsonArrinsert(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let index = Int(clamping: try words.integer(3))
        let values = try words.jsons(from: 4)
        return try changeArrays(words) { (document, array, splices) throws(CommandError) in
            let count = document.count(array)
            let place = index < 0 ? count + index : index
            guard (0...count).contains(place) else { throw CommandError("ERR index out of bounds") }
            splices.insert(values, at: place, of: array, in: document)
            return .integer(count + values.count)
        }
    }

    @Sendable private static func jsonArrpop(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count <= 4 else { throw .arity("json.arrpop") }
        let index = words.count > 3 ? Int(clamping: try words.integer(3)) : -1
        return try changeArrays(words) { document, array, splices in
            let elements = document.children(array)
            guard !elements.isEmpty else { return .null }
            let place = index < 0 ? max(0, elements.count + index) : min(index, elements.count - 1)
            splices.remove([elements[place]], fromContainer: array, of: document)
            let text = JSONFormat.compact.write(document.bytes(elements[place]), most: .max)
            return .bulk(text ?? [])
        }
    }

    @Sendable private static func jsonArrtrim(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let (start, stop) = (Int(clamping: try words.integer(3)), Int(clamping: try words.integer(4)))
        return try changeArrays(words) { document, array, splices in
            let elements = document.children(array)
            let count = elements.count
            let first = start < 0 ? max(0, count + start) : start
            let last = stop < 0 ? max(0, count + stop) : min(stop, count - 1)
            let kept = first <= last && first < count ? first..<last + 1 : 0..<0
            var removed = Set(elements)
            removed.subtract(elements[kept])
            splices.remove(removed, fromContainer: array, of: document)
            return .integer(kept.count)
        }
    }
}

extension JSONSplices {
    /// Returns the changed text; nil if nothing is changed. Throws if the result is nested too deeply.
    fileprivate func changing(_ text: UnsafeRawBufferPointer) throws(CommandError) -> [UInt8]? {
        guard !isEmpty else { return nil }
        guard let changed = applied(to: text) else { throw CommandError("ERR recursion limit exceeded") }
        return changed
    }
}
