// QUERY, EXPLAIN and INDEX, for the queries of both clients.

import LarderModelQueries
import LarderQueries
import LarderRESP

extension Request where Result == QueryResult {
    /// Runs a query, or returns how it is run.
    /// - Parameter words: the words after QUERY.
    /// - Throws: `invalidArgument` for more words than the daemon accepts.
    static func query(_ words: [[UInt8]], explains: Bool = false) throws(LarderClientError) -> Request {
        let most = RESPLimits().argumentsMax - 2
        if words.count > most {
            let text =
                "the query has \((words.count - most + 1) / 2) values too many for one request, which can have about "
                + "\(most / 2): split them among several queries"
            throw LarderClientError(.invalidArgument, text, operation: "QUERY")
        }
        guard !explains else {
            return Request(wordList("EXPLAIN", "QUERY") + words, isRead: true, expects: "text") { reply in
                guard let text = reply.string else { return nil }
                var result = QueryResult()
                result.explanation = text.split(separator: "\n").map(String.init)
                return result
            }
        }
        let output = words.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        return Request(wordList("QUERY") + words, isRead: true, expects: "the result of a query") { reply in
            switch output {
            case "COUNT": QueryResult(count: reply)
            case "GROUP": QueryResult(groups: reply)
            default: QueryResult(page: reply)
            }
        }
    }
}

extension QueryResult {
    fileprivate init?(count reply: RESPValue) {
        guard let count = reply.int else { return nil }
        self.init()
        self.count = Int(clamping: count)
    }

    fileprivate init?(groups reply: RESPValue) {
        guard let groups = reply.elements else { return nil }
        self.init()
        for group in groups {
            guard let values = group.elements, let json = values.first?.bytes else { return nil }
            self.groups.append((json, values.dropFirst().map(QueryGroups.Value.init)))
        }
    }

    /// A cursor or null, and rows: a key, a key and a text, or a key and an array of texts.
    fileprivate init?(page reply: RESPValue) {
        guard let parts = reply.elements, parts.count == 2, let rows = parts[1].elements else { return nil }
        self.init()
        cursor = parts[0].bytes
        for row in rows {
            if let key = row.bytes {
                self.rows.append(Row(key: key, values: []))
            } else if let fields = row.elements, fields.count == 2, let key = fields[0].bytes {
                self.rows.append(Row(key: key, values: fields[1].elements?.map(\.bytes) ?? [fields[1].bytes]))
            } else {
                return nil
            }
        }
    }
}

extension QueryGroups.Value {
    fileprivate init(_ reply: RESPValue) {
        if case .integer(let count) = reply {
            self = .count(Int(clamping: count))
        } else {
            self = .json(reply.bytes ?? Array("null".utf8))
        }
    }
}

extension QueryRunner where Failure == LarderClientError {
    init(_ codec: ModelCodec, database: String) {
        self.init(codec) { problem in
            switch problem {
            case .invalid(let text):
                LarderClientError(.invalidArgument, text, operation: "QUERY", database: database)
            case .undecodable(let type, let key, let error):
                LarderClientError(
                    .decode, "the value, stored as JSON, cannot be read as \(type): \(CodingProblem.decoding(error))",
                    operation: "QUERY", database: database, key: printableKey(key),
                    underlying: CodingProblem.underlying(error))
            case .group(let error, let text):
                LarderClientError(
                    .decode, text, operation: "QUERY", database: database, underlying: CodingProblem.underlying(error))
            case .filter(let key, let error):
                LarderClientError(
                    .filterFailed, "the filter threw \(type(of: error))", operation: "QUERY", database: database,
                    key: printableKey(key), underlying: error)
            }
        }
    }
}

extension Request where Result == Bool {
    /// The requests that remove the entries of rows whose texts have not changed.
    static func removals(_ rows: [QueryResult.Row]) -> [Request] {
        rows.compactMap { row in (row.values.first ?? nil).map { .remove(row.key, ifEqual: $0) } }
    }
}

