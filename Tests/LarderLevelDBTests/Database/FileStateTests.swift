import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct FileStateTests {
    let workspace: Workspace
    var path: String { workspace.path }
    var state: FileState { Database.containsDatabaseFiles(path: path) }

    /// A closed database with a hundred entries, in a table.
    init() throws {
        workspace = try Workspace()
        for number in 0..<100 { try workspace.database.put(key(number), bytes("value")) }
        try workspace.database.compact()
        try workspace.database.close()
    }

    private func openError(creating: Bool) -> LevelDBError? {
        failure { () throws(LevelDBError) in
            _ = try Database(path: path, options: Options(createIfMissing: creating))
        }
    }

    @Test("a directory without database files is absent or empty") func nothingThereIsAbsentOrEmpty() throws {
        let empty = try TemporaryDirectory(inMemory: true)
        #expect(Database.containsDatabaseFiles(path: empty.path) == .absentOrEmpty)
        #expect(Database.containsDatabaseFiles(path: "\(empty.path)/none") == .absentOrEmpty)
        for name in [
            "readme.txt", "1.txt", "x.ldb", ".ldb", "ldb", "MANIFEST-", "MANIFEST-x", "LOCK", "LOG", "LOG.old",
        ] {
            try Files.write("\(empty.path)/\(name)", bytes("x"))
        }
        #expect(Database.containsDatabaseFiles(path: empty.path) == .absentOrEmpty)
    }

    @Test("a database is found, whether open or closed") func aDatabaseIsFoundOpenOrClosed() throws {
        #expect(state == .database)
        try workspace.reopen()
        #expect(state == .database)
        #expect(try Database.fileState(path: path) == .database)
    }

    @Test func openingCompletesAnInterruptedCreation() throws {
        let cut = try TemporaryDirectory(inMemory: true)
        for name in ["LOCK", "LOG", "MANIFEST-000001", "000001.dbtmp"] {
            try Files.write("\(cut.path)/\(name)", bytes("x"))
        }
        #expect(Database.containsDatabaseFiles(path: cut.path) == .absentOrEmpty)
        let database = try Database(path: cut.path, options: Options(createIfMissing: true))
        try database.put(bytes("a"), bytes("1"))
        try database.close()
        #expect(Database.containsDatabaseFiles(path: cut.path) == .database)
    }

    /// LevelDB treats a directory without CURRENT as a missing database. Opening the directory would create an empty
    /// database there and delete the tables.
    @Test func aMissingCurrentFileIsDamageAndNoFileIsDeleted() throws {
        let current = try Files.read("\(path)/CURRENT")
        unlink("\(path)/CURRENT")
        let before = try workspace.files()
        #expect(state == .damaged)
        for creating in [false, true] {
            let error = openError(creating: creating)
            #expect(error?.code == .corruption)
            #expect(error?.operation == "open")
        }
        #expect(try workspace.files() == before)
        try Files.write("\(path)/CURRENT", current)
        try workspace.reopen()
        #expect(try workspace.database.get(key(99)) == bytes("value"))
    }

    @Test(arguments: ["", "\n", "MANIFEST", "MANIFEST-", "MANIFEST-\n", "MANIFEST-999999\n", "LOG\n", "../x\n", "\0\n"])
    func aCurrentFileThatNamesNoManifestIsDamage(text: String) throws {
        try Files.write("\(path)/CURRENT", bytes(text))
        #expect(state == .damaged)
        for creating in [false, true] { #expect(openError(creating: creating)?.code == .corruption) }
        #expect(try !workspace.files(endingWith: ".ldb").isEmpty)
    }

    @Test func aTruncatedCurrentFileIsDamage() throws {
        let whole = try Files.read("\(path)/CURRENT")
        for count in 0..<whole.count {
            try Files.write("\(path)/CURRENT", [UInt8](whole[..<count]))
            #expect(state == .damaged)
        }
        try Files.write("\(path)/CURRENT", whole + [UInt8](repeating: 0x0a, count: 1000))
        #expect(state == .damaged)
        try Files.write("\(path)/CURRENT", whole)
        #expect(state == .database)
    }

    @Test func aMissingManifestIsDamage() throws {
        for name in try workspace.files() where name.hasPrefix("MANIFEST-") { unlink("\(path)/\(name)") }
        #expect(state == .damaged)
        #expect(openError(creating: true)?.code == .corruption)
    }

    @Test func openingReportsAMissingTable() throws {
        for name in try workspace.files(endingWith: ".ldb") { unlink("\(path)/\(name)") }
        #expect(state == .database)
        let error = openError(creating: true)
        #expect(error?.code == .corruption)
        #expect(error?.message.contains("missing files") == true)
    }

    @Test func anUnreadableDirectoryIsNotTakenForEmpty() throws {
        let file = "\(workspace.directory.path)/file"
        try Files.write(file, bytes("x"))
        #expect(Database.containsDatabaseFiles(path: file) == .database)
        let error = failure { () throws(LevelDBError) in _ = try Database.fileState(path: file) }
        #expect(error?.code == .ioError)
        #expect(error?.message == "opendir: Not a directory")
        // If CURRENT is a directory, it can be opened, but not read.
        unlink("\(path)/CURRENT")
        mkdir("\(path)/CURRENT", 0o700)
        #expect(failure { () throws(LevelDBError) in _ = try Database.fileState(path: path) }?.code == .ioError)
        #expect(state == .database)
    }

    #if os(Linux)
        /// A check must not open LOCK while this process has the database open: closing that second descriptor would
        /// release the lock.
        @Test func checkingAnOpenDatabaseKeepsItsLock() throws {
            try workspace.reopen()
            func isLocked() throws -> Bool {
                var status = stat()
                try #require(lstat("\(path)/LOCK", &status) == 0)
                let locks = String(decoding: try Files.read("/proc/locks"), as: UTF8.self)
                return locks.split(separator: "\n").contains { $0.contains(":\(status.st_ino) ") }
            }
            try #require(try isLocked())
            #expect(state == .database)
            #expect(try isLocked())
            // Another attempt to open it must not open LOCK either.
            _ = openError(creating: true)
            #expect(try isLocked())
        }
    #endif
}
