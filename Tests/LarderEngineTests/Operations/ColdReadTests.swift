import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of reads of entries that are only in LevelDB.
@Suite struct ColdReadTests {
    private func read(_ database: Database, _ key: String, fillCache: Bool = true) throws -> String? {
        var text: String?
        var ticket = CommitTicket.none
        let outcome = try Array(key.utf8).withUnsafeBytes { key in
            try database.read(key, .mayBlock, fillCache: fillCache, ticket: &ticket) { record, _ in
                #expect(record.header.codec == .raw)
                text = String(decoding: record.payload, as: UTF8.self)
            }
        }
        #expect(outcome == (text == nil ? .miss : .hit))
        return text
    }

    /// Reads existing, missing and expired entries several times, with and without memory for entries.
    @Test(arguments: [0, 1 << 20]) func eachReadFromDiskIsCountedOnce(memoryBytes: Int) throws {
        let larder = try TestLarder { $0.memoryBytes = memoryBytes }
        try larder.database(policy: .every(3_600_000)).put("there", "value")
        try larder.database().put("brief", "value", rule: .own(larder.time.wallMilliseconds() + 1000))
        try larder.database().put("", "empty key")
        larder.close()
        larder.time.advance(milliseconds: 1000)
        let database = try larder.database()
        let statistics = try larder.engine().statistics
        let (hits, misses) = (statistics.hits.read(), statistics.misses.read())
        for _ in 0..<3 {
            #expect(try read(database, "there") == "value")
            #expect(try read(database, "") == "empty key")
            #expect(try read(database, "absent") == nil)
            #expect(try read(database, "brief") == nil)
        }
        #expect(try read(database, "there", fillCache: false) == "value")
        let now = try larder.engine().statistics
        #expect(now.hits.read() - hits == 7)
        #expect(now.misses.read() - misses == 6)
    }

    /// A read calls `holding`, which keeps the larder open, only if the entry must be read from disk.
    @Test func readsFromMemoryDoNotHoldTheLarderOpen() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        try larder.database().put("k", "value")
        larder.close()
        let database = try larder.database()
        var held = 0
        func read() throws {
            var ticket = CommitTicket.none
            _ = try Array("k".utf8).withUnsafeBytes { key in
                try database.read(
                    key, .mayBlock, ticket: &ticket,
                    holding: {
                        held += 1
                        return nil
                    }, { _, _ in })
            }
        }
        try read()
        #expect(held == 1)
        try read()
        #expect(held == 1)
    }

    /// If `holding` fails, the read does not read from disk, and leaves no placeholder in memory.
    @Test func aRefusedReadFromDiskLeavesNoPlaceholderInMemory() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        try larder.database().put("k", "value")
        larder.close()
        let database = try larder.database()
        for _ in 0..<3 {
            var ticket = CommitTicket.none
            #expect(
                errorCode {
                    _ = try Array("k".utf8).withUnsafeBytes { key in
                        try database.read(
                            key, .mayBlock, ticket: &ticket,
                            holding: { () throws(LarderError) in throw LarderError(.closed, "no", operation: "test") },
                            { _, _ in Issue.record("it was read") })
                    }
                } == .closed)
        }
        #expect(try read(database, "k") == "value")
        let shard = database.shards[Key("k")]
        #expect(shard.lock.withLock { shard.find(Key("k")) != nil })
    }

    /// Entries are written and read while they are constantly evicted from memory. Each read sees all writes that were
    /// acknowledged before it began.
    @Test(arguments: [0, 20_000, 1 << 20]) func readsSeeAllAcknowledgedWritesDuringEviction(memoryBytes: Int) throws {
        let larder = try TestLarder {
            $0.memoryBytes = memoryBytes
            $0.backgroundMaintenance = true
            $0.maintenanceMilliseconds = 1
        }
        let database = try larder.database(policy: .never)
        let keyCount = 40
        let padding = String(repeating: " ", count: 300)
        let written = Guarded([Int](repeating: 0, count: keyCount))
        let isDone = Guarded(false)
        let late = Guarded(0)
        for index in 0..<keyCount { try database.put("k\(index)", "0\(padding)") }
        onThreads(4) { thread in
            if thread == 0 {
                for step in 1...1500 {
                    let index = step * 7 % keyCount
                    do {
                        try database.put("k\(index)", "\(step)\(padding)")
                        written.with { $0[index] = step }
                        // Makes entries clean, so that they can be evicted.
                        if step % 100 == 0 { try database.checkpointer.flush(database) }
                    } catch {
                        Issue.record(error)
                    }
                }
                isDone.value = true
                return
            }
            var index = thread
            while !isDone.value {
                index = (index + thread) % keyCount
                let floor = written.with { $0[index] }
                let text = (try? read(database, "k\(index)")) ?? nil
                let number = Int(text?.prefix { $0 != " " } ?? "") ?? -1
                if number < floor { late.with { $0 += 1 } }
            }
        }
        #expect(late.value == 0)
    }

    /// Long values from memory and from disk are not copied, and stay unchanged whatever happens to their keys.
    @Test(arguments: [0, 64 << 20]) func entriesReadAtOneInstantDoNotChangeLater(_ memoryBytes: Int) throws {
        let larder = try TestLarder { $0.memoryBytes = memoryBytes }
        let database = try larder.database()
        let long = String(repeating: "l", count: (1 << 20) + 5)
        for (key, value) in [("a", "short"), ("b", long), ("c", long), ("e", "")] { try database.put(key, value) }
        try database.put("gone", "x", rule: .own(larder.engine().now() + 1000))
        if memoryBytes == 0 { try database.flush() }
        larder.time.advance(milliseconds: 1000)
        let names = ["b", "a", "nothing", "c", "b", "gone", "e"]
        var ticket = CommitTicket.none
        let held = try HeldEntries(
            names.map { Key($0) }, in: database, now: database.now(), bytesMax: .max, ticket: &ticket)
        try database.put("b", "other")
        try database.remove("c")
        try database.flush()
        _ = try database.purge()
        let texts = names.indices.map { index -> String? in
            var text: String?
            held.withPayload(index) { text = $0.map { String(decoding: $0, as: UTF8.self) } }
            return text
        }
        #expect(texts == [long, "short", nil, long, long, nil, ""])
        #expect(held.payloadBytes == 3 * long.utf8.count + 5)
        #expect(held.header(2) == nil && held.header(3) != nil)
        if memoryBytes == 0 {
            try database.put("b", long)
            try database.flush()
            #expect(throws: LarderError.self) {
                _ = try HeldEntries(
                    [Key("b")], in: database, now: database.now(), bytesMax: 1 << 20, ticket: &ticket)
            }
        }
    }
}
