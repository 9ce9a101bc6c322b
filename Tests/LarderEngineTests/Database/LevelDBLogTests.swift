import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that LevelDB's own log loses no acknowledged data silently. Each problem with the log is reported as damage,
/// is a temporary failure of the system, or affects only data that was never acknowledged.
@Suite struct LevelDBLogTests {
    /// Returns a larder after a kill. The keys "old" and "gone" were stored; then "old" was overwritten and "gone"
    /// removed. Only LevelDB's log has these two changes.
    private func killed() throws -> TestLarder {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        try database.put("old", "1")
        try database.put("gone", "1")
        try larder.engine().save()
        larder.close()
        let again = try larder.database()
        try again.put("old", "2")
        try again.remove("gone")
        for number in 0..<100 { try again.put("k\(number)", String(repeating: "x", count: 1000)) }
        try larder.engine().save()
        #expect(try larder.engine().journalByteCount == 0)
        return larder
    }

    private func log(_ larder: TestLarder) throws -> String {
        let epoch = try larder.epochDirectory()
        return epoch + "/" + (try #require(try Files.names(in: epoch, endingWith: ".log").last))
    }

    private func check(_ larder: TestLarder) throws {
        let database = try larder.database()
        #expect(try database.value("old") == "2")
        #expect(try database.value("gone") == nil)
        #expect(try database.contents().count == 101)
    }

    /// After a failed write, one thread reopens LevelDB, which replaces the manifest; another thread records the
    /// manifest in SYNCED. Reopening must wait for the recording. If the recording fails, its error must be that of the
    /// failed write.
    @Test func reopeningLevelDBWaitsUntilItsFilesAreRecorded() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        try larder.engine().save()
        let store = try #require(database.durableState.store)
        let errors = Recorder<String>()
        let isDone = Guarded(false)
        onThreads(2) { thread in
            if thread == 0 {
                for _ in 0..<200 {
                    store.suspend(LarderError(.io, "pulled out", operation: "test"))
                    do { try store.recover() } catch { errors.add("\(error)") }
                }
                isDone.with { $0 = true }
            } else {
                while !isDone.value {
                    do {
                        try store.noteSynced(isReopening: true)
                    } catch {
                        if !"\(error)".contains("pulled out") { errors.add("\(error)") }
                    }
                }
            }
        }
        #expect(errors.all == [])
        #expect(try database.value("a") == "1")
    }

    @Test func anIntactLogIsReadCompletely() throws {
        let larder = try killed()
        try check(try larder.crashCopy())
    }

    @Test func aFlippedBitInTheLogIsDamage() throws {
        let larder = try killed()
        let count = try Files.read(log(larder)).count
        for offset in [0, 5, 6, 8, 30, count / 2, count - 1] {
            let crashCopy = try larder.crashCopy()
            try Files.flip(log(crashCopy), at: offset)
            let before = try crashCopy.tree()
            #expect(errorCode { _ = try crashCopy.database() } == .damaged, "\(offset)")
            crashCopy.close()
            #expect(try crashCopy.tree() == before, "\(offset)")
        }
    }

    @Test func aTruncatedOrMissingLogIsDamage() throws {
        let larder = try killed()
        let count = try Files.read(log(larder)).count
        for length in [0, 1, 7, 100, count / 2, count - 1] {
            let crashCopy = try larder.crashCopy()
            try Files.truncate(log(crashCopy), to: length)
            #expect(errorCode { _ = try crashCopy.database() } == .damaged, "\(length)")
        }
        let crashCopy = try larder.crashCopy()
        try Files.remove(log(crashCopy))
        #expect(errorCode { _ = try crashCopy.database() } == .damaged)
    }

    @Test func aTruncatedManifestIsDamage() throws {
        let larder = try killed()
        let manifest = try larder.manifest()
        let count = try Files.read(larder.epochDirectory() + "/" + manifest).count
        for length in [0, 7, count / 2, count - 1] {
            let crashCopy = try larder.crashCopy()
            try Files.truncate(crashCopy.epochDirectory() + "/" + manifest, to: length)
            #expect(errorCode { _ = try crashCopy.database() } == .damaged, "\(length)")
        }
    }

    /// A read that fails, as with EIO or EMFILE, may succeed later. The test replaces the log by a directory, which no
    /// user can read as a file.
    @Test func aLogThatCannotBeReadIsNotDamageAndIsReadAgain() throws {
        let larder = try killed()
        let crashCopy = try larder.crashCopy()
        let log = try log(crashCopy)
        try FileSystem.rename(log, to: log + ".kept")
        try FileSystem.makeDirectory(log)
        let before = try Files.names(in: crashCopy.epochDirectory(), endingWith: "")
        let other = try crashCopy.database("other")
        for _ in 0..<2 {
            #expect(errorCode { _ = try crashCopy.database() } == .io)
            try other.put("a", "1")
            try crashCopy.maintain()
        }
        #expect(try Files.names(in: crashCopy.epochDirectory(), endingWith: "") == before)
        try Files.remove(log)
        try FileSystem.rename(log + ".kept", to: log)
        try check(crashCopy)
    }

