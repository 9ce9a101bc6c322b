import LarderCommandCatalog
import LarderEngine
import LarderQueries
import LarderQuerying
import LarderRESP

/// QUERY and EXPLAIN, which find entries by their fields, live queries, and INDEX.
extension CommandTable {
    static let queryCommands: Handlers = [
        .index: index,
        .query: { call throws(CommandError) in
            if call.count > 1, call.isWord(1, "LIVE") { return try live(&call) }
            if call.count > 1, call.isWord(1, "STOP") { return try stop(call) }
            return try run(&call, from: 1) { result, query, reply in
                reply.result(result, of: query)
            }
        },
        .explain: { call throws(CommandError) in
            guard call.isWord(1, "QUERY") else {
                throw CommandError("ERR EXPLAIN explains a query: EXPLAIN QUERY [argument ...]")
            }
            return try run(&call, from: 2) { result, _, reply in
                reply.verbatim(result.explanation.map { $0 + "\n" }.joined())
            }
        },
    ]

    // MARK: INDEX

    @Sendable private static func index(_ call: inout Call) throws(CommandError) -> Outcome {
        let database = call.database
        if call.count > 2, call.isWord(1, "CREATE") {
            let name = call.text(2)
            let definition = try CommandError.query { [call] () throws(QueryError) in
                try IndexDefinition((3..<call.count).map { call.array($0) })
            }
            return .okLater { () throws(CommandError) in
                try CommandError.index { () throws(LarderError) in
                    try database.indexes.create(named: name, definition: definition.bytes)
                }
            }
        }
        if call.count == 3, call.isWord(1, "DROP") {
            let name = call.text(2)
            return .okLater { () throws(CommandError) in
                let isDropped = try CommandError.index { () throws(LarderError) in
                    try database.indexes.drop(named: name)
                }
                if !isDropped { throw .noIndex(name) }
            }
        }
        let isIncomplete = call.count == 2 && ["CREATE", "DROP", "HELP"].contains { call.isWord(1, $0) }
        guard call.count <= 2, !isIncomplete else {
            throw CommandError("ERR INDEX takes \(CommandMetadata.index.syntax)")
        }
        let name = call.count == 2 ? call.text(1) : nil
        return .later { (reply) throws(CommandError) in
            var indexes = try CommandError.wrap(database.indexes.list(counting: true))
            if let name {
                indexes = indexes.filter { $0.index.name == name }
                if indexes.isEmpty { throw .noIndex(name) }
            }
            reply.array(count: indexes.count)
            for index in indexes { reply.status(of: index) }
        }
    }

    // MARK: QUERY

    /// Runs a query on another thread, until the client disconnects.
    /// - Parameter first: the position of the first word of the query: 2 for EXPLAIN.
    private static func run(
        _ call: inout Call, from first: Int,
        _ write: @escaping @Sendable (QueryResult, Query, inout ReplyBuffer) -> Void
    ) throws(CommandError) -> Outcome {
        let query = try CommandError.query { [call] () throws(QueryError) in
            try Query((first..<call.count).map { call.array($0) })
        }
        let view = try View(call)
        let explains = first == 2
        // Transactions and scripts get replies without attributes.
        let hasAttributes = !call.isInTransaction && !explains && call.session.modes.takesAttributes
        let record = call.session.record
        let limits = QueryLimits(call.server.limits)
        if !call.isInTransaction, call.session.transactions.isIdle, call.access == .memoryOnly, !explains,
            view.openSnapshot == nil
        {
            var run = QueryRun(query, in: view.database, nil, limits)
            if let result = run.resultInMemory() {
                if hasAttributes { call.session.replies.attribute("warnings", result.warnings) }
                write(result, query, &call.session.replies)
                return .done
            }
        }
        call.session.command.isLongQuery = query.mayTakeLong
        return .later { (reply) throws(CommandError) in
            var run = QueryRun(query, in: view.database, view.openSnapshot, limits, explains: explains) {
                record.isGone
            }
            let result: QueryResult
            do throws(QueryFailure) { result = try run.result() } catch { throw CommandError(error) }
            if hasAttributes { reply.attribute("warnings", result.warnings) }
            write(result, query, &reply)
        }
    }
}

// MARK: Live queries

