/// A place in a JSON document: names of members and indices of elements, joined by dots, as in `a.b.0`. `$` is the
/// whole document. A step that is a number means an element in an array, and a member in an object.
package struct EditPath: Hashable, Sendable {
    /// The UTF-8 of each step, and the index of an element if the step is a number.
    fileprivate let parsed: [Step]

    fileprivate struct Step: Hashable {
        let name: [UInt8]
        let index: Int?
    }

    /// The maximum number of steps: documents are not nested deeper.
    package static let stepsMax = DocumentIndex.depthMax

    /// Returns nil for more than ``stepsMax`` steps, if a step is empty, and for paths of RedisJSON, such as `$.a` and
    /// `a[0]`: they would create members with unexpected names.
    package init?(_ text: String) {
        // Most paths are one name.
        if text != "$", !text.utf8.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "[") }) {
            if text.isEmpty { return nil }
            self.init(steps: [text])
            return
        }
        let all =
            text == "$" ? [] : text.split(separator: ".", maxSplits: Self.stepsMax, omittingEmptySubsequences: false)
        let isStrange = text.contains("[") && text.contains("]") || all.contains(where: \.isEmpty)
        if isStrange || all.first == "$" || all.count > Self.stepsMax { return nil }
        self.init(steps: all.map(String.init))
    }

    /// For error messages.
    package static let unnamed = "a name that is empty, is '$', or contains a dot or brackets, has no path"

    package init(steps: [String]) { parsed = steps.map { Step(name: Array($0.utf8), index: Int($0)) } }

    package var steps: [String] { parsed.map { String(decoding: $0.name, as: UTF8.self) } }
    package var text: String { steps.isEmpty ? "$" : steps.joined(separator: ".") }

    /// Where a path leads in a document.
    package enum Place {
        case value(Int)
        /// The first `depth` steps lead to this object, which has no member for the next step.
        case missing(object: Int, depth: Int)
        /// The next step leads into a value that is no object, or beyond the end of an array.
        case blocked(Int, depth: Int)
    }

    package func find(in document: borrowing JSONDocument) -> Place {
        var value = JSONDocument.root
        for depth in parsed.indices {
            switch document.kind(value) {
            case .object:
                guard let member = document.member(parsed[depth].name, of: value) else {
                    return .missing(object: value, depth: depth)
                }
                value = member
            case .array:
                guard let index = parsed[depth].index, let element = document.element(index, of: value) else {
                    return .blocked(value, depth: depth)
                }
                value = element
            default: return .blocked(value, depth: depth)
            }
        }
        return .value(value)
    }

    /// Returns the bytes of the value at this path; nil if there is none, or the text is not JSON.
    package func value(in text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let document = JSONDocument(text), case .value(let value) = find(in: document) else { return nil }
        return [UInt8](document.bytes(value))
    }
}

