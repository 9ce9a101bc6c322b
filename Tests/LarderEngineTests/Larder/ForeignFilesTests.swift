import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of a directory that a user opens as a larder by mistake, and that has other files.
@Suite struct ForeignFilesTests {
    private func file(_ path: String) throws {
        _ = try FileSystem.replace(path, with: Array("precious".utf8))
    }

    private func make() throws -> TestLarder {
        let larder = try TestLarder { $0.onDamage = .salvage }
        try FileSystem.makeDirectories(larder.path + "/projects/src")
        try file(larder.path + "/projects/src/main.c")
        try FileSystem.makeDirectories(larder.path + "/empty")
        try file(larder.path + "/notes")
        return larder
    }

    private func expectUntouched(_ larder: TestLarder) throws {
        #expect(try FileSystem.read(larder.path + "/projects/src/main.c") == Array("precious".utf8))
        #expect(try FileSystem.read(larder.path + "/notes") == Array("precious".utf8))
        #expect(!FileSystem.exists(larder.path + "/DAMAGED"))
    }

    @Test func foreignDirectoriesAreNotDatabases() throws {
        let larder = try make()
        #expect(try larder.engine().databases.isEmpty)
        #expect(larder.events.contains("/projects is not a database of this larder; it is ignored"))
        for database in try larder.engine().databases { _ = try database.purge() }
        for name in ["projects", "notes"] {
            let database = try larder.engine().database(name)
            #expect(try database.get(Key("k")) == nil)
            #expect(try database.purge().entries == 0)
            let error = #expect(throws: LarderError.self) { try larder.database(name) }
            #expect(error?.code == .io)
            #expect(error?.message.contains("does not belong to this larder; choose another name") == true)
            #expect(throws: LarderError.self) { try larder.engine().deleteDatabase(name) }
        }
        try expectUntouched(larder)
    }

    @Test func anEmptyDirectoryBecomesADatabase() throws {
        let larder = try make()
        try larder.database("empty").put("k", "v")
        larder.close()
        #expect(try larder.engine().databases.map(\.name) == ["empty"])
        #expect(try larder.database("empty").value("k") == "v")
        try expectUntouched(larder)
    }

    /// A directory whose name is a year is never mistaken for an epoch, a LevelDB whose directory name is a number.
    @Test func aDirectoryNamedLikeAYearIsNotTakenForADatabase() throws {
        let larder = try make()
        let photo = larder.path + "/photos/2023/beach.jpg"
        try FileSystem.makeDirectories(larder.path + "/photos/2023")
        try file(photo)
        #expect(try larder.engine().databases.isEmpty)
        _ = try larder.engine().database("photos").purge()
        #expect(errorCode { _ = try larder.engine().deleteDatabase("photos") } == .noSuchDatabase)
        #expect(errorCode { _ = try larder.database("photos") } == .io)
        try larder.maintain()
        #expect(try FileSystem.read(photo) == Array("precious".utf8))
        try expectUntouched(larder)
    }

    /// A database directory that has an epoch (a LevelDB) but no POINTER is damaged.
    @Test func aDatabaseWithoutAPointerFileIsDamaged() throws {
        let larder = try make()
        try larder.database("books").put("k", "v")
        larder.close()
        try FileSystem.removeTree(larder.path + "/books/" + PointerFile.name)
        #expect(try larder.engine().databases.map(\.name) == ["books"])
        #expect(try larder.database("books").get(Key("k")) != nil)
        #expect(larder.events.contains("was damaged (the database is damaged: POINTER is missing"))
        #expect(try FileSystem.read(larder.path + "/projects/src/main.c") == Array("precious".utf8))
    }

    /// The names of databases without files are forgotten once they are no longer in use.
    @Test func unusedDatabaseNamesAreForgotten() throws {
        let larder = try TestLarder()
        let books = try larder.database("books")
        try books.put("k", "v")
        let held = try larder.engine().database("held")
        weak let first = try larder.engine().database("first")
        for index in 0..<5000 { _ = try larder.engine().database("name\(index)") }
        #expect(first == nil)
        #expect(try larder.engine().database("books") === books)
        #expect(try larder.engine().database("held") === held)
        #expect(try books.value("k") == "v")
        try larder.database("held").put("k", "w")
        #expect(try held.value("k") == "w")
    }
}
