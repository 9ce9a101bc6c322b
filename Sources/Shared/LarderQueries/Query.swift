import LarderJSONCoding
import LarderPlatform
import LarderVocabulary

/// What a query asks for.
package struct Query: Hashable, Sendable {
    package enum Output: Hashable, Sendable {
        /// Keys and texts.
        case rows
        case keys
        case count
        case select([QueryPath])
        case groups(QueryPath, [Aggregate])
    }

    /// A value of a group.
    package struct Aggregate: Hashable, Sendable {
        package enum Function: String, CaseIterable, Sendable {
            case count = "COUNT"
            case sum = "SUM"
            case min = "MIN"
            case max = "MAX"
        }

        package let function: Function
        /// Nil for the number of entries.
        package let path: QueryPath?

        fileprivate var text: String { path.map { "\(function.rawValue) \($0.text)" } ?? function.rawValue }
    }

    package var output = Output.rows
    package var condition: QueryCondition?
    package var order = QueryOrder()
    package var skip = 0
    /// Nil: all for COUNT and GROUP, ``rowsWithoutLimit`` otherwise.
    package var limit: Int?
    package var cursor: QueryCursor?
    /// Whether the query may examine any number of entries without an index.
    package var scans = false

    /// How many rows a query without LIMIT returns.
    package static let rowsWithoutLimit = 1000
    private static let outputs = ["KEYS", "COUNT", "SELECT", "GROUP"]
    package static let skipMax = 10_000
    /// The maximum of LIMIT, because rows are kept in memory until all are found.
    package static let limitMax = 100_000

    package init() {}

    /// Parses the words after QUERY.
    /// - Parameter allowsComputed: whether conditions may be on computed indexes. They only find candidates: evaluate
    ///   them on the models of the rows.
    package init(_ words: [[UInt8]], allowsComputed: Bool = false) throws(QueryError) {
        var places: [String: Range<Int>] = [:]
        try self.init(words, allowsComputed, &places)
    }

    /// - Parameter places: becomes the places of the clauses in `words`.
    private init(_ words: [[UInt8]], _ allowsComputed: Bool, _ places: inout [String: Range<Int>]) throws(QueryError) {
        var words = QueryWords(words, allowsComputed: allowsComputed)
        try readOutput(&words)
        var cursor: [UInt8]?
        while !words.isAtEnd {
            let start = words.position
            let clause = words.keyword
            if Self.outputs.contains(clause) {
                throw QueryError("\(clause) is only possible as the first word of a query")
            }
            guard QueryWords.clauses.contains(clause), words.take(clause) else {
                let functions: [Aggregate.Function] =
                    if case .groups = output, places.isEmpty { Aggregate.Function.allCases } else { [] }
                let connectives = condition != nil && places.count == 1 ? ["AND", "OR"] : []
                let clauses = QueryWords.clauses.filter { places[$0] == nil }
                let possible = (start == 0 ? Self.outputs : []) + functions.map(\.rawValue) + connectives + clauses
                let expected = possible.dropLast().joined(separator: ", ") + " or " + (possible.last ?? "")
                throw words.unexpected(expected, possible)
            }
            guard places[clause] == nil else { throw QueryError("\(clause) is repeated") }
            switch clause {
            case "WHERE": condition = try words.condition()
            case "SORT": order = try words.order(until: QueryWords.clauses)
            case "SKIP": skip = try words.count("SKIP")
            case "LIMIT": limit = try words.count("LIMIT")
            case "AFTER": cursor = try words.next("the cursor after AFTER")
            default: scans = true
            }
            places[clause] = start..<words.position
        }
        setDefaultOrder()
        if let cursor { self.cursor = try QueryCursor(cursor, of: self) }
        try check()
    }

    /// Returns the words of a query for the page after a cursor: without SKIP, which the first page has applied.
    /// - Parameter words: the words after QUERY, of any page.
    package static func words(_ words: [[UInt8]], after cursor: [UInt8]) -> [[UInt8]] {
        var places: [String: Range<Int>] = [:]
        _ = try? Query(words, false, &places)
        let replaced = [places["SKIP"], places["AFTER"]].compactMap(\.self).sorted { $0.lowerBound > $1.lowerBound }
        var rest = words
        for place in replaced { rest.removeSubrange(place) }
        return rest + [Array("AFTER".utf8), cursor]
    }

    /// Without SORT, rows of NEAR have the order of their distances.
    private mutating func setDefaultOrder() {
        guard order.parts.isEmpty, output != .count else { return }
        if case .groups = output { return }
        if let distance { order = QueryOrder([distance]) }
    }

    /// The distance of the first NEAR that all matches pass; nil if there is none.
    private var distance: QueryOrder.Part? {
        for case .test(let path, .near(let center, _)) in condition?.conjuncts ?? [] where path.root == .document {
            return QueryOrder.Part(path, distanceTo: center)
        }
        return nil
    }

    /// The JSON of the paths of SELECT, nil for missing values.
    package func values(of paths: [QueryPath], _ document: borrowing JSONDocument, _ facts: QueryFacts) -> [[UInt8]?] {
        var values: [[UInt8]?] = []
        for path in paths {
            let isDistance = path.root == .distance
            values.append(
                isDistance ? distance?.withValue(document, facts) { $0.value.json } : path.json(document, facts))
        }
        return values
    }

    private mutating func readOutput(_ words: inout QueryWords) throws(QueryError) {
        if words.take("KEYS") {
            output = .keys
        } else if words.take("COUNT") {
            output = .count
        } else if words.take("SELECT") {
            let count = try words.count("the number of paths after SELECT")
            guard count > 0 else { throw QueryError("SELECT needs at least one path") }
            var paths: [QueryPath] = []
            var seen: Set<QueryPath> = []
            while paths.count < count {
                let path = try words.take("@distance") ? .distance : words.path()
                guard seen.insert(path).inserted else { throw QueryError("the path '\(path.text)' is repeated") }
                paths.append(path)
            }
            output = .select(paths)
        } else if words.take("GROUP") {
            let path = try words.path()
            var aggregates: [Aggregate] = []
            var seen: Set<Aggregate> = []
            while let function = Aggregate.Function(rawValue: words.keyword), words.take(function.rawValue) {
                let aggregate = Aggregate(function: function, path: try function == .count ? nil : words.path())
                guard seen.insert(aggregate).inserted else { throw QueryError("\(aggregate.text) is repeated") }
                aggregates.append(aggregate)
            }
            output = .groups(path, aggregates)
        }
    }

    private func check() throws(QueryError) {
        if skip > Self.skipMax {
            throw QueryError("SKIP is at most \(Self.skipMax); use AFTER with the cursor of the previous page")
        }
        if let limit, limit > Self.limitMax, output != .count {
            throw QueryError("LIMIT is at most \(Self.limitMax); use AFTER with the cursor of the previous page")
        }
        switch output {
        case .count:
            if cursor != nil { throw QueryError("COUNT takes no AFTER") }
        case .groups(let path, _):
            if cursor != nil { throw QueryError("GROUP takes no AFTER; use SKIP and LIMIT, which count groups") }
            if !order.parts.isEmpty, order.parts.map(\.path) != [path] {
                throw QueryError("GROUP returns groups in their order, so SORT takes only the path of GROUP")
            }
        case .select(let paths):
            if distance == nil, paths.contains(.distance) {
                throw QueryError("@distance is that of NEAR, which the condition must have outside of NOT and OR")
            }
        default: break
        }
    }

    /// The headings of the result's columns.
    package var columns: [String] {
        switch output {
        case .rows: ["KEY", "VALUE"]
        case .keys: ["KEY"]
        case .count: ["COUNT"]
        case .select(let paths): ["KEY"] + paths.map(\.text)
        case .groups(let path, let aggregates): [path.text] + aggregates.map(\.text)
        }
    }

    package var rowsMax: Int { limit ?? Self.rowsWithoutLimit }

    /// The order of the rows. A page after the first one has the order of the previous page.
    package var rowOrder: QueryOrder { cursor?.order ?? order }

    /// All paths that the query reads, each once, to report misspelt ones.
    package var paths: [QueryPath] {
        var paths = (condition?.tests ?? []).map(\.path) + order.parts.map(\.path)
        switch output {
        case .select(let selected): paths += selected
        case .groups(let path, let aggregates): paths += [path] + aggregates.compactMap(\.path)
        default: break
        }
        return paths.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }
}

