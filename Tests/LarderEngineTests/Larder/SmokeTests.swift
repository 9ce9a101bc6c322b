import LarderEngine
import LarderTestSupport
import Testing

@Suite struct SmokeTests {
    @Test func entriesAreStoredReadExpiredAndPurged() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let time = ManualTimeSource()
        var options = EngineOptions()
        options.backgroundMaintenance = false
        let engine = try Engine.open(directory.path + "/larder", options: options, time: time)
        let database = try engine.openDatabase("books", policy: .high)
        try database.commit([Key("a")], loading: .none) { update in
            Array("one".utf8).withUnsafeBytes { update.put(0, payload: $0) }
        }
        #expect(try database.get(Key("a")).map { Array($0.payload) } == Array("one".utf8))
        let snapshot = try database.snapshot()
        time.advance(milliseconds: 59_999)
        #expect(try database.get(Key("a")) != nil)
        time.advance(milliseconds: 1)
        #expect(try database.get(Key("a")) == nil)
        #expect(try snapshot.get(Key("a")) == nil)
        #expect(try database.count(includingExpired: true) == 1)
        time.advance(milliseconds: 60_000)
        while engine.maintain() {}
        #expect(try database.count(includingExpired: true) == 0)
        #expect(engine.statistics.expiredSwept.read() == 1)
        for index in 0..<1000 {
            try database.commit([Key("k\(index)")], loading: .none) { update in
                Array("value \(index)".utf8).withUnsafeBytes { update.put(0, payload: $0) }
            }
        }
        let report = try database.purge()
        #expect(report.entries == 1000)
        #expect(throws: LarderError.self) { try snapshot.get(Key("k1")) }
        #expect(try database.count(includingExpired: true) == 0)
        engine.maintain()
        #expect(throws: LarderError.self) { try Engine.open("") }
        engine.shutdown()
        let again = try Engine.open(directory.path + "/larder", options: options, time: time)
        #expect(try again.database("books").count(includingExpired: true) == 0)
        #expect(try again.database("books").policy == .high)
        #expect(try again.deleteDatabase("books", counting: true).entries == 0)
        #expect(again.databases.isEmpty)
    }
}
