import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of opening and closing larders.
@Suite struct EngineTests {
    @Test func openingALarderTwiceReturnsTheSameEngine() throws {
        let larder = try TestLarder()
        let first = try larder.engine()
        let second = try Engine.open(larder.path + "/../larder/.", options: larder.options)
        #expect(first === second)
        #expect(try first.database("books") === second.database("books"))
        larder.close()
        #expect(errorCode { _ = try second.database("books") } == .closed)
        let third = try Engine.open(larder.path, options: larder.options)
        #expect(third !== first)
        third.shutdown()
    }

    @Test func theLastReferenceShutsTheEngineDown() throws {
        let larder = try TestLarder { $0.backgroundMaintenance = true }
        weak var engine: Engine?
        weak var database: Database?
        weak var pipeline: CommitPipeline?
        weak var context: EngineContext?
        weak var store: EpochStore?
        do {
            let opened = try Engine.open(larder.path, options: larder.options, time: larder.time)
            engine = opened
            pipeline = opened.pipeline
            context = opened.context
            let books = try opened.openDatabase("books")
            database = books
            try books.put("a", "1")
            store = books.appliedState.store
            _ = try books.snapshot()
            _ = try books.cursor()
            _ = try books.purge()
            _ = try opened.openDatabase("other")
            _ = try opened.deleteDatabase("other")
        }
        #expect(engine == nil)
        #expect(database == nil)
        #expect(pipeline == nil)
        #expect(context == nil)
        #expect(store == nil)
        #expect(try larder.database().contents() == [:])
    }

    @Test func handlesOfAClosedLarderThrowClosed() throws {
        let larder = try TestLarder()
        let engine = try larder.engine()
        let database = try larder.database()
        try database.put("a", "1")
        let snapshot = try database.snapshot()
        let cursor = try #require(try database.cursor())
        let absent = try engine.database("absent")
        larder.close()
        engine.shutdown()
        #expect(errorCode { _ = try database.value("a") } == .closed)
        #expect(errorCode { try database.put("a", "2") } == .closed)
        #expect(errorCode { try database.setPolicy(.low) } == .closed)
        #expect(errorCode { _ = try database.purge() } == .closed)
        #expect(errorCode { _ = try database.count(includingExpired: true) } == .closed)
        #expect(errorCode { _ = try database.cursor() } == .closed)
        #expect(errorCode { _ = try snapshot.value("a") } == .closed)
        #expect(errorCode { _ = try cursor.next() } == .closed)
        #expect(errorCode { try absent.put("a", "1") } == .closed)
        #expect(errorCode { _ = try engine.database("books") } == .closed)
        #expect(errorCode { _ = try engine.database("new") } == .closed)
        #expect(errorCode { _ = try engine.deleteDatabase("books") } == .closed)
        #expect(engine.databases.isEmpty)
        #expect(try FileSystem.list(larder.path) == ["JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME", "books"])
        // Snapshots and cursors may be closed after the larder.
        snapshot.close()
        cursor.close()
    }

