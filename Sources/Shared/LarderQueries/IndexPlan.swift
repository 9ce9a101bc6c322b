import LarderPlatform

/// The terms that begin with `lower`, with `upper`, or with something in between.
package struct TermRange: Hashable, Sendable {
    package var lower: [UInt8]
    package var upper: [UInt8]

    /// Greater than every term of the range; nil for no limit.
    package var end: [UInt8]? { ByteOrder.successor(ofPrefix: upper) }

    package func contains(_ term: [UInt8]) -> Bool {
        !term.lexicographicallyPrecedes(lower) && end.map { term.lexicographicallyPrecedes($0) } ?? true
    }
}

/// How indexes find the candidates of a query: each matching entry has a term in one of the ranges.
package struct IndexPlan: Hashable, Sendable {
    package struct Part: Hashable, Sendable {
        /// The position of the index in the list that was passed to the planner.
        package let index: Int
        package var ranges: [TermRange]
        /// The cells that are read after the ranges, if the rows have the order of distances.
        package var nearest: NearestCells?
    }

    /// A range whose candidates have the order of the rows.
    package struct Ordered: Hashable, Sendable {
        package let index: Int
        package var range: TermRange
        package let isBackward: Bool
        /// The number of the index's paths up to the last one of the order.
        package let partCount: Int
        package let order: QueryOrder
        /// The beginning of all terms, by the equalities of the query.
        let beginning: [UInt8]
        /// The paths of these equalities.
        let fixed: Set<QueryPath>

        /// The beginning of a term that is the same for all terms that may have equal rows.
        package func group(_ term: [UInt8], _ definition: IndexDefinition) -> ArraySlice<UInt8> {
            term[..<IndexTerms.end(of: partCount, in: term, definition.order)]
        }

        package func group(_ row: QueryPosition) -> [UInt8] {
            var term = beginning
            for (value, part) in zip(row.values, order.parts) where !fixed.contains(part.path) {
                if IndexTerms.append(value, descending: part.isDescending != isBackward, to: &term) { break }
            }
            return term
        }

        /// Whether all rows of a candidate, and of those after it, follow a row.
        package func follows(_ row: QueryPosition, term: [UInt8], key: [UInt8], _ definition: IndexDefinition) -> Bool {
            // All terms are equal, so the candidates have the order of their keys.
            if order.parts.isEmpty { return row.key.lexicographicallyPrecedes(key) }
            let (group, last) = (self.group(term, definition), self.group(row))
            return isBackward ? group.lexicographicallyPrecedes(last) : last.lexicographicallyPrecedes(group)
        }
    }

    /// The ranges without an order.
    package var parts: [Part]
    package var ordered: Ordered?

    package var rangeCount: Int { parts.reduce(1) { $0 + $1.ranges.count } }

    package var indexes: [Int] { Array(Set(parts.map(\.index) + (ordered.map { [$0.index] } ?? []))).sorted() }
}