package struct QueryResult: Sendable {
    package struct Row: Sendable {
        package let key: [UInt8]
        /// The text of the entry, or the JSON of the selected paths; nothing for KEYS.
        package let values: [[UInt8]?]

        package init(key: [UInt8], values: [[UInt8]?]) { (self.key, self.values) = (key, values) }
    }

    package var rows: [Row] = []
    /// The cursor of the next page; nil if this is the last one.
    package var cursor: [UInt8]?
    /// The number of matching entries, for COUNT.
    package var count = 0
    package var groups: [(json: [UInt8], values: [QueryGroups.Value])] = []
    /// Sentences about fields that no entry has.
    package var warnings: [String] = []
    /// How the query was run, in sentences; only if that was requested.
    package var explanation: [String] = []

    package init() {}
}

/// Compute the values of an entry with a text, by the paths of computed indexes.
package typealias ComputedValues = [QueryPath: @Sendable (UnsafeRawBufferPointer) -> [JSONText]]

/// The order of rows: by the values of paths, then by key.
package struct QueryOrder: Hashable, Sendable {
    package struct Part: Hashable, Sendable {
        package let path: QueryPath
        package let isDescending: Bool
        /// If not nil, rows are sorted by their distance to this place.
        package let center: QueryPlace?

        package init(_ path: QueryPath, isDescending: Bool) {
            (self.path, self.isDescending, center) = (path, isDescending, nil)
        }

        package init(_ path: QueryPath, distanceTo center: QueryPlace) {
            (self.path, isDescending, self.center) = (path, false, center)
        }

        /// Passes the value that an entry is sorted by to `body`, without a copy.
        func withValue<Result>(
            _ document: borrowing JSONDocument, _ facts: QueryFacts, _ body: (ValueView) -> Result
        ) -> Result {
            guard let center else { return path.withSortValue(document, facts, descending: isDescending, body) }
            let distance = path.find(in: document).flatMap { center.distance(toNearestOf: document, $0) }
            return body(distance.map { .number(QueryNumber($0)) } ?? .missing)
        }

        fileprivate var text: String {
            let word = QueryPath.word(path.text)
            return center == nil ? isDescending ? "\(word) DESC" : word : "the distance of \(word)"
        }
    }

    package var parts: [Part] = []
    /// The maximum number of paths of SORT, and of an index.
    package static let partsMax = 8

    package init(_ parts: [Part] = []) { self.parts = parts }

    /// The order of the keys, which no index changes.
    package static let byKey = QueryOrder([Part(.key, isDescending: false)])
    /// Whether this is the order of the keys, or no order was requested.
    package var isOfKeys: Bool { parts.first.map { $0.path.root == .key && !$0.isDescending } ?? true }

    package func values(_ document: borrowing JSONDocument, _ facts: QueryFacts) -> [QueryValue] {
        parts.map { $0.withValue(document, facts) { $0.value } }
    }

    /// Whether a computed index determines the order. Entries without computed values are then not in the result.
    var isComputed: Bool { parts.contains { $0.path.root == .computed } }

    /// Like `values(_:_:)`, for an order that may be computed from the text of the entry; nil if it has no such value.
    package func values(
        _ document: borrowing JSONDocument, _ facts: QueryFacts, _ text: UnsafeRawBufferPointer,
        _ computed: ComputedValues
    ) -> [QueryValue]? {
        var values: [QueryValue] = []
        for part in parts {
            guard part.path.root == .computed else {
                values.append(part.withValue(document, facts) { $0.value })
                continue
            }
            var best: QueryValue?
            for json in computed[part.path]?(text) ?? [] {
                guard let value = json.bytes.withUnsafeBytes({ JSONDocument($0)?.value(JSONDocument.root) }) else {
                    continue
                }
                if best.map({ (value.order($0) < 0) != part.isDescending }) ?? true { best = value }
            }
            guard let best else { return nil }
            values.append(best)
        }
        return values
    }

    /// The paths, as in SORT.
    package var text: String { parts.map(\.text).joined(separator: " ") }

    func follows(_ row: QueryPosition, _ document: borrowing JSONDocument, _ facts: QueryFacts) -> Bool {
        for (index, part) in parts.enumerated() {
            let order = part.withValue(document, facts) { view in
                row.values[index].withView { view.order($0) }
            }
            if order != 0 { return (order > 0) != part.isDescending }
        }
        return row.key.withUnsafeBytes { ByteOrder.compare(facts.key, $0) } > 0
    }

    /// Whether a row precedes another one.
    package func precedes(_ left: QueryPosition, _ right: QueryPosition) -> Bool {
        for (index, part) in parts.enumerated() {
            let order = left.values[index].order(right.values[index])
            if order != 0 { return (order < 0) != part.isDescending }
        }
        return left.key.withUnsafeBytes { left in right.key.withUnsafeBytes { ByteOrder.compare(left, $0) } } < 0
    }
}

