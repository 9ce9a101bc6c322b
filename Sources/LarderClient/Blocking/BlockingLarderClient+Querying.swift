import LarderModelQueries

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension BlockingLarderClient: BlockingQuerySource {
    public typealias QueryFailure = LarderClientError

    /// Returns a query of the models of one type in the selected database, as
    /// ``RemoteCache/query(_:)-(Value.Type)``. Its calls block.
    public func query<Value: Codable & SendableMetatype>(
        _ type: Value.Type = Value.self
    ) -> ModelQuery<Value, BlockingLarderClient> {
        var runner = QueryRunner<LarderClientError>(codec, database: name)
        runner.run = { (words, _, explains) throws(LarderClientError) in
            try self.perform(Request.query(words, explains: explains))
        }
        runner.read = { (keys) throws(LarderClientError) in
            try self.perform(Request.getAll(keys)).map { $0.map { StoredText($0, .raw) } }
        }
        runner.remove = { (rows) throws(LarderClientError) in
            try self.performAll(Request.removals(rows)).count(where: { (removed) throws(LarderClientError) in
                try removed.get()
            })
        }
        return ModelQuery(runner)
    }

    /// Returns a query with a predicate: see ``ModelQuery/where(_:)``.
    public func query<Value: Codable & SendableMetatype>(
        _ predicate: Predicate<Value>
    ) -> ModelQuery<Value, BlockingLarderClient> {
        query(Value.self).where(predicate)
    }

    /// Declares the indexes that queries need in the selected database, as ``RemoteCache/declareIndexes(_:)``.
    public func declareIndexes(_ indexes: [Index]) throws(LarderClientError) {
        let requests = try Request.create(indexes, codec, name, known: try perform(Request.indexes))
        let replies = try performAll(requests)
        if let failure = replies.failure {
            _ = try performAll(Request.undo(requests, replies))
            throw failure
        }
        codec.checks?.add(indexes.flatMap(\.checks))
    }

    /// Drops the other indexes of the selected database, as ``RemoteCache/dropIndexes(except:)``.
    @discardableResult
    public func dropIndexes(except indexes: [Index]) throws(LarderClientError) -> Int {
        codec.checks?.keep(indexes.flatMap(\.checks))
        let drops = Request.drops(try perform(Request.indexes), except: indexes)
        return try performAll(drops).droppedCount()
    }

    // MARK: Copying indexes

    /// Returns the indexes of the selected database that another daemon can have too; none if the daemon refuses to
    /// list them.
    package func indexes() throws(LarderClientError) -> [ListedIndex] {
        do throws(LarderClientError) { return try perform(Request.indexes).filter(\.isCreatable) } catch {
            // An earlier version does not know the command, and the user may have no right to it.
            if error.code == .server { return [] }
            throw error
        }
    }

    /// Creates indexes in the selected database. Replaces none.
    /// - Returns: a sentence for each index that the database does not have afterwards.
    package func create(_ indexes: [ListedIndex]) throws(LarderClientError) -> [String] {
        if indexes.isEmpty { return [] }
        var problems: [String] = []
        do throws(LarderClientError) {
            let present = try perform(Request.indexes)
            for index in indexes where !present.contains(index) {
                guard !present.contains(where: { $0.name == index.name }) else {
                    problems.append("keeps its own index '\(printableKey(index.name.utf8))', which differs")
                    continue
                }
                try perform(Request.expectingOK(index.words))
            }
        } catch {
            guard let text = error.serverText else { throw error }
            problems.append("does not get all indexes: \(text)")
        }
        return problems
    }
}
