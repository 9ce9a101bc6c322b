import LarderJSONCoding
import LarderPlatform

/// A value in a query: a scalar, or the canonical text of an array or object.
package enum QueryOperand: Hashable, Sendable {
    case scalar(QueryValue)
    case container([UInt8])

    package init(_ document: borrowing JSONDocument, _ node: Int) {
        self = document.isContainer(node) ? .container(document.canonicalText(node)) : .scalar(document.value(node))
    }

    /// The value in the order of all values.
    package var value: QueryValue { if case .scalar(let value) = self { value } else { .container } }
}

/// Distinct operands of IN or ALL. Finds a value in logarithmic time.
package struct QueryOperands: Hashable, Sendable {
    package let scalars: [QueryValue]
    package let containers: [[UInt8]]

    package init(_ operands: [QueryOperand]) {
        var scalars: Set<QueryValue> = []
        var containers: Set<[UInt8]> = []
        for operand in operands {
            switch operand {
            case .scalar(let value): scalars.insert(value)
            case .container(let text): containers.insert(text)
            }
        }
        self.scalars = scalars.sorted { $0.order($1) < 0 }
        self.containers = containers.sorted { $0.lexicographicallyPrecedes($1) }
    }

    var count: Int { scalars.count + containers.count }

    /// The number of the operand that equals a value; nil if there is none.
    func index(_ view: ValueView) -> Int? {
        var (low, high) = (0, scalars.count)
        while low < high {
            let middle = (low + high) / 2
            let order = scalars[middle].withView { $0.order(view) }
            if order == 0 { return middle }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    func index(_ document: borrowing JSONDocument, _ node: Int) -> Int? {
        guard document.isContainer(node) else { return document.withView(node) { index($0) } }
        guard !containers.isEmpty else { return nil }
        let text = document.canonicalText(node)
        return containers.firstIndex(of: text).map { scalars.count + $0 }
    }
}

/// A limit of a range of values of one type.
package struct QueryBound: Hashable, Sendable {
    package let value: QueryValue
    package let isInclusive: Bool

    package init(_ value: QueryValue, isInclusive: Bool) { (self.value, self.isInclusive) = (value, isInclusive) }

    /// Whether a value of the same type is on the right side of the limit, by its order relative to the limit.
    fileprivate func holds(for view: ValueView, _ isRightSide: (Int) -> Bool) -> Bool {
        value.withView { limit in
            guard view.isComparable(limit) else { return false }
            let order = view.order(limit)
            return isRightSide(order) || order == 0 && isInclusive
        }
    }
}

/// What a condition demands of the value of its path.
package enum QueryTest: Hashable, Sendable {
    case equal(QueryOperand)
    case range(lower: QueryBound?, upper: QueryBound?)
    case oneOf(QueryOperands)
    case all(QueryOperands)
    case prefix([UInt8])
    case like(LikePattern)
    case exists, missing
    case near(QueryPlace, meters: Double)
    case within(QueryBox)

    /// The values of which each match has one; nil if the test demands none.
    var equalValues: [QueryValue]? {
        switch self {
        case .equal(.scalar(let value)): [value]
        case .oneOf(let operands) where operands.containers.isEmpty: operands.scalars
        default: nil
        }
    }

    /// A function like ``passes(_:_:)``. It compares most values where they are in the document.
    var evaluator: (borrowing JSONDocument, Int?) -> Bool {
        switch self {
        case .equal(.scalar(.text(let text))):
            return { document, node in
                guard let node else { return false }
                return document.hasValue(of: node) { document.kind($0) == .string && document.isNamed($0, text) }
            }
        case .equal(.scalar), .range:
            let integers = integers
            return { document, node in
                guard let node else { return false }
                return document.hasValue(of: node) { node in
                    if let integers, let value = document.integer(node) { return integers.contains(value) }
                    return document.withView(node) { passes($0) }
                }
            }
        default: return { passes($0, $1) }
        }
    }

    /// The 64-bit integers that pass; nil if this is not known.
    private var integers: ClosedRange<Int64>? {
        func integer(_ value: QueryValue, plus step: Int128 = 0) -> Int64? {
            guard case .number(.integer(let value)) = value else { return nil }
            return Int64(exactly: value &+ step)
        }
        switch self {
        case .equal(.scalar(let value)): return integer(value).map { $0...$0 }
        case .range(let lower, let upper):
            guard let least = lower.map({ integer($0.value, plus: $0.isInclusive ? 0 : 1) }) ?? Int64.min,
                let most = upper.map({ integer($0.value, plus: $0.isInclusive ? 0 : -1) }) ?? Int64.max, least <= most
            else { return nil }
            return least...most
        default: return nil
        }
    }

    /// Whether the value of a document at `node` passes; nil if it is missing.
    func passes(_ document: borrowing JSONDocument, _ node: Int?) -> Bool {
        guard let node else { return self == .missing }
        switch self {
        case .missing: return false
        case .exists: return true
        case .all(let operands): return hasAll(operands, document, node)
        case .equal(.container(let text)) where document.canonicalText(node) == text: return true
        case .oneOf(let operands) where !operands.containers.isEmpty && operands.index(document, node) != nil:
            return true
        case .near, .within:
            if let place = QueryPlace(document, node) { return passes(place) }
        default: break
        }
        return document.hasValue(of: node) { passesAlone(document, $0) }
    }

    /// Whether a value passes that is not an array, or is an element of an array.
    private func passesAlone(_ document: borrowing JSONDocument, _ node: Int) -> Bool {
        switch self {
        case .equal(.container(let text)): document.isContainer(node) && document.canonicalText(node) == text
        case .oneOf(let operands): operands.index(document, node) != nil
        case .near, .within: QueryPlace(document, node).map(passes) ?? false
        default: document.withView(node) { passes($0) }
        }
    }

    /// Whether a value passes that belongs to the entry itself, or is no array.
    func passes(_ view: ValueView) -> Bool {
        if case .missing = view { return self == .missing }
        switch self {
        case .missing, .near, .within: return false
        case .exists: return true
        case .equal(.container): return false
        case .equal(.scalar(let value)): return value.withView { $0.order(view) == 0 }
        case .range(let lower, let upper): return Self.isWithin(lower, upper, view)
        case .oneOf(let operands): return operands.index(view) != nil
        case .all(let operands): return operands.count == 1 && operands.index(view) != nil
        case .prefix(let prefix):
            guard case .text(let text) = view else { return false }
            return text.starts(with: prefix)
        case .like(let pattern):
            guard case .text(let text) = view else { return false }
            return pattern.matches(text)
        }
    }

    private static func isWithin(_ lower: QueryBound?, _ upper: QueryBound?, _ view: ValueView) -> Bool {
        lower?.holds(for: view) { $0 > 0 } ?? true && upper?.holds(for: view) { $0 < 0 } ?? true
    }

    private func hasAll(_ operands: QueryOperands, _ document: borrowing JSONDocument, _ node: Int) -> Bool {
        guard document.kind(node) == .array else { return operands.count == 1 && operands.index(document, node) != nil }
        var isFound = [Bool](repeating: false, count: operands.count)
        var left = operands.count
        document.forEachElement(node) { element in
            if let index = operands.index(document, element), !isFound[index] {
                isFound[index] = true
                left -= 1
            }
            return left > 0
        }
        return left == 0
    }

    private func passes(_ place: QueryPlace) -> Bool {
        switch self {
        case .near(let center, let meters): center.distance(to: place) <= meters
        case .within(let box): box.contains(place)
        default: false
        }
    }
}

/// A pattern of LIKE: `*` is any text, `?` one Unicode scalar; other characters stand for themselves.
///
/// After a mismatch, only the last `*` is extended, so the time is at most the product of the two lengths.
package struct LikePattern: Hashable, Sendable {
    /// Longer patterns are refused, because of the time.
    package static let bytesMax = 1024

    private let pattern: [UInt8]
    var bytes: [UInt8] { pattern }

    package init(_ pattern: [UInt8]) { self.pattern = pattern }

    /// Every matching text begins with these bytes.
    package var fixedPrefix: [UInt8] { Array(pattern.prefix { $0 != UInt8(ascii: "*") && $0 != UInt8(ascii: "?") }) }

    package func matches(_ text: UnsafeRawBufferPointer) -> Bool {
        var (place, position) = (0, 0)
        var retry: (place: Int, position: Int)?
        while position < text.count {
            if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
                place += 1
                retry = (place, position)
            } else if place < pattern.count, pattern[place] == UInt8(ascii: "?") {
                place += 1
                position = Self.nextScalar(text, position)
            } else if place < pattern.count, pattern[place] == text[position] {
                place += 1
                position += 1
            } else if let last = retry {
                retry = (last.place, Self.nextScalar(text, last.position))
                (place, position) = (last.place, Self.nextScalar(text, last.position))
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }

    private static func nextScalar(_ text: UnsafeRawBufferPointer, _ position: Int) -> Int {
        var next = position + 1
        while next < text.count, text[next] & 0xC0 == 0x80 { next += 1 }
        return next
    }
}