extension CommandTable {
    /// QUERY LIVE [POSITIONS] …: replies with the number of the query and its rows, and then sends the differences.
    private static func live(_ call: inout Call) throws(CommandError) -> Outcome {
        guard !call.isInTransaction else {
            throw CommandError("ERR QUERY LIVE is not possible in transactions and scripts")
        }
        guard call.session.replies.version == .three else {
            throw CommandError("ERR QUERY LIVE needs RESP3: send HELLO 3 first")
        }
        guard call.session.seesCurrent else {
            throw CommandError("ERR QUERY LIVE is not possible in a snapshot: SNAPSHOT CLOSE first")
        }
        let hasPositions = call.count > 2 && call.isWord(2, "POSITIONS")
        let query = try CommandError.query { [call] () throws(QueryError) in
            try Query(((hasPositions ? 3 : 2)..<max(2, call.count)).map { call.array($0) })
        }
        let id = try call.session.queries.newID()
        let sink = call.session.queries.sink(id, positions: hasPositions, call.server.settings)
        let (live, database, record) = (call.server.live, call.database, call.session.record)
        call.session.command.isLongQuery = query.mayTakeLong
        return .deferred { (reply) throws(CommandError) in
            let begun: (handle: LiveQueryHandle, rows: [LiveRow])
            do throws(QueryFailure) {
                begun = try live.begin(query, in: database, isCancelled: { record.isGone }, sink)
            } catch {
                throw CommandError(error)
            }
            reply.array(count: 2)
            reply.integer(id)
            reply.rows(begun.rows)
            return { [handle = begun.handle] session in
                session.queries.add(id, handle)
                // The rights may have changed since the command was checked.
                session.renewRights()
            }
        }
    }

    private static func stop(_ call: Call) throws(CommandError) -> Outcome {
        guard call.count == 3, let id = parseInteger(call.bytes(2)) else {
            throw CommandError("ERR QUERY STOP takes the number that QUERY LIVE has returned")
        }
        guard call.session.queries.stop(Int(clamping: id)) else {
            throw CommandError("ERR the connection has no live query \(id)")
        }
        return call.ok()
    }
}

extension Query {
    /// Whether the query may examine all entries, or has so many tests that few entries take long. Such queries have
    /// their own threads.
    fileprivate var mayTakeLong: Bool { scans || condition?.testCount ?? 0 > QueryRun.quickTestsMax }
}

extension CommandError {
    /// Runs `body`, and converts errors in the words of a query.
    static func query<Result>(_ body: () throws(QueryError) -> Result) throws(CommandError) -> Result {
        do throws(QueryError) { return try body() } catch { throw CommandError("ERR \(error.text)") }
    }

    /// Converts errors of the engine. The error for an invalid name is sent without its code.
    fileprivate static func index<Result>(_ body: () throws(LarderError) -> Result) throws(CommandError) -> Result {
        do throws(LarderError) { return try body() } catch {
            throw error.code == .invalidArgument ? CommandError("ERR \(error.message)") : CommandError(error)
        }
    }

    fileprivate static func noIndex(_ name: String) -> CommandError {
        CommandError("ERR there is no index '\(name.prefix(64))'; INDEX lists the indexes")
    }

    fileprivate init(_ failure: QueryFailure) {
        switch failure {
        case .refused(let text): self.init("ERR \(text)")
        case .engine(let error): self.init(error)
        case .cancelled, .tooLong: self.init("ERR the client disconnected")
        }
    }
}

extension ReplyBuffer {
    fileprivate mutating func status(of status: IndexStatus) {
        let definition = IndexDefinition(bytes: status.index.definition)
        let (state, percent) =
            switch status.state {
            case .building(let percent): ("building", percent)
            case .ready: ("ready", 100)
            case .unreadable: (definition?.kind == .computed ? "undeclared" : "unreadable", 0)
            }
        map(count: 7)
        field("name", status.index.name)
        field("paths", definition?.paths ?? [])
        bulk("prefix")
        bulk(definition?.prefix ?? [])
        field("state", state)
        field("percent", percent)
        field("entries", status.hints)
        field("stale", status.stale)
    }

    fileprivate mutating func result(_ result: QueryResult, of query: Query) {
        switch query.output {
        case .count: return integer(result.count)
        case .groups:
            array(count: result.groups.count)
            for group in result.groups {
                array(count: 1 + group.values.count)
                bulk(group.json)
                for value in group.values {
                    switch value {
                    case .count(let count): integer(count)
                    case .json(let json): if json.elementsEqual("null".utf8) { null() } else { bulk(json) }
                    }
                }
            }
            return
        case .rows, .keys, .select: break
        }
        array(count: 2)
        word(result.cursor)
        array(count: result.rows.count)
        for row in result.rows {
            if query.output == .keys {
                bulk(row.key)
                continue
            }
            array(count: 2)
            bulk(row.key)
            if case .select = query.output { array(count: row.values.count) }
            for value in row.values { word(value) }
        }
    }
}
