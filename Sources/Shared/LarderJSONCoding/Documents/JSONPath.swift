/// A path to values of a JSON document: JSONPath as RedisJSON 2.8 understands it, without regular expressions.
///
/// A path that begins with `$` finds any number of values: `$.a.b`, `$['a']`, `$[0,-1]`, `$[1:9:2]`, `$.*`, `$..a`,
/// `$[?(@.price<10 && @.tag=="x")]`. Any other path is a *legacy path*, which means the first value: `.a[0]`, `a`, `.`.
/// Immutable, so any thread may use it.
package struct JSONPath: Sendable {
    /// Which values a step finds in a value.
    enum Selector: Sendable {
        case names([String])
        /// Negative indices count from the end.
        case indices([Int])
        case range(from: Int?, to: Int?, step: Int)
        case all
        case filter(JSONFilter)
    }

    struct Step: Sendable {
        let selector: Selector
        /// Whether the step also looks into all values below: `..`.
        let isRecursive: Bool
    }

    /// The error for a text that is not a path.
    package struct Defect: Error, Equatable {
        /// The number of bytes before the error.
        package let offset: Int
        /// What would be right there.
        package let expected: String
    }

    /// The error for a path that visits more than ``visitsMax(in:)`` values.
    package struct TooManyVisits: Error {}

    /// The maximum number of values that a search visits: few more than the document has, so that a short path cannot
    /// keep a processor busy. A path with several `..`, `*` or filters may visit values repeatedly.
    static func visitsMax(in document: borrowing JSONDocument) -> Int { 100_000 + 4 * document.end }

    let steps: [Step]
    package let isLegacy: Bool

    init(steps: [Step], isLegacy: Bool) { (self.steps, self.isLegacy) = (steps, isLegacy) }

    package init(_ text: UnsafeRawBufferPointer) throws(Defect) {
        var parser = JSONPathParser(text)
        (steps, isLegacy) = try parser.path()
    }

    /// The path of the whole document.
    package static let root = JSONPath(steps: [], isLegacy: true)
    package var isRoot: Bool { steps.isEmpty }

    /// Whether a search may visit a value several times, so that its cost is not bounded by the length of the text.
    package var mayRevisit: Bool {
        steps.count { step in
            if case .filter = step.selector { return true }
            return JSONPath(steps: [step], isLegacy: isLegacy).mayRepeat
        } > 1
    }

    /// Whether a value may be found several times, or within another found value, so that all found values together may
    /// be longer than the text.
    package var mayRepeat: Bool {
        steps.contains { step in
            switch step.selector {
            case .names(let names): step.isRecursive || names.count > 1
            case .indices(let indices): step.isRecursive || indices.count > 1
            case .range, .all, .filter: step.isRecursive
            }
        }
    }

    /// Whether the path means one place only: each step is one name or one index.
    package var isStatic: Bool {
        steps.allSatisfy { step in
            switch step.selector {
            case .names(let names): !step.isRecursive && names.count == 1
            case .indices(let indices): !step.isRecursive && indices.count == 1
            default: false
            }
        }
    }

    /// The name in the last step, and the path before it; nil unless the last step is one name.
    package var parent: (path: JSONPath, name: String)? {
        guard case .names(let names)? = steps.last?.selector, names.count == 1 else { return nil }
        return (JSONPath(steps: steps.dropLast(), isLegacy: isLegacy), names[0])
    }

    // MARK: Search

    /// Finds the values of a path, in RedisJSON's order. A value may be found several times.
    package func find(in document: borrowing JSONDocument) throws(TooManyVisits) -> [Int] {
        var visits = 0
        return try Self.find(steps, from: JSONDocument.root, in: document, &visits)
    }

    /// Like ``find(in:)``, but without values that are found several times, or are within other found values.
    package func findOutermost(in document: borrowing JSONDocument) throws(TooManyVisits) -> [Int] {
        var found: [Int] = []
        var end = 0
        for value in try find(in: document).sorted() where value >= end {
            found.append(value)
            end = document.next(value)
        }
        return found
    }

    static func find(
        _ steps: [Step], from start: Int, in document: borrowing JSONDocument, _ visits: inout Int
    ) throws(TooManyVisits) -> [Int] {
        var found = [start]
        for step in steps {
            var next: [Int] = []
            for value in found {
                try select(step.selector, in: document, value, &next, &visits)
                guard step.isRecursive else { continue }
                // Names of members are strings, so the objects and arrays are values.
                for inner in value + 1..<max(value + 1, document.next(value)) {
                    visits += 1
                    guard document.isContainer(inner) else { continue }
                    try select(step.selector, in: document, inner, &next, &visits)
                }
            }
            found = next
        }
        return found
    }

    /// Appends the values that a selector finds directly in `value`.
    private static func select(
        _ selector: Selector, in document: borrowing JSONDocument, _ value: Int, _ found: inout [Int],
        _ visits: inout Int
    ) throws(TooManyVisits) {
        visits += 1
        switch selector {
        case .names(let names):
            let members = document.members(value)
            visits += members.count * names.count
            if visits > visitsMax(in: document) { throw TooManyVisits() }
            for name in names {
                if let member = document.member(name, of: value) { found.append(member) }
            }
        case .indices(let indices):
            guard document.kind(value) == .array else { return }
            let elements = document.children(value)
            visits += elements.count
            for index in indices {
                let place = absolute(index, elements.count)
                if place < elements.count { found.append(elements[place]) }
            }
        case .range(let from, let to, let step):
            guard document.kind(value) == .array else { return }
            let elements = document.children(value)
            visits += elements.count
            let (start, end) = (absolute(from ?? 0, elements.count), to.map { absolute($0, elements.count) })
            for place in stride(from: start, to: end ?? elements.count, by: step) { found.append(elements[place]) }
        case .all:
            let children = document.children(value)
            visits += children.count
            found += children
        case .filter(let filter):
            // As in RedisJSON, a filter on a single value tests this value.
            let tested = document.isContainer(value) ? document.children(value) : [value]
            visits += tested.count
            for child in tested {
                if try filter.holds(for: child, in: document, &visits) { found.append(child) }
            }
        }
        if visits > visitsMax(in: document) { throw TooManyVisits() }
    }

    /// Converts an index to a position in an array. As in RedisJSON, an index before the first element means the first.
    private static func absolute(_ index: Int, _ count: Int) -> Int {
        index >= 0 ? min(index, count) : max(0, count + index)
    }
}

