import LarderModelCoding
import LarderQueries

/// Some properties of the models that a query finds, without the rest of the models. Iterate over it, or read its
/// `rows()`.
///
/// ```swift
/// for try await (title, price) in books.query(Book.self).where(\.author, "Bo").select(\.title, \.price) {
///     print(title, price)
/// }
/// ```
/// Thread-safe: an immutable value.
public struct ModelSelection<Model: Codable & SendableMetatype, Source: QuerySource, Row>: Sendable {
    fileprivate let query: ModelQuery<Model, Source>
    fileprivate let output: QueryPages<Model, Source>.Output
    fileprivate let decode: @Sendable ([[UInt8]?], ModelCodec) throws -> Row

    fileprivate func rows(_ result: QueryResult) throws(Source.QueryFailure) -> [Row] {
        var rows: [Row] = []
        for row in result.rows {
            do { rows.append(try decode(row.values, query.runner.codec)) } catch {
                if query.runner.omitsUndecodable { continue }
                throw query.runner.failure(.undecodable(Row.self, key: row.key, error))
            }
        }
        return rows
    }
}

extension ModelSelection where Source: BlockingQuerySource {
    /// Returns the selected properties of all rows.
    /// - Throws: as `values()`.
    public func rows() throws(Source.QueryFailure) -> [Row] { try rows(try query.collect(output).result) }
}

extension ModelSelection where Source: AsyncQuerySource {
    /// Returns the selected properties of all rows.
    /// - Throws: as `values()`.
    public func rows() async throws(Source.QueryFailure) -> [Row] {
        try rows(try await query.collectForTask(output).result)
    }
}

extension ModelSelection: AsyncSequence where Source: AsyncQuerySource {
    public typealias Element = Row
    public typealias Failure = Source.QueryFailure

    /// Returns an iteration over all rows.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(selection: self) }

    /// An iteration, which reads all rows first. Single owner: belongs to one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let selection: ModelSelection
        private var rows: ArraySlice<Row>?

        fileprivate init(selection: ModelSelection) { self.selection = selection }

        /// Returns the next row; nil at the end.
        public mutating func next() async throws(Source.QueryFailure) -> Row? { try await next(isolation: #isolation) }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Source.QueryFailure) -> Row? {
            if rows == nil { rows = try await selection.rows()[...] }
            return rows?.popFirst()
        }
    }
}

extension ModelQuery {
    /// Selects properties. A field that is missing is nil, and an error for a property that is not optional.
    public func select<each Value: Codable & Sendable>(
        _ properties: repeat KeyPath<Model, each Value>
    ) -> ModelSelection<Model, Source, (repeat each Value)> {
        var paths: [String] = []
        let query = adding { (query) throws(ImpossibleQuery) in
            for property in repeat each properties { paths.append(try query.path(property, nil, .selection)) }
            if paths.isEmpty { throw ImpossibleQuery(message: "select() needs a property") }
        }
        return ModelSelection(query: query, output: .select(paths)) { [paths] texts, codec in
            var index = 0
            return (repeat try Self.value((each Value).self, texts, paths, &index, codec))
        }
    }

    private static func value<Value: Codable>(
        _ type: Value.Type, _ texts: [[UInt8]?], _ paths: [String], _ index: inout Int, _ codec: ModelCodec
    ) throws -> Value {
        defer { index += 1 }
        let text = try texts[index] ?? codec.defaultText(of: paths[index], Model.self) ?? Array("null".utf8)
        return try text.withUnsafeBytes { try codec.decode(type, $0, storedAs: .json) }
    }
}
