import LarderModelQueries

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Queries, and the indexes that they use.

extension RemoteCache: AsyncQuerySource {
    public typealias QueryFailure = LarderClientError

    /// Returns a query of the cache's models: the fresh entries whose JSON matches its conditions. The daemon evaluates
    /// the conditions; only filters are evaluated in this process. Sends nothing before one of the calls of
    /// ``ModelQuery`` that return a result. Never uses the near cache. Needs larderd.
    public func query(_ type: Value.Type = Value.self) -> ModelQuery<Value, RemoteCache<Value>> {
        var runner = QueryRunner<LarderClientError>(codec, database: name)
        runner.isOf = { [store] in ($0 as? RemoteCache<Value>)?.store === store }
        runner.runForTask = { [core, store] (words, _, explains) async throws(LarderClientError) in
            // The query keeps the client connected.
            defer { withExtendedLifetime(core) {} }
            return try await store.perform(.query(words, explains: explains))
        }
        runner.readForTask = { [core, store] (keys) async throws(LarderClientError) in
            defer { withExtendedLifetime(core) {} }
            return try await store.perform(.getAll(keys)).map { $0.map { StoredText($0, .raw) } }
        }
        runner.removeForTask = { [core, store] (rows) async throws(LarderClientError) in
            // In a task of its own, which is not cancelled with the caller's: the number must be known.
            try await Task { () async -> Result<Int, LarderClientError> in
                defer { withExtendedLifetime(core) {} }
                do throws(LarderClientError) {
                    let removed = try await store.performAll(Request.removals(rows))
                    return .success(
                        try removed.count(where: { (removed) throws(LarderClientError) in try removed.get() }))
                } catch { return .failure(error) }
            }.value.get()
        }
        runner.live = { [core, store] (words, sink) async throws(LarderClientError) in
            let words = try Request.query(wordList("LIVE", "POSITIONS") + words).words
            let live = LiveLink(core.socketPath, core.options, store, words, sink)
            do throws(LarderClientError) {
                try core.follow(live)
                try await live.begin()
            } catch {
                core.forget(live)
                throw error.about(store.name)
            }
            return LiveFeed(resume: { live.resume() }, stop: { core.forget(live) })
        }
        return ModelQuery(runner)
    }

    /// Returns a query with a predicate: see ``ModelQuery/where(_:)``.
    public func query(_ predicate: Predicate<Value>) -> ModelQuery<Value, RemoteCache<Value>> {
        query().where(predicate)
    }

    /// Declares the indexes that queries need: the daemon creates those that do not exist yet, and builds them in the
    /// background. The next models that this cache stores are compared with the declared fields: see ``Index``. Needs
    /// larderd. Costs two round trips.
    /// - Throws: `invalidArgument` for an invalid index, for more than 32 of them, and if the models are not stored as
    ///   JSON; `server` if the daemon refuses an index, for example because there would be more than 32. None is
    ///   created then.
    public func declareIndexes(_ indexes: [Index]) async throws(LarderClientError) {
        let requests = try Request.create(indexes, codec, name, known: try await store.perform(.indexes))
        let replies = try await store.performAll(requests)
        if let failure = replies.failure {
            _ = try await store.performAll(Request.undo(requests, replies))
            throw failure
        }
        codec.checks?.add(indexes.flatMap(\.checks))
    }

    /// Drops the indexes of the database except these, for example those that earlier versions of a program declared.
    /// - Returns: the number of dropped indexes.
    @discardableResult
    public func dropIndexes(except indexes: [Index]) async throws(LarderClientError) -> Int {
        codec.checks?.keep(indexes.flatMap(\.checks))
        let drops = Request.drops(try await store.perform(.indexes), except: indexes)
        return try await store.performAll(drops).droppedCount()
    }
}
