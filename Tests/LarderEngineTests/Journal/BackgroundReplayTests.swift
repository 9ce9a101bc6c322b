import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the replay of the journal while the larder is already in use.
@Suite struct BackgroundReplayTests {
    private let failures = Recorder<LarderError.Code>()

    /// Returns a larder with the files that the next process finds if this one gets SIGKILL now. The larder is replayed
    /// in the background.
    /// - Parameter onReplayed: called when a database is replayed; may wait.
    private func restarted(
        _ larder: TestLarder, onReplayed: @escaping @Sendable (String) -> Void = { _ in },
        configure: (inout EngineOptions) -> Void = { _ in }
    ) throws -> TestLarder {
        try larder.crashCopy { options in
            options.onReplayFailure = { [failures] error in failures.add(error.code) }
            options.onReplayed = onReplayed
            configure(&options)
        }
    }

    /// Returns a larder like ``restarted(_:onReplayed:configure:)``, but it is replayed before it is used.
    private func restartedAsBefore(_ larder: TestLarder) throws -> TestLarder {
        try larder.crashCopy { options in
            options.onReplayFailure = nil
            options.onReplayed = { _ in }
        }
    }

    /// Returns the restarted larder with the databases `early` and `late`, whose replay waits at a gate after `early`.
    private func heldReplay(_ larder: TestLarder, at gate: Gate) throws -> TestLarder {
        try larder.database("early").put("k", "1")
        try larder.database("late").put("k", "1")
        let next = try restarted(larder) { if $0 == "early" { gate.pass() } }
        _ = try next.engine()
        gate.waitUntil()
        return next
    }

    @Test func aDatabaseIsUsableAsSoonAsItsPartIsReplayed() throws {
        let larder = try TestLarder()
        try larder.database("idle").put("k", "0")
        try larder.engine().save()
        let gate = Gate(isClosed: true)
        defer { gate.open() }
        let next = try heldReplay(larder, at: gate)
        let engine = try next.engine()
        let (idle, early, late) = (
            try engine.database("idle"), try engine.database("early"), try engine.database("late")
        )
        #expect(!engine.isReplayed && engine.isReplayed(idle) && engine.isReplayed(early) && !engine.isReplayed(late))
        #expect(!engine.isReplayed(try engine.database("new")))
        #expect(try idle.value("k") == "0")
        #expect(try early.value("k") == "1")
        try early.put("k", "2")
        try early.put("new", "1")
        try idle.remove("k")
        for third in [try restarted(next), try restartedAsBefore(next)] {
            #expect(try third.database("early").contents() == ["k": "2", "new": "1"])
            #expect(try third.database("late").contents() == ["k": "1"])
            #expect(try third.database("idle").contents() == [:])
        }
        gate.open()
        #expect(try late.value("k") == "1")
        #expect(try next.database("new").contents() == [:])
        #expect(try next.database("late").contents() == ["k": "1"])
        next.close()
        #expect(try next.database("early").contents() == ["k": "2", "new": "1"])
        #expect(try next.database("late").contents() == ["k": "1"])
        #expect(failures.all.isEmpty)
    }

    @Test func figuresDoNotWaitForTheReplay() throws {
        let larder = try TestLarder()
        let gate = Gate(isClosed: true)
        defer { gate.open() }
        let next = try heldReplay(larder, at: gate)
        let engine = try next.engine()
        _ = try engine.database("new")
        let progress = try #require(engine.replayProgress)
        #expect(progress.done > 0 && progress.done < progress.total)
        #expect(engine.databases.map(\.name) == ["early", "late"])
        _ = try engine.database("early").value("k")
        #expect(engine.statistics.hits.read() == 1)
        #expect(engine.writeFailure == nil && engine.memory.usedBytes >= 0)
        engine.changeMemoryLimit(to: 1 << 20)
        #expect(engine.memory.limitBytes == 1 << 20)
        gate.open()
        #expect(try engine.database("late").value("k") == "1")
        next.close()
        #expect(engine.replayProgress == nil)
    }

    /// In each round, a process is killed during its replay, after a random database was replayed. The process has
    /// written to the databases that were replayed before.
    @Test func replaysThatAreKilledLoseNothing() throws {
        let names = (0..<8).map { "d\($0)" }
        let filler = String(repeating: "x", count: 300)
        var random = SeededGenerator(seed: 11)
        var expected: [String: [String: String]] = [:]
        let first = try TestLarder {
            $0.checkpointBytes = 1 << 30
            $0.journalSegmentBytes = 1 << 19
        }
        func change(_ database: Database, _ value: String) throws {
            let key = "k\(Int.random(in: 0..<300, using: &random))"
            if random.oneIn(8) {
                try database.remove(key)
                expected[database.name]?[key] = nil
            } else {
                try database.put(key, value)
                expected[database.name, default: [:]][key] = value
            }
        }
        for number in 0..<12_000 {
            // The databases' parts end at different places.
            let name = names[Int.random(in: number / 1600..<8, using: &random)]
            try change(try first.database(name), "\(number)" + filler)
            if number == 6000 {
                _ = try first.database("d7").purge(.all(counting: false))
                expected["d7"] = [:]
            }
        }
        let isLong = try first.engine().journalByteCount > 3 << 20
        #expect(isLong)
        var (larder, previousGate) = (first, Gate())
        defer { previousGate.open() }
        for round in 0..<6 {
            let gate = Gate(isClosed: true)
            let last = names[Int.random(in: 0..<8, using: &random)]
            let next = try restarted(larder) { if $0 == last { gate.pass() } }
            previousGate.open()
            larder.close()
            (larder, previousGate) = (next, gate)
            let engine = try next.engine()
            gate.waitUntil()
            let databases = try names.map { try engine.database($0) }
            let replayed = databases.filter { engine.isReplayed($0) }
            #expect(replayed.contains { $0.name == last })
            for database in replayed {
                for number in 0..<300 {
                    let value = try database.value("k\(number)")
                    #expect(value == expected[database.name]?["k\(number)"])
                }
                for number in 0..<20 { try change(database, "\(round) \(number)") }
            }
        }
        let copies = [try restarted(larder), try restartedAsBefore(larder)]
        previousGate.open()
        for copy in copies + [larder] {
            for name in names {
                let contents = try copy.database(name).contents()
                #expect(contents == expected[name], "\(name)")
            }
        }
        #expect(failures.all.isEmpty)
    }

