import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of states in which a crash may leave the directory. The tests create these states themselves.
@Suite struct CrashTests {
    private func larder() throws -> TestLarder {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "1")
        larder.close()
        return larder
    }

    @Test("a crash between creating an epoch and writing POINTER changes nothing")
    func betweenTheNewEpochAndThePointer() throws {
        let larder = try larder()
        let current = try larder.epochDirectory()
        // Adds three new epochs (directories of LevelDB): a complete one, an empty one and an incomplete one.
        try Files.copy(current, to: larder.directory(of: "books") + "/99999999999999")
        try FileSystem.makeDirectory(larder.directory(of: "books") + "/99999999999998")
        try FileSystem.makeDirectory(larder.directory(of: "books") + "/99999999999997")
        try Files.write(larder.directory(of: "books") + "/99999999999997/MANIFEST-000001", [1, 2, 3])
        try Files.write(larder.directory(of: "books") + "/POINTER.new", Array("larder-database 1\nepoch 9".utf8))
        #expect(try larder.database().contents() == ["a": "1"])
        #expect(try larder.database().policy == .high)
        #expect(try larder.epochs().count == 1)
        #expect(try larder.database().purge().entries == 1)
        #expect(try larder.database().contents() == [:])
    }

    @Test("a crash between writing POINTER and removing the old epoch completes the purge")
    func betweenThePointerAndTheRemovalOfTheOldEpoch() throws {
        let larder = try larder()
        let old = try larder.epochDirectory()
        let kept = larder.parent + "/kept"
        try Files.copy(old, to: kept)
        _ = try larder.database().purge()
        larder.close()
        try Files.copy(kept, to: old)
        #expect(try larder.database().contents() == [:])
        #expect(try larder.database().policy == .high)
        #expect(try larder.epochs() == [], "the new epoch is empty")
    }

    @Test("a crash while a database is created leaves no database") func inTheMiddleOfCreating() throws {
        let larder = try larder()
        try FileSystem.makeDirectory(larder.path + "/.creating-new-5")
        try Files.write(larder.path + "/.creating-new-5/POINTER", [0])
        try Files.copy(larder.directory(of: "books"), to: larder.path + "/.creating-other-7")
        let engine = try larder.engine()
        #expect(engine.databases.map(\.name) == ["books"])
        #expect(try FileSystem.list(larder.path) == ["JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME", "books"])
        #expect(try larder.database("new").contents() == [:])
    }

    @Test("a crash while a database is deleted completes the deletion") func inTheMiddleOfDeleting() throws {
        let larder = try larder()
        try FileSystem.rename(larder.directory(of: "books"), to: larder.path + "/.deleted-books-12")
        #expect(try larder.engine().databases.isEmpty)
        #expect(try FileSystem.list(larder.path) == ["JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME"])
    }

    @Test func foreignFilesAreNotChanged() throws {
        let larder = try larder()
        try Files.write(larder.path + "/notes.txt", [1])
        try Files.write(larder.path + "/README", [1])
        try FileSystem.makeDirectory(larder.path + "/Photos")
        try Files.write(larder.directory(of: "books") + "/notes", [1])
        let engine = try larder.engine()
        #expect(engine.databases.map(\.name) == ["books"])
        #expect(try larder.database().contents() == ["a": "1"])
        // If a file has the name of the database, opening the database fails and the file stays.
        #expect(errorCode { _ = try larder.database("notes.txt") } == .io)
        #expect(errorCode { _ = try larder.database("notes.txt") } == .io)
        larder.close()
        let names = try FileSystem.list(larder.path)
        #expect(
            Set(names) == ["JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME", "Photos", "README", "books", "notes.txt"])
    }

    /// Commits without sync are already written to the files, so they survive SIGKILL.
    @Test func acknowledgedWritesSurviveAKill() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for number in 0..<100 { try database.put("k\(number)", "\(number)") }
        // A copy of the directory is what the next process would find after SIGKILL now.
        let copy = larder.parent + "/copy"
        try Files.copy(larder.path, to: copy)
        let engine = try Engine.open(copy, options: larder.options, time: larder.time)
        defer { engine.shutdown() }
        #expect(try engine.database("books").count(includingExpired: false) == 100)
    }
}
