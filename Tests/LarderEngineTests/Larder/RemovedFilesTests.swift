import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of files that other programs remove, move or replace while the larder is open.
@Suite struct RemovedFilesTests {
    private func refusal(_ body: () throws -> Void) -> LarderError? {
        do {
            try body()
            return nil
        } catch {
            return error as? LarderError
        }
    }

    @Test(arguments: ["", "/JOURNAL"]) func writesAreRefusedWhenTheLarderIsRemoved(_ part: String) throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("k", "v")
        try FileSystem.removeTree(larder.path + part)
        try larder.maintain()
        let error = try #require(refusal { try database.put("lost", "v") })
        #expect(error.code == .writesSuspended && error.message.contains("removed or replaced"))
        #expect(refusal { try larder.engine().database("other").put("lost", "v") } != nil)
        #expect(refusal { try database.checkpointer.checkpoint() }?.code == .writesSuspended)
        #expect(larder.events.contains("were removed or replaced while they were open"))
        #expect(larder.events.contains("a restart without them loses the writes that they contain"))
        #expect(try larder.engine().writeFailure?.systemErrorNumber == ENOENT)
        #expect(try database.value("k") == "v", "the entry is still in memory")
    }

    @Test func aCheckpointNoticesThatTheLarderIsRemoved() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("k", "v")
        try FileSystem.removeTree(larder.path)
        #expect(refusal { try database.checkpointer.checkpoint() }?.code == .writesSuspended)
        #expect(refusal { try database.put("lost", "v") }?.code == .writesSuspended)
    }

    @Test func aReplacedLarderRefusesWrites() throws {
        let larder = try TestLarder()
        try larder.database().put("k", "v")
        let away = larder.path + "-away"
        try FileSystem.rename(larder.path, to: away)
        try FileSystem.makeDirectory(larder.path)
        try FileSystem.makeDirectory(larder.path + "/JOURNAL")
        try larder.maintain()
        #expect(refusal { try larder.database().put("lost", "v") }?.code == .writesSuspended)
        try FileSystem.removeTree(larder.path)
        // After the directory was moved back, the larder continues and has all entries.
        try FileSystem.rename(away, to: larder.path)
        try larder.maintain()
        try larder.database().put("l", "w")
        #expect(larder.events.contains("files are back"))
        larder.close()
        #expect(try larder.database().contents() == ["k": "v", "l": "w"])
    }

    @Test("the next start reports a removed database, and not a deleted one")
    func removedDatabase() throws {
        let larder = try TestLarder()
        for name in ["deleted", "kept", "lost"] { try larder.database(name).put("k", "v") }
        _ = try larder.engine().deleteDatabase("deleted")
        #expect(try SequencesFile.read(in: larder.path)?.databases == ["kept", "lost"])
        let killed = try larder.crashCopy()
        larder.close()
        for copy in [larder, killed] {
            try FileSystem.rename(copy.path + "/lost", to: copy.path + "-lost")
            for start in 0..<2 {
                #expect(try copy.engine().databases.map(\.name) == ["kept"])
                #expect(try copy.engine().statistics.databasesMissing.read() == (start == 0 ? 1 : 0))
                copy.close()
            }
            let reports = copy.events.all.filter { $0.message.contains("is lost: its files are missing from ") }
            #expect(reports.map(\.level) == [.error], "reported once")
            #expect(reports.first?.message.hasPrefix("database 'lost' ") == true)
            try FileSystem.rename(copy.path + "-lost", to: copy.path + "/lost")
            // Its operations were in the journal, unless the larder had been closed.
            let lacks = copy === killed
            for start in 0..<2 {
                #expect(try copy.engine().statistics.databasesMissing.read() == (start == 0 && lacks ? 1 : 0))
                copy.close()
            }
            let back = copy.events.all.filter { $0.message.contains("is back after it was lost") }
            #expect(back.map(\.level) == (lacks ? [.error] : []), "reported once")
        }
        #expect(try SequencesFile.read(in: larder.path)?.databases == ["kept", "lost"])
        let copied = try larder.engine().withImage(adding: []) { try SequencesFile.read(in: $0)?.databases }
        #expect(copied == ["kept", "lost"])
    }

    @Test("control operations do not change a larder that has replaced an open one", arguments: [false, true])
    func controlOperationsOnAReplacedLarder(isNoticed: Bool) throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("k", "old")
        try larder.engine().save()
        let away = larder.path + "-away"
        try FileSystem.rename(larder.path, to: away)
        // Puts a copy in place of the larder. Like a restored backup, the copy has the same names and numbers.
        let copied = try ChildProcess.run("cp", ["-a", away, larder.path])
        #expect(copied.end == .exited(0))
        if isNoticed { try larder.maintain() }
        let before = try FileSystem.list(larder.path).sorted()
        #expect(refusal { _ = try database.purge() } != nil)
        #expect(refusal { try database.setPolicy(.high) } != nil)
        #expect(refusal { try database.purge(.tags([[1]], soft: false)) } != nil)
        #expect(refusal { try larder.database("other").put("a", "b") } != nil)
        #expect(refusal { _ = try database.delete(counting: false) } != nil)
        #expect(try FileSystem.list(larder.path).sorted() == before)
        larder.close()
        #expect(try larder.database().contents() == ["k": "old"])
        #expect(try larder.database().policy == .lowest)
    }

    @Test("a purge does not change files that have replaced a database") func purgeOfAReplacedDatabase() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("k", "old")
        _ = try database.flushedStore()
        let (place, away) = (larder.path + "/" + database.name, larder.path + "/../away")
        try FileSystem.rename(place, to: away)
        let copied = try ChildProcess.run("cp", ["-a", away, place])
        #expect(copied.end == .exited(0))
        #expect(refusal { _ = try database.purge() }?.message.contains("removed or replaced") == true)
        #expect(try FileSystem.list(place).sorted() == FileSystem.list(away).sorted())
    }

    @Test func aDatabaseWithoutItsDirectoryRefusesWrites() throws {
        let larder = try TestLarder()
        let (database, other) = (try larder.database("a"), try larder.database("b"))
        for one in [database, other] {
            try one.put("k", "v")
            _ = try one.flushedStore()
        }
        try database.put("later", "v")
        let away = larder.path + "/../away"
        try FileSystem.rename(larder.path + "/a", to: away)
        try larder.maintain()
        let error = try #require(refusal { try database.put("lost", "v") })
        #expect(error.code == .writesSuspended && error.message.contains("its directory"))
        #expect(larder.events.contains("was removed or replaced while it was open"))
        #expect(try database.value("later") == "v")
        try other.put("l", "v")
        // A checkpoint keeps journal entries that could not be written to the missing database.
        try other.checkpointer.checkpoint()
        let saved = try #require(refusal { try larder.engine().save() })
        #expect(saved.code == .writesSuspended && saved.operation == "save" && saved.database == "a")
        #expect(saved.message.contains("Put it back: a restart without it loses the database"))
        try FileSystem.rename(away, to: larder.path + "/a")
        try database.prepare(forWriting: true)
        #expect(larder.events.contains("database 'a' has its directory \(larder.path)/a"))
        try larder.engine().save()
        try database.put("last", "v")
        larder.close()
        #expect(try larder.database("a").contents() == ["k": "v", "later": "v", "last": "v"])
        #expect(try larder.database("b").contents() == ["k": "v", "l": "v"])
    }
}
