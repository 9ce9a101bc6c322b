import LarderJSONCoding
import LarderQueries

/// Runs queries on documents in memory, as the daemon does without an index.
enum QueryRun {
    struct Entry {
        let key: String
        let text: String
        var stored: Int64 = 0
        var expires: Int64?
    }

    static func words(_ words: [String]) -> [[UInt8]] { words.map { Array($0.utf8) } }

    static func matches(_ condition: String..., in text: String) throws -> Bool {
        try matches(condition, Entry(key: "k", text: text))
    }

    static func matches(_ condition: [String], _ entry: Entry) throws -> Bool {
        let query = try Query(words(["WHERE"] + condition))
        return try with(entry) { document, facts in query.condition?.evaluator(document, facts) ?? true }
    }

    static func with<Result>(
        _ entry: Entry, _ body: (borrowing JSONDocument, QueryFacts) throws -> Result
    ) throws -> Result {
        try Array(entry.text.utf8).withUnsafeBytes { text in
            try Array(entry.key.utf8).withUnsafeBytes { key in
                let document = try JSONDocument(parsing: text)
                return try body(document, QueryFacts(key: key, stored: entry.stored, expires: entry.expires))
            }
        }
    }

    /// The keys of one page, in order, and the cursor of the next page.
    static func keys(_ words: [String], _ entries: [Entry]) throws -> (keys: [String], cursor: String?) {
        let query = try Query(Self.words(words))
        var rows = QueryRows(query.rowOrder, capacity: query.skip + query.rowsMax)
        for entry in entries {
            try with(entry) { document, facts in
                guard query.condition?.evaluator(document, facts) ?? true else { return }
                if rows.leavesOut(document, facts) { return }
                let position = QueryPosition(
                    values: query.rowOrder.values(document, facts), key: Array(entry.key.utf8))
                if let cursor = query.cursor, !query.rowOrder.precedes(cursor.last, position) { return }
                if rows.keeps(position) { rows.add(position, [], expires: nil) }
            }
        }
        let found = rows.sorted().dropFirst(query.skip)
        let last = rows.isCut ? found.last : nil
        let cursor = last.map { QueryCursor(order: query.rowOrder, last: $0.position).text(of: query) }
        let keys = found.map { String(decoding: $0.position.key, as: UTF8.self) }
        return (keys, cursor.map { String(decoding: $0, as: UTF8.self) })
    }

    /// The groups of a query: JSON and values, as text.
    static func groups(_ words: [String], _ entries: [Entry]) throws -> [[String]] {
        let query = try Query(Self.words(words))
        guard case .groups(let path, let aggregates) = query.output else { return [] }
        var groups = QueryGroups(path, aggregates, isDescending: query.order.parts.first?.isDescending ?? false)
        for entry in entries {
            try with(entry) { document, facts in
                if query.condition?.evaluator(document, facts) ?? true { try groups.add(document, facts) }
            }
        }
        return groups.sorted().map { json, values in
            [String(decoding: json, as: UTF8.self)]
                + values.map { value in
                    switch value {
                    case .count(let count): "\(count)"
                    case .json(let text): String(decoding: text, as: UTF8.self)
                    }
                }
        }
    }
}
