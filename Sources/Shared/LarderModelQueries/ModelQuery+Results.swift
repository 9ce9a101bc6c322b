import LarderQueries

/// A page of the rows of a query.
public struct ModelPage<Model> {
    /// The keys of the entries.
    public let keys: [String]
    /// Their models, in the same order.
    public let values: [Model]
    /// What to pass to `page(after:)` of the same query for the next page; nil after the last page. It
    /// stays valid when processes and daemons restart.
    public let cursor: String?
}

extension ModelPage: Sendable where Model: Sendable {}

extension QueryPages {
    /// Bytes of keys that are not UTF-8 are replaced by U+FFFD.
    var keys: [String] { result.rows.map { String(decoding: $0.key, as: UTF8.self) } }

    var page: ModelPage<Model> {
        ModelPage(keys: keys, values: models, cursor: result.cursor.map { String(decoding: $0, as: UTF8.self) })
    }
}

extension ModelQuery {
    /// The sentences of `explain()`.
    private func explanation(_ result: QueryResult) -> String {
        let notes = filters.map { "\($0.note): evaluated on the decoded models that match the other conditions" }
        return (result.explanation + notes).joined(separator: "\n")
    }

    private func explainedWords() throws(Source.QueryFailure) -> [[UInt8]] {
        try words([], skip: skipCount, limit: limitCount, after: nil)
    }
}

extension ModelQuery where Source: BlockingQuerySource {
    /// Throws if the query reads a property under a name that its field does not have.
    private func verifyProperties() throws(Source.QueryFailure) {
        let checks = unfinishedChecks
        if let words = sampleWords(checks) { try verify(checks, try? runner.result(words)) }
    }

    func collect(
        _ output: QueryPages<Model, Source>.Output, after cursor: String? = nil, isPage: Bool = false
    ) throws(Source.QueryFailure) -> QueryPages<Model, Source> {
        try verifyProperties()
        var pages = try QueryPages(self, output, after: cursor, isPage: isPage)
        while let words = pages.next { try pages.add(try runner.result(words)) }
        let keys = pages.referencedKeys
        if !keys.isEmpty, let read = runner.read { try pages.include(keys, try read(keys.map { Array($0.utf8) })) }
        return pages
    }

    /// Returns the models of the matching entries.
    ///
    /// An entry that matches during the whole call is in the result, unless its place in the order changes; one that
    /// did not match at any moment is not. More than 1,000 rows are read in several pages; use a snapshot if they must
    /// be of one moment. The rows are kept in memory, so limit results that may be large.
    /// - Throws: `invalidArgument` if the query is impossible, or too expensive: see ``scan()``; `decoding` (in clients
    ///   `decode`) if a matching entry is not a model of this type.
    public func values() throws(Source.QueryFailure) -> [Model] { try collect(.rows).models }

    /// Returns the keys of the matching entries, in the order of the rows. Does not read the models.
    public func keys() throws(Source.QueryFailure) -> [String] { try collect(.keys).keys }

    /// Returns the number of matching entries, after ``skip(_:)`` and at most ``limit(_:)``.
    public func count() throws(Source.QueryFailure) -> Int { try collect(.count).result.count }

    /// Returns the rows after a cursor: at most ``limit(_:)``, or 1,000. A page with a filter may have fewer rows than
    /// that although others follow.
    /// - Parameter cursor: of the previous page of the same query; nil for the first page.
    public func page(after cursor: String? = nil) throws(Source.QueryFailure) -> ModelPage<Model> {
        try collect(.rows, after: cursor, isPage: true).page
    }

    /// Removes the matching entries, as `keys()` finds them. An entry that was changed since it was found stays. One
    /// that a disk limit has evicted is not found; in clients, a crash of the daemon may restore it.
    ///
    /// ```swift
    /// try books.query(Book.self).where(.stored, ..<(Date.now - 30 * 86_400)).remove()
    /// ```
    /// The entries are not removed together: after an error, some are left. A cancelled task stops, with the number so
    /// far.
    /// - Returns: the number of removed entries.
    /// - Throws: as `keys()`; `invalidArgument` for a snapshot.
    @discardableResult
    public func remove() throws(Source.QueryFailure) -> Int {
        let remove = try runner.removal(runner.remove)
        try verifyProperties()
        var (pages, count) = (try QueryPages(self, .texts), 0)
        while let words = pages.next {
            try pages.add(try runner.result(words))
            while let rows = pages.takeRows() { count += try remove(rows) }
        }
        return try count + remove([])
    }

    /// Runs the query, and returns in sentences which index was used, how many entries were examined, what was sorted,
    /// which fields no entry has, and what was evaluated on decoded models.
    public func explain() throws(Source.QueryFailure) -> String {
        explanation(try runner.result(try explainedWords(), explains: true))
    }
}

extension ModelQuery where Source: AsyncQuerySource {
    /// Throws if the query reads a property under a name that its field does not have.
    func verifyProperties() async throws(Source.QueryFailure) {
        let checks = unfinishedChecks
        if let words = sampleWords(checks) { try verify(checks, try? await runner.resultForTask(words)) }
    }

    func collectForTask(
        _ output: QueryPages<Model, Source>.Output, after cursor: String? = nil, isPage: Bool = false
    ) async throws(Source.QueryFailure) -> QueryPages<Model, Source> {
        try await verifyProperties()
        var pages = try QueryPages(self, output, after: cursor, isPage: isPage)
        while let words = pages.next { try pages.add(try await runner.resultForTask(words)) }
        let keys = pages.referencedKeys
        if !keys.isEmpty, let read = runner.readForTask {
            try pages.include(keys, try await read(keys.map { Array($0.utf8) }))
        }
        return pages
    }

    /// The blocking call of this name, for tasks. In clients, the daemon may refuse a query: `server`.
    public func values() async throws(Source.QueryFailure) -> [Model] { try await collectForTask(.rows).models }

    /// The blocking call of this name, for tasks.
    public func keys() async throws(Source.QueryFailure) -> [String] { try await collectForTask(.keys).keys }

    /// The blocking call of this name, for tasks.
    public func count() async throws(Source.QueryFailure) -> Int { try await collectForTask(.count).result.count }

    /// The blocking call of this name, for tasks.
    public func page(after cursor: String? = nil) async throws(Source.QueryFailure) -> ModelPage<Model> {
        try await collectForTask(.rows, after: cursor, isPage: true).page
    }

    /// The blocking call of this name, for tasks.
    @discardableResult
    public func remove() async throws(Source.QueryFailure) -> Int {
        let remove = try runner.removal(runner.removeForTask)
        try await verifyProperties()
        var (pages, count) = (try QueryPages(self, .texts), 0)
        while let words = pages.next, !Task.isCancelled {
            do throws(Source.QueryFailure) { try pages.add(try await runner.resultForTask(words)) } catch {
                // The query is cancelled with the task.
                if Task.isCancelled { break }
                throw error
            }
            while !Task.isCancelled, let rows = pages.takeRows() { count += try await remove(rows) }
        }
        return try await count + remove([])
    }

    /// The blocking call of this name, for tasks.
    public func explain() async throws(Source.QueryFailure) -> String {
        explanation(try await runner.resultForTask(try explainedWords(), explains: true))
    }
}
