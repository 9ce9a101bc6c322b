import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct DestroyAndRepairTests {
    let workspace: Workspace
    var path: String { workspace.path }

    init() throws {
        workspace = try Workspace()
        for number in 0..<100 { try workspace.database.put(key(number), bytes("value")) }
    }

    @Test func destroyRemovesTheDirectory() throws {
        try workspace.database.close()
        try Database.destroy(path: path)
        #expect(access(path, F_OK) != 0)
        try Database.destroy(path: path)
    }

    /// Only files that LevelDB could have created are deleted. The directory stays if it has other files.
    @Test func destroyKeepsForeignFiles() throws {
        try workspace.database.close()
        try Files.write("\(path)/mine.txt", bytes("mine"))
        try Database.destroy(path: path)
        #expect(try workspace.files() == ["mine.txt"])
        #expect(Database.containsDatabaseFiles(path: path) == .absentOrEmpty)
    }

    @Test func anOpenDatabaseIsNeitherDestroyedNorRepaired() throws {
        let destroyed = failure { () throws(LevelDBError) in try Database.destroy(path: path) }
        #expect(destroyed?.code == .ioError)
        #expect(destroyed?.operation == "destroy")
        let repaired = failure { () throws(LevelDBError) in try Database.repair(path: path) }
        #expect(repaired?.code == .ioError)
        #expect(repaired?.operation == "repair")
        #expect(try workspace.database.get(key(50)) == bytes("value"))
    }

    @Test(arguments: [Options(), Options(compression: .none, bloomBitsPerKey: 10, writeBufferBytes: 1 << 20)])
    func repairFindsAllEntriesIfTheCurrentFileIsMissing(options: Options) throws {
        try workspace.database.compact()
        try workspace.database.put(bytes("in the log"), bytes("value"))
        try workspace.database.close()
        unlink("\(path)/CURRENT")
        try Database.repair(path: path, options: options)
        #expect(Database.containsDatabaseFiles(path: path) == .database)
        let database = try Database(path: path, options: options)
        for number in 0..<100 { #expect(try database.get(key(number)) == bytes("value")) }
        #expect(try database.get(bytes("in the log")) == bytes("value"))
    }

    /// A repair moves unreadable files away instead of deleting them. Their entries are lost.
    @Test func repairMovesUnreadableFilesToLost() throws {
        try workspace.database.compact()
        try workspace.database.close()
        let table = try #require(try workspace.files(endingWith: ".ldb").first)
        try Files.write("\(path)/\(table)", [UInt8](repeating: 0x55, count: 500))
        try Database.repair(path: path)
        #expect(try Files.read("\(path)/lost/\(table)").count == 500)
        let database = try Database(path: path)
        #expect(try database.get(key(50)) == nil)
    }

    /// LevelDB's own repair would create an empty database, even if the directory is missing.
    @Test func anEmptyDirectoryCannotBeRepaired() throws {
        let none = "\(workspace.directory.path)/none"
        #expect(failure { () throws(LevelDBError) in try Database.repair(path: none) }?.code == .notFound)
        #expect(access(none, F_OK) != 0)
        mkdir(none, 0o700)
        try Files.write("\(none)/mine.txt", bytes("mine"))
        let error = failure { () throws(LevelDBError) in try Database.repair(path: none) }
        #expect(error?.description == "repair in \(none): not found: there is nothing to repair")
        #expect(Database.containsDatabaseFiles(path: none) == .absentOrEmpty)
    }

    @Test func destroyAndRepairRefuseAPathThatIsAFile() throws {
        let file = "\(workspace.directory.path)/file"
        try Files.write(file, bytes("mine"))
        #expect(failure { () throws(LevelDBError) in try Database.destroy(path: file) }?.code == .ioError)
        #expect(failure { () throws(LevelDBError) in try Database.repair(path: file) }?.code == .ioError)
        #expect(try Files.read(file) == bytes("mine"))
    }
}