/// A change of one place in a JSON document.
package struct JSONEdit: Equatable, Sendable {
    package enum Action: Equatable, Sendable {
        case set(JSONText)
        case delete
        /// Adds a number. A missing value counts as 0.
        case increment(JSONText)
        /// Appends to a string. A missing value counts as an empty string.
        case append(JSONText)
        /// Appends those values to an array that it does not contain. A missing array is created.
        case addUnique([JSONText])
        /// Removes all elements of an array that equal one of the values.
        case remove([JSONText])
        /// Appends values to an array. A missing array is created.
        case push([JSONText])
    }

    package enum Failure: Error, Equatable {
        /// There is no document, and the first edit does not create one.
        case noDocument
        case notJSON
        /// An edit is impossible; the steps are counted from 1.
        case step(Int, String)
    }

    package let path: EditPath
    package private(set) var action: Action

    package init(_ path: EditPath, _ action: Action) { (self.path, self.action) = (path, action) }

    /// Adds the values of the next edit, if both append to, insert into or remove from the same array.
    /// - Returns: whether they do.
    package mutating func join(_ next: JSONEdit) -> Bool {
        guard path == next.path else { return false }
        var all: [JSONText]
        let (more, make): ([JSONText], ([JSONText]) -> Action)
        switch (action, next.action) {
        case (.push(let old), .push(let new)): (all, more, make) = (old, new, Action.push)
        case (.addUnique(let old), .addUnique(let new)): (all, more, make) = (old, new, Action.addUnique)
        case (.remove(let old), .remove(let new)): (all, more, make) = (old, new, Action.remove)
        default: return false
        }
        // The array has no other owner then, so that it is not copied.
        action = .delete
        all += more
        action = make(all)
        return true
    }

    /// The maximum length of the text times the number of edits in one call, in bytes: each edit reads the whole text.
    package static let workMax = 1 << 28

    /// Applies edits, one after the other, all or none. Bytes that no edit touches stay as they are.
    /// - Parameters:
    ///   - text: the document; nil if there is none. An edit that sets the whole document then creates it.
    /// - Returns: the changed text, or nil if nothing was changed.
    package static func apply(_ edits: [JSONEdit], to text: UnsafeRawBufferPointer?) throws(Failure) -> [UInt8]? {
        var result: [UInt8]?
        var work = 0
        for (index, edit) in edits.enumerated() {
            work += result?.count ?? text?.count ?? 0
            if work > workMax {
                throw .step(
                    index + 1, "the text is too long for \(edits.count) steps in one call; send fewer steps at a time")
            }
            let changed: [UInt8]?
            if let result {
                changed = try result.withUnsafeBufferPointer { (bytes) throws(Failure) in
                    try edit.apply(to: UnsafeRawBufferPointer(bytes), number: index + 1)
                }
            } else {
                changed = try edit.apply(to: text, number: index + 1)
            }
            if let changed { result = changed }
        }
        return result
    }

    private struct Reason: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    /// - Returns: the changed text; nil if nothing is changed.
    private func apply(to text: UnsafeRawBufferPointer?, number: Int) throws(Failure) -> [UInt8]? {
        if path.parsed.isEmpty, case .set(let value) = action { return value.bytes }
        guard let text else { throw .noDocument }
        guard let document = JSONDocument(text) else { throw .notJSON }
        do throws(Reason) { return try apply(to: document) } catch { throw .step(number, error.text) }
    }

    private func apply(to document: borrowing JSONDocument) throws(Reason) -> [UInt8]? {
        var splices = JSONSplices()
        switch path.find(in: document) {
        case .value(let value): try change(value, of: document, &splices)
        case .missing(let object, let depth):
            guard let created = try createdValue() else { return nil }
            let names = path.steps.dropFirst(depth + 1)
            var bytes: [UInt8] = []
            for name in names { bytes += [UInt8(ascii: "{")] + JSONText.member(name, []) }
            bytes += created.bytes + [UInt8](repeating: UInt8(ascii: "}"), count: names.count)
            splices.add(path.steps[depth], JSONText(trusted: bytes), to: object, of: document)
        case .blocked(let value, let depth):
            // There is nothing to remove.
            if case .delete = action { return nil }
            if case .remove = action { return nil }
            throw blocked(document, value, depth)
        }
        if splices.isEmpty { return nil }
        guard let changed = splices.applied(to: document.text) else {
            throw Reason("the value would be nested deeper than \(DocumentIndex.depthMax) levels")
        }
        return changed
    }

    private func blocked(_ document: borrowing JSONDocument, _ value: Int, _ depth: Int) -> Reason {
        let around = EditPath(steps: Array(path.steps.prefix(depth))).text.prefix(128)
        let name = path.steps[depth].prefix(128)
        guard document.kind(value) == .array else {
            return Reason("\(around) is \(document.kind(value).name) and has no member '\(name)'")
        }
        let count = document.count(value)
        return Reason("\(around) is an array of \(count) elements and has no element '\(name)'; PUSH appends elements")
    }

    /// Returns the value that the action creates where there is none; nil if it creates none.
    private func createdValue() throws(Reason) -> JSONText? {
        switch action {
        case .set(let value), .increment(let value), .append(let value): return value
        case .delete, .remove: return nil
        case .push(let values): return JSONText(trusted: JSONText.array(values.map(\.bytes)))
        case .addUnique(let values):
            let distinct = JSONDocument.with(values: []) { none in
                none.distinct(values, absentFrom: JSONDocument.root)
            }
            return JSONText(trusted: JSONText.array(distinct.map(\.bytes)))
        }
    }

    private func change(_ value: Int, of document: borrowing JSONDocument, _ splices: inout JSONSplices) throws(Reason)
    {
        func check(_ kind: JSONKind) throws(Reason) {
            guard document.kind(value) == kind else {
                throw Reason("\(path.text.prefix(128)) is \(document.kind(value).name) and not \(kind.name)")
            }
        }
        switch action {
        case .set(let text): splices.replace(document.place(value), with: text.bytes)
        case .delete:
            guard value != JSONDocument.root else {
                throw Reason("the whole document cannot be removed; DEL does that")
            }
            splices.remove([value], from: document)
        case .increment(let amount):
            try check(.number)
            do throws(JSONNumber.Failure) {
                let sum = try document.combining(value, with: amount, multiplies: false)
                splices.replace(document.place(value), with: sum)
            } catch { throw Reason("\(path.text.prefix(128)): \(error.reason)") }
        case .append(let text):
            try check(.string)
            // Two escaped texts in a row are the escaped text of both.
            splices.insert(Array(text.bytes.dropFirst().dropLast()), at: document.place(value).upperBound - 1)
        case .push(let values):
            try check(.array)
            splices.insert(values, at: document.count(value), of: value, in: document)
        case .addUnique(let values):
            try check(.array)
            splices.insert(
                document.distinct(values, absentFrom: value), at: document.count(value), of: value, in: document)
        case .remove(let values):
            try check(.array)
            splices.remove(document.elements(of: value, equalToAny: values), fromContainer: value, of: document)
        }
    }
}