/// Chooses the indexes of a query. There are no statistics: the index with the most equalities wins, then one with a
/// range, then one that has the order of the rows.
package struct IndexPlanner {
    private let definitions: [IndexDefinition]
    private let keyPrefix: [UInt8]
    /// The maximum number of combinations of the values of IN.
    private static let combinationsMax = 65_536

    /// - Parameter definitions: the indexes that can be used.
    package init(_ definitions: [IndexDefinition], _ query: Query) {
        self.definitions = definitions
        keyPrefix = query.keyRange.prefix
    }

    /// Returns nil if no index helps.
    package func plan(_ query: Query) -> IndexPlan? {
        let conjuncts = query.condition?.conjuncts ?? []
        // A single key is looked up faster than any index.
        if query.keyRange.isSingle { return nil }
        var order: QueryOrder?
        switch query.output {
        case .groups: break
        // Only the entries that have computed values are counted: those that the index of the order lists.
        case .count: if query.order.isComputed { order = query.order }
        case .rows, .keys, .select: order = query.rowOrder
        }
        let best = definitions.indices.compactMap { choice($0, conjuncts, order, query) }.max { $0.rank < $1.rank }
        if let best, best.rank.equal > 0 || best.rank.hasRange { return best.plan }
        return union(conjuncts) ?? best?.plan
    }

    /// A union of the candidates of the branches of an OR, if each has an index.
    private func union(_ conjuncts: [QueryCondition]) -> IndexPlan? {
        for case .or(let branches) in conjuncts {
            var plan = IndexPlan(parts: [])
            var isComplete = true
            for branch in branches {
                let found = definitions.indices.compactMap { choice($0, branch.conjuncts, nil, nil) }
                if let best = found.max(by: { $0.rank < $1.rank }), best.rank.equal > 0 || best.rank.hasRange {
                    plan.parts += best.plan.parts
                } else if let inner = union(branch.conjuncts) {
                    plan.parts += inner.parts
                } else {
                    isComplete = false
                    break
                }
            }
            if isComplete { return plan }
        }
        return nil
    }

    // MARK: One index

    private struct Rank: Comparable {
        var equal = 0
        var hasRange = false
        var isOrdered = false
        var pathCount = 0

        static func < (left: Rank, right: Rank) -> Bool {
            if left.equal != right.equal { return left.equal < right.equal }
            if left.hasRange != right.hasRange { return right.hasRange }
            if left.isOrdered != right.isOrdered { return right.isOrdered }
            return left.pathCount > right.pathCount
        }
    }

    /// - Parameter order: the order of the rows; nil if they need none.
    private func choice(
        _ index: Int, _ conjuncts: [QueryCondition], _ order: QueryOrder?, _ query: Query?
    ) -> (rank: Rank, plan: IndexPlan)? {
        let definition = definitions[index]
        guard keyPrefix.starts(with: definition.prefix) else { return nil }
        if definition.kind == .places {
            return Self.choice(index, of: definition.order.parts[0].path, conjuncts, order, query)
        }
        let parts = definition.order.parts
        var rank = Rank(pathCount: parts.count)
        // The beginnings of terms, without the region.
        var prefixes: [[UInt8]] = [[]]
        var fixed: Set<QueryPath> = []
        var isLast = false
        var position = 0
        while position < parts.count, !isLast, let values = Self.values(of: parts[position].path, conjuncts),
            prefixes.count * values.count <= Self.combinationsMax
        {
            var longer: [[UInt8]] = []
            for prefix in prefixes {
                for value in values {
                    var term = prefix
                    if IndexTerms.append(value, descending: parts[position].isDescending, to: &term) { isLast = true }
                    longer.append(term)
                }
            }
            prefixes = longer
            if values.count == 1 { fixed.insert(parts[position].path) }
            rank.equal += 1
            position += 1
        }
        var limits: [TermRange] = []
        if position < parts.count, !isLast { limits = Self.ranges(of: parts[position], conjuncts) }
        rank.hasRange = !limits.isEmpty
        if rank.equal == 0, !rank.hasRange, order?.parts.first?.path != parts[0].path { return nil }
        var plan = IndexPlan(parts: [])
        let whole = TermRange(lower: [], upper: [])
        // Without arrays, the value must be in all ranges; an array may have an element in each.
        let narrow = limits.dropFirst().reduce(limits.first ?? whole) { $0.intersection($1) }
        func ranges(_ region: UInt8, _ limit: TermRange) -> [TermRange] {
            prefixes.map { prefix in
                let lower = [region] + prefix + limit.lower
                return TermRange(
                    lower: lower, upper: limit.upper == limit.lower ? lower : [region] + prefix + limit.upper)
            }
        }
        var unordered = ranges(IndexTerms.Region.element, limits.first ?? whole)
        unordered.append(Self.several)
        let single = ranges(IndexTerms.Region.single, narrow)
        if let order, let query, single.count == 1, !isLast, narrow.isPossible {
            let beginning = [IndexTerms.Region.single] + prefixes[0]
            plan.ordered = Self.ordered(index, single[0], beginning, order, definition, fixed, position, query)
        }
        if plan.ordered == nil, narrow.isPossible { unordered += single }
        rank.isOrdered = plan.ordered != nil && !(order?.parts.isEmpty ?? true)
        guard rank.equal > 0 || rank.hasRange || rank.isOrdered else { return nil }
        plan.parts = [IndexPlan.Part(index: index, ranges: unordered)]
        return (rank, plan)
    }

    /// The candidates in an index of places, for the first condition on them.
    private static func choice(
        _ index: Int, of path: QueryPath, _ conjuncts: [QueryCondition], _ order: QueryOrder?, _ query: Query?
    ) -> (rank: Rank, plan: IndexPlan)? {
        for case .test(path, let test) in conjuncts {
            guard let box = test.box else { continue }
            var part = IndexPlan.Part(index: index, ranges: [several])
            if case .near(let center, let meters) = test,
                order == QueryOrder([QueryOrder.Part(path, distanceTo: center)])
            {
                var nearest = 0.0
                if case .number(let distance)? = query?.cursor?.last.values[0] { nearest = distance.double }
                part.nearest = NearestCells(around: center, meters: meters, after: nearest)
            } else {
                part.ranges += PlaceCells.ranges(covering: box).map {
                    TermRange(lower: IndexTerms.term(of: $0.lowerBound), upper: IndexTerms.term(of: $0.upperBound))
                }
            }
            let plan = IndexPlan(parts: [part])
            return (Rank(hasRange: true, pathCount: 1), plan)
        }
        return nil
    }

    /// The term of entries with many elements.
    private static let several = TermRange(lower: [IndexTerms.Region.several], upper: [IndexTerms.Region.several])

    /// The values of which one must be that of a path; nil if there are no such conditions.
    private static func values(of path: QueryPath, _ conjuncts: [QueryCondition]) -> [QueryValue]? {
        var found: [QueryValue]?
        for case .test(path, let test) in conjuncts {
            let values: [QueryValue]
            switch test {
            case .missing: values = [.missing]
            case .all(let operands) where !operands.scalars.isEmpty: values = [operands.scalars[0]]
            default:
                guard let equal = test.equalValues else { continue }
                values = equal
            }
            if values.count < found?.count ?? .max { found = values }
        }
        return found
    }

    /// The ranges of components in each of which a value of a path must be.
    private static func ranges(of part: QueryOrder.Part, _ conjuncts: [QueryCondition]) -> [TermRange] {
        var ranges: [TermRange] = []
        for case .test(part.path, let test) in conjuncts {
            var range: TermRange
            switch test {
            case .range(let lower, let upper):
                guard let bounds = Self.bounds(lower, upper) else { continue }
                range = bounds
            case .exists: range = TermRange(lower: [2], upper: [7])
            case .prefix(let prefix): range = beginning(prefix)
            case .like(let pattern) where !pattern.fixedPrefix.isEmpty: range = beginning(pattern.fixedPrefix)
            default: continue
            }
            if part.isDescending {
                range = TermRange(lower: range.upper.map { ~$0 }, upper: range.lower.map { ~$0 })
            }
            ranges.append(range)
        }
        return ranges
    }

    private static func beginning(_ prefix: [UInt8]) -> TermRange {
        var term: [UInt8] = [6]
        _ = prefix.withUnsafeBytes { IndexTerms.append($0, to: &term) }
        return TermRange(lower: term, upper: term)
    }

    /// The range of ascending components between two bounds of one type.
    private static func bounds(_ lower: QueryBound?, _ upper: QueryBound?) -> TermRange? {
        guard let types = (lower ?? upper).map({ $0.value.types }) else { return nil }
        func component(_ bound: QueryBound?) -> [UInt8]? {
            guard let value = bound?.value else { return nil }
            var term: [UInt8] = []
            IndexTerms.append(value, descending: false, to: &term)
            return term
        }
        return TermRange(
            lower: component(lower) ?? [types.lowerBound], upper: component(upper) ?? [types.upperBound])
    }

    // MARK: Order

    /// The range of entries without arrays, if it has the order of the rows.
    private static func ordered(
        _ index: Int, _ range: TermRange, _ beginning: [UInt8], _ order: QueryOrder, _ definition: IndexDefinition,
        _ fixed: Set<QueryPath>, _ position: Int, _ query: Query
    ) -> IndexPlan.Ordered? {
        // No index has the order of distances.
        if order.parts.contains(where: { $0.center != nil }) { return nil }
        let rest = definition.order.parts[position...]
        let wanted = order.parts.filter { !fixed.contains($0.path) }
        // Without SORT, rows have the order of the index, unless a previous page had another one.
        if order.parts.isEmpty, query.cursor == nil, definition.kind != .computed {
            return IndexPlan.Ordered(
                index: index, range: range, isBackward: false, partCount: definition.order.parts.count,
                order: QueryOrder(Array(rest)), beginning: beginning, fixed: fixed)
        }
        guard wanted.count <= rest.count, zip(wanted, rest).allSatisfy({ $0.path == $1.path }) else { return nil }
        let turns = zip(wanted, rest).map { $0.isDescending != $1.isDescending }
        guard turns.allSatisfy({ $0 == turns.first }) else { return nil }
        // In the order of the keys only if all terms are equal.
        if wanted.isEmpty, !rest.isEmpty { return nil }
        var ordered = IndexPlan.Ordered(
            index: index, range: range, isBackward: turns.first ?? false, partCount: position + wanted.count,
            order: order, beginning: beginning, fixed: fixed)
        if let last = query.cursor?.last {
            // Begin with the terms of the last row.
            let term = ordered.group(last)
            ordered.range = range.intersection(
                ordered.isBackward ? TermRange(lower: [], upper: term) : TermRange(lower: term, upper: [0xFF]))
        }
        return ordered
    }
}

extension TermRange {
    fileprivate func intersection(_ other: TermRange) -> TermRange {
        let isFirst = (end.map { end in other.end.map { end.lexicographicallyPrecedes($0) } ?? true }) ?? false
        return TermRange(
            lower: lower.lexicographicallyPrecedes(other.lower) ? other.lower : lower,
            upper: isFirst ? upper : other.upper)
    }

    /// Whether the range can contain a term.
    fileprivate var isPossible: Bool { end.map { lower.lexicographicallyPrecedes($0) } ?? true }
}

extension QueryValue {
    /// The components of all values of the same type.
    fileprivate var types: ClosedRange<UInt8> {
        switch self {
        case .missing: 1...1
        case .null: 2...2
        case .no, .yes: 3...4
        case .number: 5...5
        case .text: 6...6
        case .container: 7...7
        }
    }
}

extension QueryKeyRange {
    /// Whether only one key is possible.
    var isSingle: Bool { start.map { $0 + [0] == end } ?? false }
}