    /// Data after the synced length was being written when the machine stopped.
    @Test func aTornTailAfterTheSyncedPartIsNotDamage() throws {
        let larder = try killed()
        let whole = try Files.read(log(larder))
        let tails: [[UInt8]] = [
            [1, 2, 3], Array(repeating: 0xee, count: 5000), Array(repeating: 0, count: 40_000),
            Array(whole.prefix(500)),
        ]
        for tail in tails {
            let crashCopy = try larder.crashCopy()
            var torn = tail
            if torn.count == 500 { torn[100] ^= 1 }
            try Files.write(log(crashCopy), whole + torn)
            try check(crashCopy)
            crashCopy.close()
            try check(crashCopy)
        }
    }

    /// A flipped bit is also found when the files are reopened after a failed write.
    @Test func aFlippedBitInTheLogIsFoundOnReopening() throws {
        let larder = try killed()
        let database = try larder.database()
        let store = try #require(database.durableState.store)
        store.suspend(LarderError(.io, "a test", operation: "write"))
        try Files.flip(log(larder), at: 2000)
        #expect(errorCode { try database.put("new", "1") } == .damaged)
        #expect(errorCode { _ = try database.contents() } != nil)
        #expect(store.knownDamage?.code == .damaged)
    }

    /// Without SYNCED, as in epochs of earlier versions, the synced length is unknown, so every defect of the log is
    /// damage.
    @Test func withoutASyncedFileAnyDefectOfTheLogIsDamage() throws {
        let larder = try killed()
        for isFlipped in [false, true] {
            let crashCopy = try larder.crashCopy()
            try Files.remove(crashCopy.epochDirectory() + "/SYNCED")
            if isFlipped {
                try Files.flip(log(crashCopy), at: 2000)
                #expect(errorCode { _ = try crashCopy.database() } == .damaged)
            } else {
                try check(crashCopy)
            }
        }
    }

    /// Creating the files of a purged database reopens LevelDB. The new log must be recorded in SYNCED before the first
    /// write; otherwise an incomplete end after a power failure would count as damage.
    @Test func theNewLogOfAPurgedDatabaseIsRecordedBeforeItsFirstWrite() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        try database.put("old", "1")
        _ = try database.purge(.all(counting: false))
        let store = try #require(database.durableState.store)
        #expect(!store.isMade)
        let batch = LarderLevelDB.WriteBatch()
        batch.put([KeyKind.metadata, 1], [1])
        try store.write(batch, sync: false)
        let note = try #require(SyncedFiles(parsing: try Files.read(larder.epochDirectory() + "/SYNCED")))
        let manifest = try #require(try ManifestScan.scan(directory: larder.epochDirectory()))
        #expect(note.manifest.number == manifest.number)
        #expect(note.logs == [manifest.logNumber: 0])
        let crashCopy = try larder.crashCopy()
        let log = try log(crashCopy)
        try Files.flip(log, at: try Files.read(log).count - 1)
        #expect(try crashCopy.database().contents() == [:])
    }

    /// Journal segments stay until SYNCED records the LevelDB files that have their entries.
    @Test func journalSegmentsStayUntilSyncedFilesAreRecorded() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        let note = try larder.epochDirectory() + "/SYNCED"
        try Files.remove(note)
        try FileSystem.makeDirectory(note)
        #expect(errorCode { try larder.engine().save() } == .io)
        #expect(try larder.engine().journalByteCount > 0)
        try Files.remove(note)
        try larder.engine().save()
        #expect(try larder.engine().journalByteCount == 0)
        let synced = try #require(SyncedFiles(parsing: try Files.read(note)))
        #expect(try synced.logs.values.max() == Files.read(log(larder)).count)
    }

    @Test func theSyncedFileIsReadBackAsWritten() throws {
        var manifest = ManifestScan(number: 4)
        manifest.log.goodBytes = 1289
        let files = SyncedFiles(manifest, logs: [6: 20480, 7: 0])
        #expect(SyncedFiles(parsing: Array(files.text.utf8)) == files)
        var bytes = Array(files.text.utf8)
        for index in bytes.indices {
            bytes[index] ^= 1
            #expect(SyncedFiles(parsing: bytes) == nil, "\(index)")
            bytes[index] ^= 1
        }
        for count in bytes.indices { #expect(SyncedFiles(parsing: Array(bytes.prefix(count))) == nil) }
    }
}
