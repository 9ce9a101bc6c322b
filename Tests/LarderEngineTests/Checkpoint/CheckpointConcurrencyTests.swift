import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that run checkpoints continuously, concurrently with all other operations.
@Suite struct CheckpointConcurrencyTests {
    private static let rounds = 600

    private static func number(_ text: String?) -> Int { text.flatMap { Int($0.prefix { $0 != "x" }) } ?? 0 }

    /// A thread with keys of its own in a shared database, and with a database of its own. It writes to both, and
    /// checks what it reads.
    private struct Worker {
        let index: Int
        let engine: Engine
        let errors: Recorder<String>

        func note(_ text: String) { errors.add("worker \(index): \(text)") }

        /// Writes batches of increasing numbers, and reads them with all kinds of reads.
        func run() {
            do {
                let shared = try engine.openDatabase("shared", policy: .never)
                let keys = (0..<4).map { "w\(index):\($0)" }
                for round in 1...CheckpointConcurrencyTests.rounds {
                    let value = "\(round)" + String(repeating: "x", count: round % 7 == 0 ? 900 : round % 50)
                    try shared.commit(keys.map { Key($0) }, loading: round % 3 == 0 ? .records : .none) { update in
                        for place in keys.indices {
                            Array(value.utf8).withUnsafeBytes { update.put(place, payload: $0) }
                        }
                    }
                    if round % 4 == 0 { try shared.putAhead(keys[0], value) }
                    try look(shared, keys, round)
                    if round % 10 == index { try own(round) }
                    if round % 25 == 0 { try removeAndPutBack(shared, keys, value) }
                }
            } catch {
                note("\(error)")
            }
        }

        private func look(_ shared: Database, _ keys: [String], _ round: Int) throws {
            for key in keys where try number(shared.value(key)) != round { note("\(key) is not \(round)") }
            guard round % 5 == 0 else { return }
            let snapshot = try shared.snapshot()
            let entries = round % 2 == 0 ? try snapshot.contents() : try shared.contents()
            for key in keys where number(entries[key]) != round { note("\(key) is not \(round) in a view") }
            // The entries have either all or none of each batch of the other threads.
            for other in 0..<3 {
                let seen = Set((0..<4).map { entries["w\(other):\($0)"] })
                if seen.count != 1 { note("half a batch of \(other): \(seen)") }
            }
        }

        private func removeAndPutBack(_ shared: Database, _ keys: [String], _ value: String) throws {
            try shared.commit(keys.map { Key($0) }, loading: .none) { update in
                for place in keys.indices { update.remove(place) }
            }
            if try shared.value(keys[0]) != nil { note("\(keys[0]) was removed") }
            try shared.commit(keys.map { Key($0) }, loading: .records) { update in
                if update.current(0) != nil { note("\(keys[0]) was removed, and is in an update") }
                for place in keys.indices { Array(value.utf8).withUnsafeBytes { update.put(place, payload: $0) } }
            }
        }

        /// Purges a database that no other thread uses, changes its policy, deletes it and creates it again.
        private func own(_ round: Int) throws {
            let name = "own\(index)"
            let own = try engine.openDatabase(name)
            try own.put("a", "\(round)")
            try own.setPolicy(round % 20 < 10 ? .never : .lowest)
            if try number(own.value("a")) != round { note("\(name) lost \(round)") }
            if round % 30 < 10 {
                _ = try own.purge(.all(counting: round % 20 < 10))
                if try own.count(includingExpired: true) != 0 { note("\(name) has entries after a purge") }
            } else if round % 30 < 20 {
                _ = try engine.deleteDatabase(name)
                if try engine.openDatabase(name).value("a") != nil { note("\(name) has entries after its deletion") }
            }
            try engine.openDatabase(name).put("b", "\(round)")
        }

        private func number(_ text: String?) -> Int { CheckpointConcurrencyTests.number(text) }
    }

    @Test(arguments: [0, 3000, 16 << 20])
    func readsAreConsistentDuringCheckpoints(memoryBytes: Int) throws {
        let larder = try TestLarder {
            $0.backgroundMaintenance = true
            $0.maintenanceMilliseconds = 1
            $0.checkpointBytes = 4000
            $0.journalSegmentBytes = 2000
            $0.memoryBytes = memoryBytes
            $0.pinnedBytesMin = 500
            $0.writeBufferBytes = 64 << 10
        }
        let engine = try larder.engine()
        let errors = Recorder<String>()
        onThreads(3) { Worker(index: $0, engine: engine, errors: errors).run() }
        #expect(errors.all.prefix(5).isEmpty, "\(errors.all.prefix(5))")
        #expect(engine.statistics.checkpoints.read() > 0)
        #expect(engine.statistics.journalRewrites.read() > 0)
        larder.close()
        let contents = try larder.database("shared").contents()
        for worker in 0..<3 {
            for part in 0..<4 { #expect(Self.number(contents["w\(worker):\(part)"]) == Self.rounds) }
        }
    }

    /// Writers wait while the journal is full, and then continue.
    @Test(arguments: [false, true])
    func writersContinueAfterWaitingForACheckpoint(hasThreads: Bool) throws {
        let larder = try TestLarder {
            $0.backgroundMaintenance = hasThreads
            $0.checkpointBytes = 1000
            $0.journalSegmentBytes = 64 << 10
        }
        let database = try larder.database()
        let value = String(repeating: "x", count: 30_000)
        let errors = Recorder<String>()
        // Writes four times the size at which the journal is full.
        onThreads(4) { thread in
            do {
                for number in 0..<40 { try database.put("\(thread):\(number)", value) }
            } catch {
                errors.add("\(error)")
            }
        }
        #expect(errors.all.isEmpty, "\(errors.all.prefix(3))")
        #expect(try database.count(includingExpired: true) == 160)
        // Because writers wait, the journal does not grow much beyond its limit.
        #expect(try larder.engine().journalByteCount < 2 << 20)
    }

    /// Event loops do not run checkpoints. They are notified when the journal has space again.
    @Test func observersAreNotifiedWhenTheJournalHasSpaceAgain() throws {
        final class Ear: CommitObserver {
            let calls = Guarded(0)
            func commitsDecided(upTo sequence: UInt64, failure: LarderError?) {}
            func congestionMayBeOver() { calls.with { $0 += 1 } }
        }
        let larder = try TestLarder { $0.checkpointBytes = 1000 }
        let database = try larder.database()
        let pipeline = try larder.engine().pipeline
        let ear = Ear()
        pipeline.add(observer: ear)
        let value = String(repeating: "x", count: 300_000)
        var count = 0
        while !pipeline.isCongested, count < 100 {
            try pipeline.wait(for: database.putLater("\(count)", value))
            count += 1
        }
        #expect(pipeline.isCongested)
        #expect(ear.calls.value == 0)
        _ = try larder.engine().maintain()
        #expect(ear.calls.value == 1)
        #expect(!pipeline.isCongested)
        pipeline.remove(observer: ear)
    }
}
