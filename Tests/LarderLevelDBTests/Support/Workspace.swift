import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

/// A directory for one test and one open database in it. A suite keeps it as a property, so that the files stay until
/// the test is over.
final class Workspace {
    // Before the directory, because properties go in this order, and a compaction could still make a file in it.
    private(set) var database: Database
    let directory: TemporaryDirectory
    let path: String

    init(_ options: Options = Options()) throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        path = "\(directory.path)/db"
        database = try Self.open(path, options)
    }

    /// Closes and opens again, and so moves what was in memory into a table.
    func reopen(_ options: Options = Options()) throws(LevelDBError) {
        try database.close()
        database = try Database(path: path, options: options)
    }

    /// Creates and opens another database in the same directory.
    func open(_ name: String, _ options: Options = Options()) throws -> Database {
        try Self.open("\(directory.path)/\(name)", options)
    }

    private static func open(_ path: String, _ options: Options) throws -> Database {
        var creating = options
        creating.createIfMissing = true
        return try Database(path: path, options: creating)
    }

    /// The names in the database's directory that end so.
    func files(endingWith ending: String = "") throws -> [String] { try Files.names(in: path, endingWith: ending) }
}

/// The bytes of a text.
func bytes(_ text: String) -> [UInt8] { [UInt8](text.utf8) }

/// A key with its number in a fixed width, so that the order of the keys is that of the numbers.
func key(_ number: Int) -> [UInt8] {
    let digits = String(number)
    return bytes("k" + String(repeating: "0", count: max(0, 8 - digits.count)) + digits)
}

/// Runs `body` and gives the error that it throws, nil if it throws none.
func failure(_ body: () throws(LevelDBError) -> Void) -> LevelDBError? {
    do {
        try body()
        return nil
    } catch {
        return error
    }
}

/// The keys that a cursor sees from where it is, in its direction.
func keys(_ cursor: Cursor, backward: Bool = false) throws(LevelDBError) -> [[UInt8]] {
    var found: [[UInt8]] = []
    while cursor.isValid {
        found.append(cursor.key)
        if backward { try cursor.previous() } else { try cursor.next() }
    }
    return found
}
