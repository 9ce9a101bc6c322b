import LarderEngine
import LarderQueries
import LarderQuerying

/// A store of JSON documents in this process, with indexes and queries.
protocol DocumentStore: AnyObject {
    func create(_ index: DocumentIndex) throws
    /// Stores several documents, all or none of them.
    func put(_ indices: Range<Int>) throws
    /// - Returns: the number of rows, which were copied for the caller; or the count.
    func answer(_ query: DocumentQuery, _ number: Int) throws -> Int
    /// Closes the store, after the work that its writes have deferred.
    func close() throws
}

/// Larder: entries in a database with indexes, and the queries of larderd without the socket.
final class LarderDocuments: DocumentStore {
    private let documents: Documents
    private let engine: Engine
    private let database: Database

    init(_ directory: String, _ documents: Documents) throws {
        self.documents = documents
        var options = StoreOptions.engine(memoryBytes: StoreOptions.memoryBytes)
        options.indexMaker = DocumentIndexMaker()
        engine = try Engine.open(directory, options: options)
        database = try engine.openDatabase("bench", policy: .never)
    }

    func create(_ index: DocumentIndex) throws {
        let definition = try IndexDefinition(["ON", index.rawValue].map { Array($0.utf8) })
        try database.indexes.create(named: index.rawValue, definition: definition.bytes)
        while try database.indexes.list(counting: false).contains(where: { $0.state != .ready }) {
            try Interruption.check()
            Clocks.sleep(0.01)
        }
    }

    func put(_ indices: Range<Int>) throws { try put(indices, followedBy: "") }

    /// Stores documents, each followed by a text.
    func put(_ indices: Range<Int>, followedBy end: String) throws {
        try database.commit(indices.map { Key(Keys.bytes($0)) }, loading: .none) { update in
            for (position, index) in indices.enumerated() {
                var text = documents.text(index) + end
                text.withUTF8 { update.put(position, payload: UnsafeRawBufferPointer($0)) }
            }
        }
    }

    /// Begins a live query of the documents of an author.
    func follow(_ author: Int, _ onChange: @escaping @Sendable () -> Void) throws -> LiveQueryHandle {
        let query = try Query(["WHERE", "author", "=", Documents.author(author)].map { Array($0.utf8) })
        let begun = try LiveQueries.of(engine).begin(query, in: database) { _ in
            onChange()
            return true
        }
        begun.handle.start()
        return begun.handle
    }

    func answer(_ query: DocumentQuery, _ number: Int) throws -> Int {
        let parsed = try Query(query.words(number, documents).map { Array($0.utf8) })
        var run = QueryRun(parsed, in: database, nil, QueryLimits())
        let result = try run.result()
        return query.isCount ? result.count : result.rows.count
    }

    func close() throws { engine.shutdown() }
}

/// SQLite with indexes on expressions.
final class SQLiteDocuments: DocumentStore {
    private let documents: Documents
    private let connection: SQLiteConnection
    private let insert: OpaquePointer?
    private var queries: [DocumentQuery: OpaquePointer] = [:]

    init(_ directory: String, _ documents: Documents) throws {
        self.documents = documents
        connection = try SQLiteConnection(directory + "/sqlite")
        try connection.run("CREATE TABLE IF NOT EXISTS docs (key TEXT PRIMARY KEY, doc TEXT) WITHOUT ROWID")
        insert = try connection.prepare("INSERT OR REPLACE INTO docs VALUES (CAST(? AS TEXT), CAST(? AS TEXT))")
    }

    func create(_ index: DocumentIndex) throws {
        try connection.run("CREATE INDEX by_\(index) ON docs (json_extract(doc, '$.\(index)'))")
    }

    func put(_ indices: Range<Int>) throws {
        try connection.run("BEGIN")
        for index in indices {
            try Keys.bytes(index).withUnsafeBytes { key in
                var text = documents.text(index)
                try text.withUTF8 { text in
                    try connection.bind(insert, 1, key)
                    try connection.bind(insert, 2, UnsafeRawBufferPointer(text))
                    try connection.check(connection.library.step(insert), SQLiteLibrary.done)
                    try connection.check(connection.library.reset(insert))
                }
            }
        }
        try connection.run("COMMIT")
    }

    func answer(_ query: DocumentQuery, _ number: Int) throws -> Int {
        let statement = try queries[query] ?? connection.prepare(query.sql)
        queries[query] = statement
        let values = query.values(number, documents).map { Array($0.utf8) }
        return try values[0].withUnsafeBytes { first in
            try (values.last ?? []).withUnsafeBytes { last in
                try connection.bind(statement, 1, first)
                if values.count > 1 { try connection.bind(statement, 2, last) }
                return try rows(of: statement, query)
            }
        }
    }

    private func rows(of statement: OpaquePointer?, _ query: DocumentQuery) throws -> Int {
        var rows = 0
        while true {
            let status = connection.library.step(statement)
            guard status == SQLiteLibrary.row else {
                try connection.check(status, SQLiteLibrary.done)
                try connection.check(connection.library.reset(statement))
                return rows
            }
            let first = connection.column(statement, 0)
            if query.isCount {
                rows = Int(String(decoding: first, as: UTF8.self)) ?? -1
            } else {
                withExtendedLifetime(connection.column(statement, 1)) {}
                rows += 1
            }
        }
    }

    func close() throws { try connection.close() }
}