    @Test func appliedWritesAreCommittedAtShutdown() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let engine = try larder.engine()
        var tickets: [CommitTicket] = []
        for number in 0..<50 { tickets.append(try database.putLater("k\(number)", "v")) }
        larder.close()
        for ticket in tickets { try engine.pipeline.wait(for: ticket) }
        #expect(try larder.database().count(includingExpired: false) == 50)
    }

    @Test func shuttingDownUnderLoadLosesNothingThatWasAcknowledged() throws {
        for _ in 0..<5 {
            let larder = try TestLarder { $0.backgroundMaintenance = true }
            let database = try larder.database()
            let engine = try larder.engine()
            let acknowledged = Recorder<String>()
            let problems = Recorder<String>()
            onThreads(4) { thread in
                if thread == 0 {
                    while acknowledged.count < 50 { sched_yield() }
                    engine.shutdown()
                    return
                }
                for step in 0..<100_000 {
                    do throws(LarderError) {
                        try database.put("\(thread):\(step)", "v")
                        acknowledged.add("\(thread):\(step)")
                    } catch {
                        if error.code != .closed { problems.add("\(error)") }
                        return
                    }
                }
            }
            #expect(problems.all == [])
            larder.close()
            let contents = try larder.database().contents()
            #expect(acknowledged.all.allSatisfy { contents[$0] != nil })
        }
    }

    @Test func openingFromManyThreadsReturnsOneEngine() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        defer { directory.remove() }
        let path = directory.path + "/larder"
        for _ in 0..<20 {
            let engines = Recorder<Engine>()
            onThreads(4) { _ in
                var options = EngineOptions()
                options.backgroundMaintenance = false
                guard let engine = try? Engine.open(path, options: options) else { return }
                engines.add(engine)
            }
            let all = engines.all
            #expect(all.count == 4)
            #expect(all.allSatisfy { $0 === all[0] })
            engines.removeAll()
        }
    }

    /// One thread releases the last reference while another opens the larder. Opening waits until the first engine has
    /// shut down.
    @Test func openingWaitsUntilThePreviousEngineHasShutDown() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        defer { directory.remove() }
        let path = directory.path + "/larder"
        let problems = Recorder<String>()
        onThreads(3) { thread in
            var options = EngineOptions()
            options.backgroundMaintenance = thread == 0
            for step in 0..<30 {
                do throws(LarderError) {
                    let engine = try Engine.open(path, options: options)
                    try engine.openDatabase("books").put("\(thread)", "\(step)")
                } catch {
                    problems.add("\(error)")
                }
            }
        }
        #expect(problems.all == [])
        let engine = try Engine.open(path)
        #expect(try engine.database("books").contents() == ["0": "29", "1": "29", "2": "29"])
    }

    @Test("a larder cannot be opened in an invalid directory") func badDirectories() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        defer { directory.remove() }
        #expect(errorCode { _ = try Engine.open("") } == .invalidArgument)
        #expect(errorCode { _ = try Engine.open("a\0b") } == .invalidArgument)
        let file = directory.path + "/file"
        try Files.write(file, [])
        #expect(errorCode { _ = try Engine.open(file) } == .io)
        #expect(errorCode { _ = try Engine.open(file + "/below") } == .io)
        #expect(errorCode { _ = try Engine.open("/proc/larder") } == .io)
        try FileSystem.makeDirectory(directory.path + "/larder")
        try FileSystem.makeDirectory(directory.path + "/larder/LOCK")
        #expect(errorCode { _ = try Engine.open(directory.path + "/larder") } == .io)
        try Files.remove(directory.path + "/larder/LOCK")
        let engine = try Engine.open(directory.path + "/larder")
        engine.shutdown()
    }

    @Test func openingADatabaseOnManyThreadsReturnsOneObject() throws {
        let larder = try TestLarder()
        let engine = try larder.engine()
        let opened = Recorder<ObjectIdentifier>()
        onThreads(4) { _ in
            guard let database = try? engine.openDatabase("books") else { return }
            opened.add(ObjectIdentifier(database))
        }
        #expect(opened.count == 4)
        #expect(Set(opened.all).count == 1)
    }

    @Test("waiting for a pending write commits it") func settleAndTickets() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let pipeline = try larder.engine().pipeline
        #expect(pipeline.isDecided(.none))
        let ticket = try database.putLater("a", "1")
        #expect(pipeline.pendingByteCount > 0)
        // There is no background thread, so the waiting thread commits the write.
        try pipeline.waitForAllCommits()
        #expect(pipeline.isDecided(ticket))
        #expect(pipeline.pendingByteCount == 0)
        #expect(pipeline.everythingApplied == ticket)
    }

    /// If no caller waits for a commit, the pipeline's own thread commits and notifies the observers.
    @Test func observersAreNotifiedOfCommitsThatNoCallerWaitsFor() throws {
        final class Observer: CommitObserver {
            let lock = Lock()
            let notified = Condition()
            let upTo = Guarded<UInt64>(0)
            func commitsDecided(upTo sequence: UInt64, failure: LarderError?) {
                lock.withLock {
                    upTo.with { $0 = max($0, sequence) }
                    notified.broadcast()
                }
            }
        }
        let larder = try TestLarder()
        let database = try larder.database()
        let pipeline = try larder.engine().pipeline
        let observer = Observer()
        pipeline.add(observer: observer)
        for number in 0..<100 {
            let ticket = try database.putLater("k", "\(number)")
            pipeline.wake()
            observer.lock.lock()
            while observer.upTo.value < ticket.sequence { observer.notified.wait(observer.lock) }
            observer.lock.unlock()
        }
        pipeline.remove(observer: observer)
        #expect(try database.value("k") == "99")
    }

    @Test func writersWaitWhenTooManyBytesArePending() throws {
        let larder = try TestLarder { $0.pendingBytesMax = 1000 }
        let database = try larder.database()
        let pipeline = try larder.engine().pipeline
        #expect(!pipeline.isCongested)
        _ = try database.putLater("a", String(repeating: "x", count: 2000))
        #expect(pipeline.isCongested)
        try database.put("b", "1")
        #expect(!pipeline.isCongested)
        #expect(pipeline.pendingByteCount == 0)
    }
}