/// The condition of a filter in a ``JSONPath``.
indirect enum JSONFilter: Sendable {
    case any([JSONFilter])
    case all([JSONFilter])
    case exists(Term)
    case compares(Term, Comparison, Term)

    enum Comparison: Sendable { case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual }

    enum Term: Sendable {
        /// A path from the tested value, or from the whole document.
        case path([JSONPath.Step], fromRoot: Bool)
        case integer(Int64)
        case double(Double)
        case string(String)
        case boolean(Bool)
        case null
    }

    /// The value of a term: as in RedisJSON, none unless its path finds exactly one value.
    private enum Operand {
        case none
        case value(Int)
        case literal(Term)
    }

    func holds(
        for value: Int, in document: borrowing JSONDocument, _ visits: inout Int
    ) throws(JSONPath.TooManyVisits) -> Bool {
        switch self {
        case .any(let filters):
            for filter in filters where try filter.holds(for: value, in: document, &visits) { return true }
            return false
        case .all(let filters):
            for filter in filters where try !filter.holds(for: value, in: document, &visits) { return false }
            return true
        case .exists(let term):
            if case .none = try Self.operand(term, value, in: document, &visits) { return false }
            return true
        case .compares(let left, let comparison, let right):
            let left = try Self.operand(left, value, in: document, &visits)
            let right = try Self.operand(right, value, in: document, &visits)
            return Self.compare(left, comparison, right, in: document)
        }
    }

    private static func operand(
        _ term: Term, _ value: Int, in document: borrowing JSONDocument, _ visits: inout Int
    ) throws(JSONPath.TooManyVisits) -> Operand {
        guard case .path(let steps, let fromRoot) = term else { return .literal(term) }
        let start = fromRoot ? JSONDocument.root : value
        let found = try JSONPath.find(steps, from: start, in: document, &visits)
        guard found.count == 1 else { return .none }
        return .value(found[0])
    }

    private static func compare(
        _ left: Operand, _ comparison: Comparison, _ right: Operand, in document: borrowing JSONDocument
    ) -> Bool {
        var isEqual = false
        if case .value(let value) = left, case .value(let other) = right {
            isEqual = document.isEqual(value, to: document, other)
        }
        let order = order(literal(left, in: document), literal(right, in: document))
        switch comparison {
        case .equal: return isEqual || order == 0
        case .notEqual: return !(isEqual || order == 0)
        case .less: return order.map { $0 < 0 } ?? false
        case .lessOrEqual: return order.map { $0 <= 0 } ?? false
        case .greater: return order.map { $0 > 0 } ?? false
        case .greaterOrEqual: return order.map { $0 >= 0 } ?? false
        }
    }

    /// Returns a value as a literal; nil for objects and arrays, and if there is no value.
    private static func literal(_ operand: Operand, in document: borrowing JSONDocument) -> Term? {
        switch operand {
        case .none: return nil
        case .literal(let term): return term
        case .value(let value):
            switch document.kind(value) {
            case .null: return .null
            case .no: return .boolean(false)
            case .yes: return .boolean(true)
            case .string: return .string(document.string(value))
            case .number:
                if let integer = document.integer(value) { return .integer(integer) }
                return document.double(value).map { .double($0) }
            case .object, .array: return nil
            }
        }
    }

    /// Compares two literals; nil if they have different types.
    private static func order(_ left: Term?, _ right: Term?) -> Int? {
        func order<Value: Comparable>(_ left: Value, _ right: Value) -> Int { left < right ? -1 : left > right ? 1 : 0 }
        switch (left, right) {
        case (.null?, .null?): return 0
        case (.boolean(let left)?, .boolean(let right)?): return order(left ? 1 : 0, right ? 1 : 0)
        case (.integer(let left)?, .integer(let right)?): return order(left, right)
        case (.integer(let left)?, .double(let right)?): return order(Double(left), right)
        case (.double(let left)?, .integer(let right)?): return order(left, Double(right))
        case (.double(let left)?, .double(let right)?): return order(left, right)
        case (.string(let left)?, .string(let right)?):
            if left.utf8.elementsEqual(right.utf8) { return 0 }
            return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
        default: return nil
        }
    }
}