package struct ListedIndex: Hashable, Sendable {
    package let name: String
    package let prefix: [UInt8]
    /// The paths with ` DESC` or ` GEO` after them. Empty if the daemon does not know the kind of the index.
    package let paths: [String]
    /// Whether INDEX CREATE can make the index: only programs have the closures of computed ones.
    package var isCreatable: Bool { !paths.isEmpty && !paths[0].hasPrefix("@computed ") }

    package init(name: String, prefix: [UInt8], paths: [String]) {
        (self.name, self.prefix, self.paths) = (name, prefix, paths)
    }

    fileprivate init?(_ reply: RESPValue) {
        guard let name = reply.field("name")?.string, let paths = reply.field("paths")?.elements else { return nil }
        self.init(name: name, prefix: reply.field("prefix")?.bytes ?? [], paths: paths.compactMap(\.string))
    }

    /// The command that creates the index.
    var words: [[UInt8]] {
        let isOfPlaces = paths.first?.hasSuffix(" GEO") ?? false
        let parts = paths.map { path in
            let isDescending = path.hasSuffix(" DESC")
            return (path: String(path.dropLast(isOfPlaces ? 4 : isDescending ? 5 : 0)), isDescending: isDescending)
        }
        return wordList("INDEX", "CREATE", name)
            + IndexDefinition.words(prefix: prefix, isOfPlaces: isOfPlaces, parts)
    }
}

extension Request where Result == [ListedIndex] {
    static var indexes: Request {
        Request(wordList("INDEX"), isRead: true, expects: "a list of indexes") { reply in
            reply.elements?.compactMap(ListedIndex.init)
        }
    }
}

extension LarderClientError {
    /// Whether another process has dropped the index before.
    var isOfMissingIndex: Bool { code == .server && message.contains("there is no index") }
}

extension Request where Result == Void {
    static func drop(index name: String) -> Request { .expectingOK(wordList("INDEX", "DROP", name)) }

    static func drops(_ indexes: [ListedIndex], except kept: [Index]) -> [Request] {
        let kept = Set(kept.map(\.name))
        return indexes.filter { !kept.contains($0.name) }.map { drop(index: $0.name) }
    }

    /// The requests that drop the created indexes, if one of them could not be created.
    /// - Parameter replies: those to the requests of ``create(_:_:_:known:)``.
    static func undo(_ requests: [Request], _ replies: [Swift.Result<Void, LarderClientError>]) -> [Request] {
        zip(requests, replies).compactMap { request, reply in
            guard case .success = reply else { return nil }
            return drop(index: String(decoding: request.words[2], as: UTF8.self))
        }
    }

    /// The requests that create indexes, unless they are known.
    /// - Throws: `invalidArgument` for an invalid index.
    static func create(
        _ indexes: [Index], _ codec: ModelCodec, _ database: String, known: [ListedIndex]
    ) throws(LarderClientError) -> [Request] {
        do throws(QueryError) {
            for (index, definition) in try Index.definitions(indexes, codec) {
                guard definition.kind == .computed else { continue }
                throw QueryError(
                    "only the library can compute the index '\(index.name)': store its values as a property, and "
                        + "declare an index of that")
            }
        } catch {
            throw LarderClientError(.invalidArgument, error.text, operation: "INDEX", database: database)
        }
        let new = indexes.filter { index in !known.contains { $0.name == index.name } }
        return new.map { .expectingOK(wordList("INDEX", "CREATE", $0.name) + $0.words) }
    }
}

extension [Swift.Result<Void, LarderClientError>] {
    var failure: LarderClientError? {
        for case .failure(let error) in self { return error }
        return nil
    }

    /// The number of dropped indexes; without those that another process has dropped before.
    func droppedCount() throws(LarderClientError) -> Int {
        try count(where: { (reply) throws(LarderClientError) in
            if case .failure(let error) = reply, error.isOfMissingIndex { return false }
            try reply.get()
            return true
        })
    }
}