    @Test func factsAndTheTimeAreKnownBeforeTheReplay() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        let tags = try Tags(checking: [[7]])
        for key in ["purged", "kept"] {
            _ = try database.commit([Key(key)], loading: .none) { update in
                [1].withUnsafeBytes { update.put(0, payload: $0, tags: key == "purged" ? tags : nil) }
            }
        }
        try database.purge(.tags([[7]], soft: false))
        try larder.engine().ledger.set("fact", to: [8])
        // Too short for a mark of the time.
        larder.time.advance(milliseconds: 200)
        try database.put("late", "1")
        let stored = try #require(try database.get(Key("late"))).header.storedAt
        let gate = Gate(isClosed: true)
        defer { gate.open() }
        let next = try restarted(larder) { _ in gate.pass() }
        next.time.stepWall(milliseconds: -3_600_000)
        let engine = try next.engine()
        gate.waitUntil()
        #expect(engine.now() >= stored)
        #expect(try engine.ledger.value("fact") == [8])
        #expect(try engine.database("books").get(Key("purged")) == nil)
        #expect(try engine.database("books").get(Key("kept")) != nil)
        gate.open()
        next.close()
        #expect(failures.all.isEmpty)
    }

    @Test(arguments: [JournalDefect.damage, .cut, .none]) func aDefectiveJournalIsReplayedFirst(_ defect: JournalDefect)
        throws
    {
        let larder = try TestLarder {
            $0.journalSegmentBytes = 4096
            $0.onDamage = .salvage
        }
        for number in 0..<300 {
            try larder.database(number % 3 == 0 ? "a" : "b").put("k\(number)", "\(number)")
            if number == 200 { try larder.engine().ledger.set("fact", to: [8]) }
        }
        let copies = [try restarted(larder), try restartedAsBefore(larder)]
        for copy in copies {
            let segments = copy.journalSegments
            switch defect {
            case .damage: try Files.flip(segments[1], at: 2000)
            case .cut:
                try Files.truncate(
                    segments[segments.count - 1], to: try Files.read(segments[segments.count - 1]).count - 1)
            case .none: break
            }
            _ = try copy.engine()
        }
        if defect != .none { #expect(try copies[0].engine().isReplayed) }
        for name in ["a", "b"] {
            let contents = try copies.map { try $0.database(name).contents() }
            #expect(contents[0] == contents[1] && !contents[0].isEmpty)
        }
        let facts = try copies.map { try $0.engine().ledger.value("fact") }
        #expect(facts[0] == facts[1] && (facts[0] == nil) == (defect == .damage))
        let counts = try copies.map { copy in
            let statistics = try copy.engine().statistics
            return [statistics.journalDamages.read(), statistics.journalCutBytes.read()]
        }
        #expect(counts[0] == counts[1])
        #expect(failures.all.isEmpty)
    }

    enum JournalDefect { case damage, cut, none }

    @Test func aFailedReplayIsReportedAndChangesNoFile() throws {
        let larder = try TestLarder { $0.journalSegmentBytes = 4096 }
        for number in 0..<100 { try larder.database(number % 2 == 0 ? "a" : "b").put("k\(number)", "\(number)") }
        let count = larder.journalSegments.count
        let opened = Guarded(0)
        let faults = JournalFaults { call, _ in
            guard call == .open else { return nil }
            return opened.with { opened in
                opened += 1
                return opened > count ? .fail(EIO) : nil
            }
        }
        let next = try restarted(larder, configure: { $0.journalFaults = faults })
        let before = try Files.digest(next.path + "/JOURNAL")
        let isReplayed = try next.engine().isReplayed
        #expect(!isReplayed)
        // This waits for the thread, and must not write what is in memory to the databases.
        next.close()
        #expect(failures.all == [.io])
        #expect(try Files.digest(next.path + "/JOURNAL") == before)
        let third = try restarted(next, configure: { $0.journalFaults = nil })
        let contents = try ["a", "b"].map { try third.database($0).contents().count }
        #expect(contents == [50, 50])
        #expect(failures.all == [.io])
    }

    @Test func aShutdownWaitsForTheReplay() async throws {
        let larder = try TestLarder()
        let gate = Gate(isClosed: true)
        defer { gate.open() }
        let next = try heldReplay(larder, at: gate)
        let engine = try next.engine()
        try engine.database("early").put("k", "2")
        async let isDown: Void = onThread { engine.shutdown() }
        gate.open()
        try await isDown
        next.close { $0.onReplayed = { _ in } }
        #expect(try next.engine().journalByteCount == 0)
        #expect(try next.database("early").contents() == ["k": "2"])
        #expect(try next.database("late").contents() == ["k": "1"])
        #expect(failures.all.isEmpty)
    }
}
