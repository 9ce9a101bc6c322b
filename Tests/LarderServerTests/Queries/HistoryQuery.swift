import LarderTestSupport

/// A random query, and the entries that it must find.
struct HistoryQuery {
    private let condition: OracleCondition?
    private let keyPrefix: String?
    /// Whether an entry must have a deadline; nil if that does not matter.
    private let expires: Bool?
    private let sort: [(path: String, isDescending: Bool)]
    let skip: Int
    let limit: Int?

    static let paths = QueryTree.names + ["a.b", "a.0", "b.c.a"]

    init(_ random: inout SeededGenerator) {
        // Half of the conditions are single tests, which an index can support.
        condition = random.oneIn(8) ? nil : .random(&random, depth: random.oneIn(2) ? 2 : 4)
        keyPrefix = random.oneIn(5) ? "k1" : nil
        expires = random.oneIn(12) ? random.oneIn(2) : nil
        let paths = (random.oneIn(3) ? ["@key", "@stored", "@expires"] : Self.paths).shuffled(using: &random)
        sort = paths.prefix([0, 0, 1, 1, 1, 2][random.below(6)]).map { ($0, random.oneIn(2)) }
        skip = random.oneIn(4) ? random.below(12) : 0
        limit = random.oneIn(2) ? 1 + random.below(20) : nil
    }

    var isSorted: Bool { !sort.isEmpty }

    /// The words of the condition.
    var whereWords: [String] {
        var parts = condition.map { [["("] + $0.words + [")"]] } ?? []
        if let keyPrefix { parts.append(["@key", "PREFIX", keyPrefix]) }
        if let expires { parts.append(["@expires", expires ? "EXISTS" : "MISSING"]) }
        return parts.isEmpty ? [] : ["WHERE"] + parts.joined(separator: ["AND"])
    }

    /// The words of the condition and the order.
    var words: [String] {
        whereWords + (sort.isEmpty ? [] : ["SORT"] + sort.flatMap { $0.isDescending ? [$0.path, "DESC"] : [$0.path] })
    }

    /// The words of one page.
    var pageWords: [String] {
        words + (skip > 0 ? ["SKIP", "\(skip)"] : []) + (limit.map { ["LIMIT", "\($0)"] } ?? [])
    }

    /// The entries that match, in the order of the query; without one, in the order of the keys.
    func matches(in model: QueryModel, _ number: Int) -> [QueryModel.Found] {
        let found = model.databases[number].compactMap { key, entry -> (row: QueryModel.Found, values: [QueryTree?])? in
            guard let tree = entry.tree, condition?.holds(tree, key) ?? true, key.hasPrefix(keyPrefix ?? "") else {
                return nil
            }
            let deadline = model.deadline(entry, number)
            if let expires, (deadline != nil) != expires { return nil }
            let values = sort.map { part -> QueryTree? in
                switch part.path {
                case "@key": .text(key)
                case "@stored": .integer(Int(entry.stored))
                case "@expires": deadline.map { .integer(Int($0)) }
                default: QueryTree.sortValue(tree[part.path], descending: part.isDescending)
                }
            }
            return (row: (key: key, entry: entry), values: values)
        }
        return found.sorted { left, right in
            for (index, part) in sort.enumerated() {
                let order = QueryTree.order(left.values[index], right.values[index])
                if order != 0 { return (order < 0) != part.isDescending }
            }
            return left.row.key.utf8.lexicographicallyPrecedes(right.row.key.utf8)
        }.map(\.row)
    }

    /// The part of the matches that a page returns.
    func page(_ matches: [QueryModel.Found]) -> [QueryModel.Found] {
        Array(matches.dropFirst(skip).prefix(limit ?? 1000))
    }
}

/// The entries that two databases must have.
struct QueryModel {
    struct Entry {
        let text: String
        /// Nil if the text is not JSON.
        let tree: QueryTree?
        let stored: Int64
        var life = Life.policy
        var tags: Set<String> = []
    }

    enum Life {
        case policy, forever
        case until(Int64)
    }

    typealias Found = (key: String, entry: Entry)

    var databases: [[String: Entry]] = [[:], [:]]
    /// The interval of the policy of the first database; nil for never. The second one has the policy never.
    private var interval: Int64?

    func deadline(_ entry: Entry, _ number: Int) -> Int64? {
        switch entry.life {
        case .policy: number == 0 ? interval.map { entry.stored + $0 } : nil
        case .forever: nil
        case .until(let deadline): deadline
        }
    }

    /// Removes the entries that have expired.
    /// - Returns: how many there were.
    mutating func expire(_ now: Int64) -> Int {
        let before = databases[0].count + databases[1].count
        for number in 0...1 {
            databases[number] = databases[number].filter { _, entry in
                deadline(entry, number).map { now < $0 } ?? true
            }
        }
        return before - databases[0].count - databases[1].count
    }

    /// Changes the policy. Entries that have expired were removed before.
    mutating func setPolicy(interval: Int64?) { self.interval = interval }
}
