import LarderJSONCoding

/// The groups of a query and their values.
package struct QueryGroups {
    /// The sum of numbers. Integers are added exactly, others with a compensation of rounding errors, so that the sum
    /// hardly depends on the order of the entries.
    struct Sum {
        private var integers: Int128 = 0
        private var (reals, compensation) = (0.0, 0.0)
        private var hasReals = false

        mutating func add(_ number: QueryNumber) {
            if case .integer(let value) = number {
                let (sum, overflows) = integers.addingReportingOverflow(value)
                if !overflows {
                    integers = sum
                    return
                }
            }
            hasReals = true
            let value = number.double
            let sum = reals + value
            compensation += abs(reals) >= abs(value) ? (reals - sum) + value : (value - sum) + reals
            reals = sum
        }

        var number: QueryNumber {
            guard hasReals else { return .integer(integers) }
            let sum = reals + compensation
            return QueryNumber(Double(integers) + (sum.isNaN ? reals : sum))
        }
    }

    fileprivate struct Numbers {
        var count = 0
        var sum = Sum()
        var (least, most): (QueryNumber?, QueryNumber?)

        mutating func add(_ number: QueryNumber) {
            count += 1
            sum.add(number)
            if least.map({ number.order($0) < 0 }) ?? true { least = number }
            if most.map({ number.order($0) > 0 }) ?? true { most = number }
        }
    }

    fileprivate struct Group {
        let value: QueryValue
        var count = 0
        var numbers: [Numbers]
    }

    package enum Value: Equatable {
        case count(Int)
        /// A number, or null.
        case json([UInt8])
    }

    /// The memory for groups is bounded.
    package static let groupsMax = 100_000
    static let bytesMax = 128 << 20

    private let path: QueryPath
    private let aggregates: [Query.Aggregate]
    private let isDescending: Bool
    /// By their canonical JSON texts.
    private var groups: [[UInt8]: Group] = [:]
    private var byteCount = 0

    package init(_ path: QueryPath, _ aggregates: [Query.Aggregate], isDescending: Bool = false) {
        (self.path, self.aggregates, self.isDescending) = (path, aggregates, isDescending)
    }

    package var count: Int { groups.count }

    /// Adds an entry to its groups: none if it lacks the path, one for each distinct element of an array.
    package mutating func add(_ document: borrowing JSONDocument, _ facts: QueryFacts) throws(QueryError) {
        var values: [[UInt8]: QueryValue] = [:]
        if path.root != .document {
            let fact = path.fact(facts)
            if let json = fact.json { values[json] = fact }
        } else if let node = path.find(in: document) {
            document.forEachValue(of: node) { values[document.canonicalText($0)] = document.value($0) }
        }
        guard !values.isEmpty else { return }
        let numbers = aggregates.map { aggregate in aggregate.path.flatMap { Self.number($0, document, facts) } }
        for (text, value) in values { try add(text, value, numbers) }
    }

    private mutating func add(_ text: [UInt8], _ value: QueryValue, _ numbers: [QueryNumber?]) throws(QueryError) {
        if groups[text] == nil {
            byteCount += 2 * text.count + aggregates.count * MemoryLayout<Numbers>.stride
            guard groups.count < Self.groupsMax else {
                throw QueryError("GROUP has more than \(Self.groupsMax) groups; use WHERE")
            }
            guard byteCount <= Self.bytesMax else {
                throw QueryError("the groups need more than \(Self.bytesMax >> 20) MiB; use WHERE, or fewer values")
            }
        }
        groups[text, default: Group(value: value, numbers: aggregates.map { _ in Numbers() })].add(numbers)
    }

    private static func number(
        _ path: QueryPath, _ document: borrowing JSONDocument, _ facts: QueryFacts
    ) -> QueryNumber? {
        guard path.root == .document else {
            if case .number(let number) = path.fact(facts) { return number }
            return nil
        }
        guard let node = path.find(in: document), document.kind(node) == .number else { return nil }
        return QueryNumber(document, node)
    }

    /// The groups in their order, each with its JSON and its values.
    package func sorted() -> [(json: [UInt8], values: [Value])] {
        let ordered = groups.sorted { left, right in
            let order = left.value.value.order(right.value.value)
            if order != 0 { return (order < 0) != isDescending }
            // Arrays and objects have no order, so their texts determine it.
            return left.key.lexicographicallyPrecedes(right.key)
        }
        return ordered.map { text, group in
            (text, zip(aggregates, group.numbers).map { Self.value($0, group.count, $1) })
        }
    }

    private static func value(_ aggregate: Query.Aggregate, _ count: Int, _ numbers: Numbers) -> Value {
        switch aggregate.function {
        case .count: .count(count)
        case .sum: json(numbers.count == 0 ? nil : numbers.sum.number)
        case .min: json(numbers.least)
        case .max: json(numbers.most)
        }
    }

    private static func json(_ number: QueryNumber?) -> Value { .json(Array((number?.text ?? "null").utf8)) }
}

extension QueryGroups.Group {
    fileprivate mutating func add(_ values: [QueryNumber?]) {
        count += 1
        for (index, value) in values.enumerated() { if let value { numbers[index].add(value) } }
    }
}
