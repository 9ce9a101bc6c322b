import LarderClient
import LarderQueries
import LarderRESP

/// Runs queries, and lists the indexes, for the pages. Changes nothing.
struct QueryBrowser: Sendable {
    private let link: DaemonLink

    init(_ link: DaemonLink) { self.link = link }

    /// The number of rows or groups in a response without LIMIT, and the maximum of LIMIT.
    private static let rowsWithoutLimit = 100
    private static let rowsMax = 1_000
    private static let valueBytesMax = 4_096

    /// Handles `/api/query`, with `database`, `query` (the words after QUERY, with quotes as in larderctl's shell) and
    /// `after` (the cursor of the previous page). The response has `columns`, `rows` with `values` and, except for
    /// groups, a `key`, and `next`, the cursor of the next page. Values are cut after 4,096 bytes, and null if missing.
    func page(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        let (asked, query) = try Self.query(request)
        var words = request.bytes("after").map { Query.words(asked, after: $0) } ?? asked
        // Request only the keys of whole values, and then the beginning of each value, because it may be long.
        if query.output == .rows { words.insert(Array("KEYS".utf8), at: 0) }
        return try link.withClient(in: request.database) { client throws(LarderClientError) in
            let reply = try client.command(bytes: wordList("QUERY") + words).checked("QUERY")
            guard let parts = reply.elements else { return Self.response(query, [["values": [Self.text(reply)]]]) }
            if case .groups = query.output {
                return Self.response(query, parts.map { ["values": ($0.elements ?? []).map(Self.text)] })
            }
            guard parts.count == 2, let found = parts[1].elements else {
                throw .unexpectedReply(to: "QUERY", "a cursor with rows")
            }
            let keys = found.map { $0.bytes ?? $0.elements?.first?.bytes ?? [] }
            var values = found.map { $0.elements?.last?.elements ?? [] }
            if query.output == .rows, !keys.isEmpty {
                let end = wordList("0", "\(Self.valueBytesMax)")
                values = try client.pipeline(keys.map { wordList("GETRANGE") + [$0] + end }).map { [$0] }
            }
            let rows = zip(keys, values).map { key, values -> JSONObject in
                ["key": EntryBrowser.report(key: key), "values": values.map(Self.text)]
            }
            return Self.response(query, rows, next: parts[0].string)
        }
    }

    private static func response(_ query: Query, _ rows: [JSONObject], next: String? = nil) -> HTTPResponse {
        .json(["columns": query.columns, "rows": rows, "next": next])
    }

    /// Handles `/api/explain`, with `database` and `query`. The response has lines of text.
    func explanation(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        let words = try wordList("EXPLAIN", "QUERY") + Self.query(request).words
        return try link.withClient(in: request.database) { client throws(LarderClientError) in
            .json(["text": try client.command(bytes: words).checked("QUERY").string])
        }
    }

    /// Handles `/api/indexes`, with `database`. The response is an array of the maps of INDEX.
    func indexes(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        let reply = try link.withClient(in: request.database) { client throws(LarderClientError) in
            try client.command("INDEX").checked("INDEX")
        }
        return .json(
            (reply.elements ?? []).map { index -> JSONObject in
                [
                    "name": index.field("name")?.string, "paths": index.field("paths")?.elements?.compactMap(\.string),
                    "prefix": EntryBrowser.report(key: index.field("prefix")?.bytes ?? []),
                    "state": index.field("state")?.string, "percent": index.field("percent")?.int,
                    "entries": index.field("entries")?.int, "stale": index.field("stale")?.int,
                ]
            })
    }

    /// Returns the request's query. Only a query that can be parsed is sent, so that no other command can be, such as
    /// QUERY LIVE.
    private static func query(_ request: HTTPRequest) throws(LarderClientError) -> (words: [[UInt8]], query: Query) {
        guard let words = InlineWords.words(of: request.bytes("query") ?? []) else {
            throw LarderClientError(.invalidArgument, "unbalanced quotes", operation: "QUERY")
        }
        let query: Query
        do throws(QueryError) { query = try Query(words) } catch {
            throw LarderClientError(.invalidArgument, "ERR \(error.text)", operation: "QUERY")
        }
        guard query.output != .count else { return (words, query) }
        guard let limit = query.limit else { return (words + wordList("LIMIT", "\(rowsWithoutLimit)"), query) }
        guard limit <= rowsMax else {
            throw LarderClientError(.invalidArgument, "LIMIT is at most \(rowsMax) here", operation: "QUERY")
        }
        return (words, query)
    }

    /// Returns a value as text; nil if it is missing. No stored JSON is empty.
    private static func text(_ value: RESPValue) -> String? {
        if case .integer(let number) = value { return "\(number)" }
        guard let bytes = value.bytes, !bytes.isEmpty else { return nil }
        let text = String(decoding: bytes.prefix(valueBytesMax), as: UTF8.self)
        return bytes.count > valueBytesMax ? text + "…" : text
    }
}
