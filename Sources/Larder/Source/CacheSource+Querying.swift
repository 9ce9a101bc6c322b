import LarderEngine
import LarderModelQueries
import LarderQueries
import LarderQuerying

// Queries, and the indexes that they use.

extension CacheSource {
    /// Runs the queries of a cache or a snapshot.
    var queryRunner: QueryRunner<LarderError> {
        let name = database.name
        var runner = QueryRunner<LarderError>(codec, omitsUndecodable: onDecodingFailure != .throwError) { problem in
            switch problem {
            case .invalid(let text): .refusedQuery(text, name)
            case .undecodable(let type, let key, let error): .decodingFailed(type, .json, Key(key), name, error)
            case .group(let error, let text):
                LarderError(
                    .decoding, text, operation: "query", database: name, underlying: CodingProblem.underlying(error))
            case .filter(let key, let error):
                LarderError(
                    .filterFailed, "the filter threw \(type(of: error))", operation: "query", database: name,
                    key: Key(key).description, underlying: error)
            }
        }
        runner.run = { (words, computed, explains) throws(LarderError) in
            try self.result(of: words, computed, explains)
        }
        runner.runForTask = { (words, computed, explains) async throws(LarderError) in
            try await BlockingWork.run { () throws(LarderError) in try self.result(of: words, computed, explains) }
        }
        runner.read = { (keys) throws(LarderError) in try self.texts(keys) }
        runner.readForTask = { (keys) async throws(LarderError) in
            try await BlockingWork.run { () throws(LarderError) in try self.texts(keys) }
        }
        guard snapshot == nil else { return runner }
        runner.remove = { (rows) throws(LarderError) in try self.remove(rows) }
        runner.removeForTask = { (rows) async throws(LarderError) in
            try await BlockingWork.run { () throws(LarderError) in try self.remove(rows) }
        }
        runner.live = { (words, sink) async throws(LarderError) in
            try await BlockingWork.run { () throws(LarderError) in try self.follow(words, sink) }
        }
        return runner
    }

    /// Returns the entries of keys. A key that no entry can have has none.
    private func texts(_ keys: [[UInt8]]) throws(LarderError) -> [StoredText?] {
        let valid = keys.indices.filter { (try? Key(checking: keys[$0], "query", database.name)) != nil }
        var texts = [StoredText?](repeating: nil, count: keys.count)
        let records = try records(try self.keys(valid.map { keys[$0] }, "query"), fillCache: true)
        for (index, record) in zip(valid, records) {
            texts[index] = record.map { StoredText(Array($0.payload), $0.header.codec) }
        }
        return texts
    }

    /// Removes the entries of rows whose texts have not changed. Without rows, lets a crash restore no evicted entries.
    private func remove(_ rows: [QueryResult.Row]) throws(LarderError) -> Int {
        let keys = try keys(rows.map(\.key), "remove")
        return try whileOpen("remove") { (_) throws(LarderError) in
            if rows.isEmpty { try database.dropEvictedFromJournal() }
            return try database.commit(keys, loading: .records, durability: durability) { update in
                var count = 0
                for (index, row) in rows.enumerated() {
                    guard let payload = update.payload(index), let text = row.values.first ?? nil,
                        payload.elementsEqual(text)
                    else { continue }
                    update.removeStored(index)
                    count += 1
                }
                return count
            }
        }
    }

    /// Begins a live query, which ends when this cache is closed.
    private func follow(_ words: [[UInt8]], _ sink: @escaping LiveSink) throws(LarderError) -> LiveFeed {
        let query = try query(words)
        return try whileOpen("query") { (engine) throws(LarderError) in
            if database.isDeleted { throw database.deletedError("query") }
            let handle: LiveQueryHandle
            do throws(QueryFailure) {
                let begun = try LiveQueries.of(engine).begin(query, in: database) { events in
                    if case .ended(let failure as QueryFailure)? = events.first {
                        return sink([.ended(self.error(failure))])
                    }
                    return sink(events)
                }
                handle = begun.handle
                _ = sink([.reset(begun.rows)])
            } catch {
                throw self.error(error)
            }
            let isOpen = changeReaders.add(handle) {
                handle.stop()
                _ = sink([.ended(nil)])
            }
            guard isOpen else { throw closedError("query") }
            handle.start()
            return LiveFeed(resume: { handle.resume() }, stop: { self.changeReaders.end(handle) })
        }
    }

    private func query(_ words: [[UInt8]]) throws(LarderError) -> Query {
        do throws(QueryError) { return try Query(words, allowsComputed: true) } catch {
            throw .refusedQuery(error.text, database.name)
        }
    }

    private func error(_ failure: QueryFailure) -> LarderError {
        switch failure {
        case .refused(let text): .refusedQuery(text, database.name)
        case .engine(let error): error.during("query")
        case .cancelled, .tooLong: .refusedQuery("the query was cancelled", database.name)
        }
    }

    private func result(
        of words: [[UInt8]], _ computed: ComputedValues, _ explains: Bool
    ) throws(LarderError) -> QueryResult {
        let query = try query(words)
        return try whileOpen("query") { (_) throws(LarderError) in
            var run = QueryRun(
                query, in: database, snapshot, QueryLimits(isOfLibrary: true), explains: explains, computed: computed)
            do throws(QueryFailure) { return try run.result() } catch { throw self.error(error) }
        }
    }

    /// Creates indexes, all or none of them, unless they exist. May block.
    func declare(_ indexes: [Index]) throws(LarderError) {
        guard !indexes.isEmpty else { return }
        let definitions: [(index: Index, definition: IndexDefinition)]
        do throws(QueryError) { definitions = try Index.definitions(indexes, codec) } catch {
            throw LarderError(.invalidArgument, error.text, operation: "index", database: database.name)
        }
        try whileOpen("index") { (_) throws(LarderError) in
            // Those of models without names, as earlier versions made them, are of no use.
            let names = Set(indexes.compactMap(\.computed?.name))
            for old in try names.isEmpty ? [] : database.indexes.list(counting: false).map(\.index)
            where names.contains(old.name) && IndexDefinition(bytes: old.definition)?.kind == .computed {
                _ = try database.indexes.drop(named: old.name)
            }
            try database.indexes.create(
                definitions.map { [codec] index, definition in
                    NewIndex(
                        index.name, definition.bytes,
                        index.computed.map { computed in DocumentTerms(definition) { computed.values($0, codec) } })
                })
        }
        codec.checks?.add(indexes.flatMap(\.checks))
    }

    /// Drops all indexes except these. May block.
    /// - Returns: the number of dropped ones.
    func drop(except indexes: [Index]) throws(LarderError) -> Int {
        codec.checks?.keep(indexes.flatMap(\.checks))
        let kept = Set(indexes.map(\.name))
        return try whileOpen("index") { (_) throws(LarderError) in
            var count = 0
            for status in try database.indexes.list(counting: false) where !kept.contains(status.index.name) {
                if try database.indexes.drop(named: status.index.name) { count += 1 }
            }
            return count
        }
    }
}

extension LarderError {
    fileprivate static func refusedQuery(_ text: String, _ database: String) -> LarderError {
        LarderError(.invalidArgument, text, operation: "query", database: database)
    }
}
