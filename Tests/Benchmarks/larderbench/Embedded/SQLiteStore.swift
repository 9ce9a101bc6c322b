/// SQLite through its C functions: one table, prepared statements, write-ahead log, `synchronous=NORMAL`.
final class SQLiteStore: EmbeddedStore {
    private let entries: Entries
    private let library: SQLiteLibrary
    private var connection: OpaquePointer?
    private var insert: OpaquePointer?
    private var select: OpaquePointer?

    init(_ directory: String, _ entries: Entries) throws {
        self.entries = entries
        library = try SQLiteLibrary.shared.get()
        try check(library.open(directory + "/sqlite", &connection))
        try run("PRAGMA journal_mode=WAL")
        try run("PRAGMA synchronous=NORMAL")
        try run("CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
        try check(library.prepare(connection, "INSERT OR REPLACE INTO entries VALUES (?, ?)", -1, &insert, nil))
        try check(library.prepare(connection, "SELECT value FROM entries WHERE key = ?", -1, &select, nil))
    }

    deinit { try? close() }

    func put(_ index: Int) throws {
        try entries.keys[index].withUnsafeBytes { key in
            try entries.values.withValue(index) { value in
                // The bytes stay in place until the statement is reset: no destructor, no copy.
                try check(library.bind(insert, 1, key.baseAddress, Int32(key.count), nil))
                try check(library.bind(insert, 2, value.baseAddress, Int32(value.count), nil))
                try check(library.step(insert), SQLiteLibrary.done)
                try check(library.reset(insert))
            }
        }
    }

    func putBatch(_ indices: ArraySlice<Int>) throws {
        try run("BEGIN")
        for index in indices { try put(index) }
        try run("COMMIT")
    }

    func get(_ index: Int) throws -> Bool { try isThere(entries.keys[index]) }

    func getAbsent(_ index: Int) throws -> Bool { try isThere(entries.absentKeys[index]) }

    private func isThere(_ key: [UInt8]) throws -> Bool {
        try key.withUnsafeBytes { key in
            try check(library.bind(select, 1, key.baseAddress, Int32(key.count), nil))
            let status = library.step(select)
            if status == SQLiteLibrary.row {
                let bytes = UnsafeRawBufferPointer(
                    start: library.columnBlob(select, 0), count: Int(library.columnBytes(select, 0)))
                // Copy the value for the caller, as in the other stores.
                withExtendedLifetime([UInt8](bytes)) {}
            } else {
                try check(status, SQLiteLibrary.done)
            }
            try check(library.reset(select))
            return status == SQLiteLibrary.row
        }
    }

    func close() throws {
        guard let connection else { return }
        _ = library.finalize(insert)
        _ = library.finalize(select)
        self.connection = nil
        try check(library.close(connection))
    }

    private func run(_ sql: String) throws { try check(library.exec(connection, sql, nil, nil, nil)) }

    private func check(_ status: Int32, _ expected: Int32 = 0) throws(BenchError) {
        guard status == expected else {
            let text = connection.flatMap { library.message($0) }.map { String(cString: $0) } ?? ""
            throw BenchError("SQLite: \(status) \(text)")
        }
    }
}
