/// An open SQLite database with a write-ahead log and `synchronous=NORMAL`. Closed by ``close()`` or the deinitializer.
final class SQLiteConnection {
    let library: SQLiteLibrary
    private var handle: OpaquePointer?
    private var statements: [OpaquePointer] = []

    init(_ path: String) throws(BenchError) {
        library = try SQLiteLibrary.shared.get()
        try check(library.open(path, &handle))
        try run("PRAGMA journal_mode=WAL")
        try run("PRAGMA synchronous=NORMAL")
    }

    deinit { try? close() }

    func run(_ sql: String) throws(BenchError) { try check(library.exec(handle, sql, nil, nil, nil)) }

    func prepare(_ sql: String) throws(BenchError) -> OpaquePointer? {
        var statement: OpaquePointer?
        try check(library.prepare(handle, sql, -1, &statement, nil))
        if let statement { statements.append(statement) }
        return statement
    }

    /// Binds bytes, which have to stay in place until the statement is reset.
    func bind(_ statement: OpaquePointer?, _ position: Int32, _ bytes: UnsafeRawBufferPointer) throws(BenchError) {
        // No destructor, no copy.
        try check(library.bind(statement, position, bytes.baseAddress, Int32(bytes.count), nil))
    }

    /// A copy of a column of the present row.
    func column(_ statement: OpaquePointer?, _ position: Int32) -> [UInt8] {
        [UInt8](
            UnsafeRawBufferPointer(
                start: library.columnBlob(statement, position), count: Int(library.columnBytes(statement, position))))
    }

    func check(_ status: Int32, _ expected: Int32 = 0) throws(BenchError) {
        guard status == expected else {
            let text = handle.flatMap { library.message($0) }.map { String(cString: $0) } ?? ""
            throw BenchError("SQLite: \(status) \(text)")
        }
    }

    func close() throws(BenchError) {
        guard let handle else { return }
        for statement in statements { _ = library.finalize(statement) }
        statements = []
        self.handle = nil
        guard library.close(handle) == 0 else { throw BenchError("SQLite: cannot close the database") }
    }
}