extension JSONDocument {
    /// Runs `body` on a document that is an array of values.
    fileprivate static func with<Result>(values: [JSONText], _ body: (borrowing JSONDocument) -> Result) -> Result {
        let text = JSONText.array(values.map(\.bytes))
        return text.withUnsafeBytes { bytes in
            guard let document = JSONDocument(bytes) else { preconditionFailure("values are nested too deeply") }
            return body(document)
        }
    }

    /// The values without duplicates, and without those that an array contains.
    fileprivate func distinct(_ values: [JSONText], absentFrom array: Int) -> [JSONText] {
        let existing = elementsByHash(of: array)
        return Self.with(values: values) { new in
            var kept: [Int: [Int]] = [:]
            var distinct: [JSONText] = []
            for (element, text) in zip(new.children(Self.root), values) {
                let hash = new.hash(element)
                var isKnown = false
                for other in existing[hash] ?? [] where new.isEqual(element, to: self, other) { isKnown = true }
                for other in kept[hash] ?? [] where new.isEqual(element, to: new, other) { isKnown = true }
                if isKnown { continue }
                kept[hash, default: []].append(element)
                distinct.append(text)
            }
            return distinct
        }
    }

    fileprivate func elements(of array: Int, equalToAny values: [JSONText]) -> Set<Int> {
        Self.with(values: values) { given in
            let wanted = given.elementsByHash(of: Self.root)
            var found: Set<Int> = []
            for element in children(array) {
                for other in wanted[hash(element)] ?? [] where isEqual(element, to: given, other) {
                    found.insert(element)
                }
            }
            return found
        }
    }

    private func elementsByHash(of array: Int) -> [Int: [Int]] {
        var found: [Int: [Int]] = [:]
        for element in children(array) { found[hash(element), default: []].append(element) }
        return found
    }
}

extension JSONEdit {
    /// The edit as a step of the command EDIT.
    package var words: [[UInt8]] {
        func step(_ name: String, _ values: [JSONText]) -> [[UInt8]] {
            [Array(name.utf8), Array(path.text.utf8)] + values.map(\.bytes)
        }
        return switch action {
        case .set(let value): step("SET", [value])
        case .delete: step("DEL", [])
        case .increment(let amount): step("INCR", [amount])
        case .append(let text): step("APPEND", [text])
        case .addUnique(let values): step("ADDUNIQUE", values)
        case .remove(let values): step("REMOVE", values)
        case .push(let values): step("PUSH", values)
        }
    }
}
