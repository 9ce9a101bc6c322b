/// SQLite through its C functions: one table, prepared statements.
final class SQLiteStore: EmbeddedStore {
    private let entries: Entries
    private let connection: SQLiteConnection
    private let insert: OpaquePointer?
    private let select: OpaquePointer?

    init(_ directory: String, _ entries: Entries) throws {
        self.entries = entries
        connection = try SQLiteConnection(directory + "/sqlite")
        try connection.run("CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
        insert = try connection.prepare("INSERT OR REPLACE INTO entries VALUES (?, ?)")
        select = try connection.prepare("SELECT value FROM entries WHERE key = ?")
    }

    func put(_ index: Int) throws {
        try entries.keys[index].withUnsafeBytes { key in
            try entries.values.withValue(index) { value in
                try connection.bind(insert, 1, key)
                try connection.bind(insert, 2, value)
                try connection.check(connection.library.step(insert), SQLiteLibrary.done)
                try connection.check(connection.library.reset(insert))
            }
        }
    }

    func putBatch(_ indices: ArraySlice<Int>) throws {
        try connection.run("BEGIN")
        for index in indices { try put(index) }
        try connection.run("COMMIT")
    }

    func get(_ index: Int) throws -> Bool { try isThere(entries.keys[index]) }

    func getAbsent(_ index: Int) throws -> Bool { try isThere(entries.absentKeys[index]) }

    private func isThere(_ key: [UInt8]) throws -> Bool {
        try key.withUnsafeBytes { key in
            try connection.bind(select, 1, key)
            let status = connection.library.step(select)
            if status == SQLiteLibrary.row {
                // Copy the value for the caller, as in the other stores.
                withExtendedLifetime(connection.column(select, 0)) {}
            } else {
                try connection.check(status, SQLiteLibrary.done)
            }
            try connection.check(connection.library.reset(select))
            return status == SQLiteLibrary.row
        }
    }

    func close() throws { try connection.close() }
}
