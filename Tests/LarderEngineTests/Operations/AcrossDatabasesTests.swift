import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of commands on keys of two databases, which are atomic and a single commit unit.
@Suite struct AcrossDatabasesTests {
    /// Moves a key to another database, as the command MOVE does.
    private func move(
        _ key: String, from source: Database, to target: Database, in engine: Engine
    ) throws -> CommitTicket {
        let ticket = try engine.change(key, in: source, and: target) {
            guard let record = $0.current(0), $1.current(0) == nil else { return }
            $0.remove(0)
            $1.place(0, record)
        }
        guard let ticket else { preconditionFailure("only calls that must not read from disk return nil") }
        return ticket
    }

    @Test("a key can be moved between two databases in both directions", arguments: [false, true])
    func updatesInBothDirections(_ isFirst: Bool) throws {
        let larder = try TestLarder()
        let databases = [try larder.database("a"), try larder.database("b")]
        let (source, target) = isFirst ? (databases[0], databases[1]) : (databases[1], databases[0])
        try source.put("k", "v")
        try larder.engine().pipeline.wait(for: try move("k", from: source, to: target, in: larder.engine()))
        #expect(try source.value("k") == nil)
        #expect(try target.value("k") == "v")
        larder.close()
        #expect(try larder.database("a").value("k") == (isFirst ? nil : "v"))
        #expect(try larder.database("b").value("k") == (isFirst ? "v" : nil))
    }

    /// A move first reads entries that are only in LevelDB.
    @Test("entries that are only on disk can be moved between databases") func coldEntries() throws {
        let larder = try TestLarder { $0.memoryBytes = 0 }
        let (source, target) = (try larder.database("a"), try larder.database("b"))
        try source.put("k", "v")
        try target.put("taken", "t")
        try source.put("taken", "s")
        for database in [source, target] { _ = try database.checkpointer.flush(database) }
        #expect(try larder.engine().change("k", in: source, and: target, .memoryOnly) { _, _ in } == nil)
        _ = try move("k", from: source, to: target, in: larder.engine())
        _ = try move("taken", from: source, to: target, in: larder.engine())
        #expect(try source.value("k") == nil)
        #expect(try target.value("k") == "v")
        #expect(try source.value("taken") == "s")
        #expect(try target.value("taken") == "t")
    }

    /// A commit that fails is rolled back in both databases.
    @Test func aFailedMoveIsRolledBackInBothDatabases() throws {
        let fault = FailingCommitTests.Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let (source, target) = (try larder.database("a"), try larder.database("b"))
        try source.put("k", "v")
        fault.isOn.value = true
        let ticket = try move("k", from: source, to: target, in: larder.engine())
        #expect(errorCode { try larder.engine().pipeline.wait(for: ticket) } == .commitFailed)
        fault.isOn.value = false
        #expect(try source.value("k") == "v")
        #expect(try target.value("k") == nil)
    }

    /// An entry that two threads move back and forth is always in exactly one of the two databases.
    @Test func concurrentMovesKeepAnEntryInExactlyOneDatabase() throws {
        let larder = try TestLarder()
        let (left, right) = (try larder.database("left"), try larder.database("right"))
        let engine = try larder.engine()
        for index in 0..<8 { try left.put("k\(index)", "v") }
        let movers = (0..<2).map { mover in
            WorkThread(name: "mover") {
                let (source, target) = mover == 0 ? (left, right) : (right, left)
                for round in 0..<500 { _ = try? self.move("k\(round % 8)", from: source, to: target, in: engine) }
            }
        }
        for mover in movers { mover.join() }
        for index in 0..<8 {
            let (inLeft, inRight) = (try left.value("k\(index)"), try right.value("k\(index)"))
            #expect([inLeft, inRight].compactMap { $0 } == ["v"])
        }
    }
}
