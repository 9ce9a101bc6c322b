/// The keys that can match a query.
package struct QueryKeyRange: Equatable, Sendable {
    /// All keys begin with these bytes.
    package private(set) var prefix: [UInt8] = []
    /// The smallest key; nil for no limit.
    package private(set) var start: [UInt8]?
    /// Greater than all keys; nil for no limit.
    package private(set) var end: [UInt8]?

    fileprivate mutating func narrow(prefix other: [UInt8]) {
        // If neither is the beginning of the other one, no key matches, whichever is used.
        if other.count > prefix.count { prefix = other }
    }

    fileprivate mutating func narrow(start other: [UInt8]) {
        if start?.lexicographicallyPrecedes(other) ?? true { start = other }
    }

    fileprivate mutating func dropStartBeforePrefix() {
        if start?.lexicographicallyPrecedes(prefix) ?? false { start = nil }
    }

    fileprivate mutating func narrow(end other: [UInt8]) {
        if end.map({ other.lexicographicallyPrecedes($0) }) ?? true { end = other }
    }
}

extension QueryCondition {
    /// The conditions of which all must hold.
    package var conjuncts: [QueryCondition] {
        if case .and(let conditions) = self { conditions.flatMap(\.conjuncts) } else { [self] }
    }
}

extension Query {
    /// A path with values, of which each match has one; nil if the condition demands none.
    package var equality: (path: QueryPath, values: [QueryValue])? {
        for case .test(let path, let test) in condition?.conjuncts ?? [] {
            if let values = test.equalValues { return (path, values) }
        }
        return nil
    }

    /// The keys that can match, by the conditions on `@key`.
    package var keyRange: QueryKeyRange {
        var range = QueryKeyRange()
        for case .test(let path, let test) in condition?.conjuncts ?? [] where path.root == .key {
            switch test {
            case .equal(.scalar(.text(let key))):
                range.narrow(start: key)
                range.narrow(end: key + [0])
            case .prefix(let prefix): range.narrow(prefix: prefix)
            case .like(let pattern): range.narrow(prefix: pattern.fixedPrefix)
            case .range(let lower, let upper):
                if case .text(let key)? = lower?.value { range.narrow(start: key) }
                if let upper, case .text(let key) = upper.value {
                    range.narrow(end: upper.isInclusive ? key + [0] : key)
                }
            default: break
            }
        }
        range.dropStartBeforePrefix()
        return range
    }

    /// An index for this query: with the paths of equalities, then one of a range, then those of SORT. Nil if no index
    /// can help.
    /// - Parameter inSwift: whether to return a declaration in Swift instead of a command.
    package func suggestedIndex(inSwift: Bool = false) -> String? {
        if let path = paths.first(where: { $0.root == .computed }) { return "Index(…) of '\(path.text)'" }
        var (equal, ranges, places): ([String], [String], [String]) = ([], [], [])
        for case .test(let path, let test) in condition?.conjuncts ?? [] {
            guard path.root == .document else { continue }
            switch test {
            case .equal(.scalar), .oneOf, .all: equal.append(path.text)
            case .range, .prefix, .exists: ranges.append(path.text)
            case .like(let pattern): if !pattern.fixedPrefix.isEmpty { ranges.append(path.text) }
            case .near, .within: places.append(path.text)
            default: break
            }
        }
        if equal.isEmpty, let place = places.first {
            return inSwift ? "Index(geo: \\Model.\(place))" : Self.command(named: place, "GEO ON \(place)")
        }
        var parts: [(path: String, isDescending: Bool)] = []
        for path in equal where !parts.contains(where: { $0.path == path }) { parts.append((path, false)) }
        let sorted = order.parts.filter { $0.path.root == .document && $0.center == nil }
        let sort = sorted.map { ($0.path.text, $0.isDescending) }
        for (path, isDescending) in ranges.prefix(1).map({ ($0, false) }) + sort
        where !parts.contains(where: { $0.path == path }) {
            parts.append((path, isDescending))
        }
        guard !parts.isEmpty else { return nil }
        if inSwift {
            let paths = parts.prefix(QueryOrder.partsMax).enumerated().map { number, part in
                let property = "\\Model.\(part.path)"
                return part.isDescending
                    ? ".descending(\(property))" : number == 0 ? property : ".ascending(\(property))"
            }
            return "Index(\(paths.joined(separator: ", ")))"
        }
        let paths = parts.prefix(QueryOrder.partsMax).map { $0.isDescending ? "\($0.path) DESC" : $0.path }
        return Self.command(named: parts[0].path, "ON \(paths.joined(separator: " "))")
    }

    private static func command(named path: String, _ words: String) -> String {
        let letters = path.utf8.filter { $0 < 0x80 && Character(UnicodeScalar($0)).isLetter }
        return "INDEX CREATE by-\(String(decoding: letters, as: UTF8.self)) \(words)"
    }
}