/// The position of a row in the result: its values in the order of the query, and its key.
package struct QueryPosition: Hashable, Sendable {
    package let values: [QueryValue]
    package let key: [UInt8]

    package init(values: [QueryValue], key: [UInt8]) { (self.values, self.key) = (values, key) }
}

extension QueryWords {
    /// Words that are probably not meant as fields.
    static let misplaced = ["ASC", "ASCENDING", "DESCENDING", "BY", "PREFIX", "GEO", "ON", "KEYS", "SELECT", "GROUP"]

    /// Reads `path [DESC] [path [DESC] …]` until a keyword or the end.
    mutating func order(until keywords: [String]) throws(QueryError) -> QueryOrder {
        var parts: [QueryOrder.Part] = []
        while parts.isEmpty || !isAtEnd, !keywords.contains(keyword) {
            guard parts.count < QueryOrder.partsMax else {
                throw QueryError("at most \(QueryOrder.partsMax) paths are possible")
            }
            if keyword == "BY" || !parts.isEmpty && Self.misplaced.contains(keyword) {
                let place = parts.isEmpty ? "before" : "after"
                let advice = keyword.hasPrefix("ASC") ? ": ascending is the default" : ""
                throw QueryError(
                    "\(keyword) is out of place \(place) a path\(keyword == "DESCENDING" ? ": use DESC" : advice); "
                        + "a field of that name is $.\(keyword.lowercased())")
            }
            let path = try path()
            if parts.contains(where: { $0.path == path }) { throw QueryError("the path '\(path.text)' is repeated") }
            parts.append(QueryOrder.Part(path, isDescending: take("DESC")))
        }
        guard !parts.isEmpty else { throw unexpected("a path") }
        return QueryOrder(parts)
    }
}
