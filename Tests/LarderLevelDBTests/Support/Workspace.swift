import CLarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderLevelDB

/// A directory for one test and one open database in it. A suite keeps it as a property, so that the files stay until
/// the test is over.
final class Workspace {
    // Declared before the directory, so that it is released first: a compaction could still create a file in the
    // directory.
    private(set) var database: Database
    let directory: TemporaryDirectory
    let path: String

    init(_ options: Options = Options()) throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        path = "\(directory.path)/db"
        database = try Self.open(path, options)
    }

    /// Closes and reopens the database, which writes the entries in memory into a table.
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

    /// Returns the names of the files in the database's directory with this ending.
    func files(endingWith ending: String = "") throws -> [String] { try Files.names(in: path, endingWith: ending) }
}

extension Database {
    func put(_ key: [UInt8], _ value: [UInt8]) throws(LevelDBError) {
        let batch = WriteBatch()
        batch.put(key, value)
        try write(batch)
    }

    func delete(_ key: [UInt8]) throws(LevelDBError) {
        let batch = WriteBatch()
        batch.delete(key)
        try write(batch)
    }

    /// The number of tables on one of LevelDB's levels.
    func tableCount(level: Int) throws(LevelDBError) -> Int {
        try withHandle("property") { handle in
            guard let text = leveldb_property_value(handle, "leveldb.num-files-at-level\(level)") else { return 0 }
            defer { leveldb_free(text) }
            return Int(String(cString: text)) ?? 0
        }
    }

    /// The total size of the tables in bytes.
    var tableBytes: Int {
        get throws {
            try Files.names(in: path, endingWith: ".ldb").reduce(0) { try $0 + Files.read("\(path)/\($1)").count }
        }
    }
}

extension Options {
    init(
        createIfMissing: Bool = false, errorIfExists: Bool = false, paranoidChecks: Bool = false,
        compression: Compression = .snappy, bloomBitsPerKey: Int = 0, blockCache: BlockCache? = nil,
        writeBufferBytes: Int = 4 << 20, blockBytes: Int = 4096, blockRestartInterval: Int = 16,
        maxOpenFiles: Int = 1000, maxFileBytes: Int = 2 << 20
    ) {
        self.init()
        self.createIfMissing = createIfMissing
        self.errorIfExists = errorIfExists
        self.paranoidChecks = paranoidChecks
        self.compression = compression
        self.bloomBitsPerKey = bloomBitsPerKey
        self.blockCache = blockCache
        self.writeBufferBytes = writeBufferBytes
        self.blockBytes = blockBytes
        self.blockRestartInterval = blockRestartInterval
        self.maxOpenFiles = maxOpenFiles
        self.maxFileBytes = maxFileBytes
    }
}

/// The bytes of a text.
func bytes(_ text: String) -> [UInt8] { [UInt8](text.utf8) }

/// Returns a key with the number in a fixed width, so that keys are ordered like their numbers.
func key(_ number: Int) -> [UInt8] {
    let digits = String(number)
    return bytes("k" + String(repeating: "0", count: max(0, 8 - digits.count)) + digits)
}

/// Runs `body` and returns the error that it throws; nil if it throws none.
func failure(_ body: () throws(LevelDBError) -> Void) -> LevelDBError? {
    do {
        try body()
        return nil
    } catch {
        return error
    }
}

/// Returns the keys from the cursor's position on, forward or backward.
func keys(_ cursor: Cursor, backward: Bool = false) throws(LevelDBError) -> [[UInt8]] {
    var found: [[UInt8]] = []
    while cursor.isValid {
        found.append(cursor.key)
        if backward { try cursor.previous() } else { try cursor.next() }
    }
    return found
}
