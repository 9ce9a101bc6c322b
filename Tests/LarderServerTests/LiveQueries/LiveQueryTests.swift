import Foundation
import LarderPlatform
import LarderQueries
import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderQuerying
@testable import LarderServer

/// Live queries in the engine: reasons, slow readers, limits and many queries.
@Suite(.timeLimit(.minutes(2))) struct LiveQueryTests {
    private let server: SocketlessServer
    private let client: TestClient
    private let database: Database
    private var live: LiveQueries { server.state.live }

    init() throws {
        server = try SocketlessServer(policy: .never)
        client = server.connect()
        database = try server.engine.database("0")
        for index in 1...5 { _ = client(["SET", "b:\(index)", "{\"year\":\(2000 + index)}"]) }
    }

    @Test func entriesStoredTogetherAreOneChange() async throws {
        let counts = Locked<[Int]>([])
        let query = try Query(["KEYS", "WHERE", "new", "=", "1"].map { Array($0.utf8) })
        let begun = try live.begin(query, in: database) { events in
            counts.withLock { $0.append(events.count) }
            return true
        }
        begun.handle.start()
        _ = client(["MSET"] + (0..<200).flatMap { ["n:\($0)", "{\"new\":1}"] })
        await eventually { counts.withLock { $0 }.reduce(0, +) == 200 }
        #expect(counts.withLock { $0 } == [200])
    }

    @Test func eachRemovalHasItsReason() async throws {
        let reader = LiveReader(["WHERE", "year", ">", "0", "SORT", "year"])
        let handle = try reader.begin(live, in: database)
        #expect(reader.keys == ["b:1", "b:2", "b:3", "b:4", "b:5"])
        func expect(_ outs: [String], line: Int = #line) async {
            await eventually({ reader.outs == outs }, line: line)
            reader.change { $0.outs = [] }
        }
        _ = client("DEL b:1")
        await expect(["b:1 removed"])
        _ = client(["SET", "b:2", "{}"])
        await expect(["b:2 changed"])
        // The text is the same, so there is no event. That of another key follows in the same or a later one.
        _ = client("EXPIRE b:3 5")
        _ = client(["SET", "b:5", "{\"year\":2005.0}"])
        await eventually { reader.now.sets == 1 }
        server.time.advance(milliseconds: 5_000)
        await expect(["b:3 expired"])
        _ = client(["SET", "b:4", "{\"year\":2004.0}", "TAGS", "1", "t"])
        await eventually { reader.now.sets == 2 }
        _ = client("PURGE TAG t")
        await expect(["b:4 purged"])
        _ = client("PURGE PREFIX b:")
        await expect(["b:5 purged"])
        for (purge, reason) in [("PURGE", "purged"), ("FLUSHDB", "purged")] {
            _ = client(["SET", "b:6", "{\"year\":1}"])
            await eventually { reader.keys == ["b:6"] }
            _ = client(purge)
            await expect(["b:6 \(reason)"])
        }
        _ = client(["SET", "b:7", "{\"year\":1}"])
        await eventually { reader.keys == ["b:7"] }
        _ = client(["SET", "b:8", "{\"year\":1}"])
        await eventually { reader.keys == ["b:7", "b:8"] }
        _ = client("POLICY 1")
        server.time.advance(milliseconds: 1_000)
        await eventually { reader.keys == [] }
        #expect(reader.outs.sorted() == ["b:7 expired", "b:8 expired"])
        #expect(reader.now.resets == 0 && reader.now.problems.isEmpty)
        withExtendedLifetime(handle) {}
    }

    @Test func rowsBeyondTheLimitMoveIn() async throws {
        let reader = LiveReader(["KEYS", "SORT", "year", "DESC", "LIMIT", "2"])
        let handle = try reader.begin(live, in: database)
        #expect(reader.keys == ["b:5", "b:4"])
        _ = client(["SET", "b:1", "{\"year\":9999}"])
        await eventually { reader.keys == ["b:1", "b:5"] }
        #expect(reader.outs == ["b:4 moved"])
        for key in ["b:1", "b:5", "b:4", "b:3"] { _ = client("DEL \(key)") }
        await eventually { reader.keys == ["b:2"] }
        withExtendedLifetime(handle) {}
    }

    @Test func readerThatIsSlowGetsTheWholeResult() async throws {
        let reader = LiveReader(["WHERE", "year", "EXISTS"])
        let handle = try reader.begin(live, in: database)
        reader.change { $0.isSlow = true }
        _ = client("DEL b:1")
        await eventually { reader.now.refused == 1 }
        _ = client("DEL b:2")
        _ = client(["SET", "b:9", "{\"year\":1}"])
        reader.change { $0.isSlow = false }
        handle.resume()
        await eventually { reader.keys == ["b:3", "b:4", "b:5", "b:9"] }
        #expect(reader.now.resets == 1)
        _ = client("DEL b:9")
        await eventually { reader.outs == ["b:9 removed"] }
    }

    @Test func deletedDatabaseIsFollowedByItsSuccessor() async throws {
        let reader = LiveReader(["WHERE", "year", "EXISTS"])
        let handle = try reader.begin(live, in: database)
        _ = try server.engine.deleteDatabase("0")
        await eventually { reader.keys == [] }
        #expect(reader.outs.count == 5 && reader.outs.allSatisfy { $0.hasSuffix("purged") })
        try server.store("{\"year\":1}", under: "new", in: "0")
        await eventually { reader.keys == ["new"] }
        // Without a successor, the query ends.
        let queries = LiveQueries(server.engine, QueryLimits())
        let other = LiveReader([])
        let second = try other.begin(queries, in: try server.engine.database("0"))
        _ = try server.engine.deleteDatabase("0")
        await eventually { other.now.ended != nil }
        withExtendedLifetime((handle, second)) {}
    }

    /// Waits until a reader has the result of a new query.
    private func expectResult(of reader: LiveReader, in database: Database, line: Int = #line) async throws {
        try await eventually({ try reader.rows == reader.fresh(database) }, line: line)
        #expect(reader.now.problems.isEmpty && reader.now.ended == nil)
    }

    @Test func entriesEvictedForTheDiskLimitLeave() async throws {
        let server = try SocketlessServer(policy: .never) { options in
            options.diskBytesMax = 16 << 20
            options.memoryBytes = 1 << 20
        }
        let client = server.connect()
        let database = try server.engine.database("0")
        let reader = LiveReader(["KEYS", "LIMIT", "10000"])
        let handle = try reader.begin(server.state.live, in: database)
        var random = SeededGenerator(seed: 1)
        let padding = random.bytes(count: 1 << 18).map { UInt8(ascii: "a") + $0 % 16 }
        func evicted() -> Int { server.engine.statistics.evicted.read() }
        for number in 0..<3_000 where evicted() < 100 {
            let text = String(decoding: padding[random.below(200_000)...].prefix(32_000), as: UTF8.self)
            _ = client(["SET", "k\(number)", "{\"p\":\"\(text)\"}"])
            if number % 50 == 0 { while server.engine.maintain() {} }
        }
        #expect(evicted() >= 100)
        try await expectResult(of: reader, in: database)
        // An entry that is evicted before it was reported never was a row.
        #expect(!reader.outs.isEmpty && reader.outs.count <= evicted())
        #expect(reader.outs.allSatisfy { $0.hasSuffix(" evicted") })
        #expect(reader.now.resets == 0)
        withExtendedLifetime(handle) {}
    }

    /// The journal cannot be written, so the changes in memory are rolled back.
    @Test func changesThatAreRolledBackLeaveTheResult() async throws {
        let isBroken = Guarded(false)
        let server = try SocketlessServer(policy: .never) { options in
            options.journalFaults = JournalFaults { call, _ in
                if case .write = call, isBroken.value { return .fail(EIO) }
                return nil
            }
        }
        let client = server.connect()
        let database = try server.engine.database("0")
        #expect(client("INDEX CREATE byYear ON year") == Wire.ok)
        for index in 1...3 { _ = client(["SET", "b:\(index)", "{\"year\":\(index)}"]) }
        // The index finds the entry where it will be if the next commit succeeds.
        client.feed(encodeRequest(["SET", "b:1", "{\"year\":900}"]))
        let reader = LiveReader(["WHERE", "year", "BETWEEN", "1", "5", "SORT", "year"])
        let handle = try reader.begin(server.state.live, in: database, starts: false)
        #expect(reader.keys == ["b:2", "b:3"])
        isBroken.value = true
        server.commit()
        #expect(client.takeSendable().hasPrefix("-"))
        isBroken.value = false
        handle.start()
        await eventually { reader.keys == ["b:1", "b:2", "b:3"] }
        // A change is examined when the entry has changed again, and that commit fails.
        reader.gate.close()
        _ = client("DEL b:3")
        reader.gate.waitUntil(waiting: 1)
        _ = client(["SET", "b:2", "{\"year\":2,\"a\":1}"])
        client.feed(encodeRequest(["SET", "b:2", "{\"year\":900}"]))
        isBroken.value = true
        reader.gate.open()
        await eventually {
            server.deliver()
            return client.takeSendable().hasPrefix("-")
        }
        isBroken.value = false
        await eventually { reader.keys == ["b:1", "b:2"] && reader.rows[1].text == "{\"year\":2,\"a\":1}" }
        try await expectResult(of: reader, in: database)
        _ = client(["SET", "b:4", "{\"year\":4}"])
        await eventually { reader.keys == ["b:1", "b:2", "b:4"] }
        withExtendedLifetime(handle) {}
    }

    @Test func otherEntriesInTheDatabaseReplaceTheResult() async throws {
        for index in 6...7 { _ = client(["SET", "b:\(index)", "{\"year\":1}", "TAGS", "1", "t"]) }
        let reader = LiveReader(["WHERE", "year", "EXISTS"])
        let handle = try reader.begin(live, in: database)
        // More purged tags than are noted end all entries with tags.
        for start in stride(from: 0, through: TagPurges.notesMax, by: 1_000) {
            _ = client(["PURGE", "TAG"] + (start..<(start + 1_000)).map { "other\($0)" })
        }
        await eventually { reader.keys == ["b:1", "b:2", "b:3", "b:4", "b:5"] }
        #expect(reader.now.resets > 0)
        try database.flush()
        let resets = reader.now.resets
        let damage = LarderError(.damaged, "told to be damaged", operation: "test")
        #expect(try database.salvage(database.durableState.store, damage) != nil)
        await eventually { reader.now.resets > resets }
        try await expectResult(of: reader, in: database)
        try server.store("{\"year\":1}", under: "c", in: "1")
        _ = client("SWAPDB 0 1")
        await eventually { reader.keys == ["c"] }
        #expect(reader.outs.filter { $0.hasSuffix(" removed") }.count == 5)
        _ = client("SWAPDB 0 1")
        await eventually { reader.keys.count == 5 }
        _ = client("FLUSHALL")
        await eventually { reader.keys.isEmpty }
        try await expectResult(of: reader, in: database)
        withExtendedLifetime(handle) {}
    }

    @Test func moreChangesThanAreNotedLetTheQueryRunAgain() async throws {
        let reader = LiveReader(["WHERE", "year", "EXISTS"])
        let handle = try reader.begin(live, in: database)
        reader.gate.close()
        _ = client(["SET", "b:1", "{\"year\":1}"])
        reader.gate.waitUntil(waiting: 1)
        // None of these changes is examined before all are made.
        _ = client("DEL b:2")
        for start in stride(from: 0, to: 70_000, by: 1_000) {
            _ = client(["MSET"] + (start..<(start + 1_000)).flatMap { ["n\($0)", "{}"] })
        }
        _ = client(["SET", "b:6", "{\"year\":1}"])
        reader.gate.open()
        await eventually { reader.keys == ["b:1", "b:3", "b:4", "b:5", "b:6"] }
        try await expectResult(of: reader, in: database)
        #expect(reader.now.resets == 1 && reader.outs.isEmpty)
        withExtendedLifetime(handle) {}
    }

    /// Changes that arrive while the database cannot be read are not lost for a query that begins before it is read.
    @Test func queryThatBeginsAfterAnErrorMissesNoChange() async throws {
        let isFailing = Guarded(false)
        let server = try SocketlessServer(policy: .never) { options in
            options.journalFaults = JournalFaults { call, _ in
                switch call {
                case .write, .open: isFailing.value ? .fail(EIO) : nil
                default: nil
                }
            }
        }
        let client = server.connect()
        let database = try server.engine.database("0")
        _ = client(["SET", "b:1", "{}"])
        let live = LiveDatabase(database, QueryLimits())
        func add(_ reader: LiveReader) throws {
            let query = try LiveQuery(reader.query()) { reader.take($0) }
            let found = try query.run(in: database, QueryLimits(), scans: true)
            query.rows.replace(found.rows, isCut: found.isCut)
            let rows = query.visible
            reader.change { $0.rows = rows }
            live.add(query)
        }
        func apply(_ noted: NotedChanges) throws {
            var noted = noted
            try live.apply(
                { _, areWanted in
                    guard areWanted(noted) else { return nil }
                    defer { noted = NotedChanges() }
                    return noted
                }, now: server.engine.now())
        }
        func apply(_ key: String) throws {
            var noted = NotedChanges()
            let kind = EntryChange.Kind.stored(RecordHeader(storedAt: 0))
            noted.note(EntryChange(database: database, key: Array(key.utf8), kind: kind))
            try apply(noted)
        }
        let (first, second) = (LiveReader(["KEYS"]), LiveReader(["KEYS"]))
        try add(first)
        // After a write that failed, the journal cannot be read either.
        isFailing.value = true
        #expect(client(["SET", "b:2", "{}"]).hasPrefix("-"))
        #expect(throws: LarderError.self) { try database.get(Key(Array("b:2".utf8))) }
        try apply("b:2")
        isFailing.value = false
        await eventually { client(["SET", "b:3", "{}"]) == Wire.ok }
        try add(second)
        #expect(second.keys == ["b:1", "b:3"])
        _ = client(["SET", "b:4", "{}"])
        try apply("b:4")
        try await eventually {
            try apply(NotedChanges())
            return first.keys.count == 3
        }
        #expect(first.keys == ["b:1", "b:3", "b:4"] && second.keys == first.keys)
    }

    @Test("rows that fill a result up match and are in order, although their entries change meanwhile")
    func rowsThatMoveInMatch() throws {
        let state = Locked((rows: LiveReader.State(), wrong: [String](), count: 0))
        let query = try Query("WHERE author = Bo SORT year LIMIT 5".split(separator: " ").map { Array($0.utf8) })
        let begun = try live.begin(query, in: database) { events in
            state.withLock { state in
                for event in events { state.rows.take(event) }
                let texts = state.rows.rows.map { String(decoding: $0.text ?? [], as: UTF8.self) }
                // The year, of one digit, is the first member.
                let isSorted = texts == texts.sorted { $0.prefix(10) < $1.prefix(10) }
                if !isSorted || !texts.allSatisfy({ $0.contains("Bo") }) {
                    state.wrong.append("\(texts)")
                }
                state.count += 1
            }
            return true
        }
        begun.handle.start()
        var random = SeededGenerator(seed: testSeed())
        for number in 0..<6_000 {
            let author = random.oneIn(2) ? "Bo" : "Al"
            let text = "{\"year\":\(random.below(10)),\"author\":\"\(author)\",\"n\":\(number)}"
            _ = client(["SET", "k\(random.below(12))", text])
        }
        let found = state.withLock { $0 }
        #expect(found.wrong.isEmpty && found.rows.problems.isEmpty && found.count > 10)
        withExtendedLifetime(begun.handle) {}
    }

    @Test func rowsOfAllQueriesAreBounded() async throws {
        var limits = QueryLimits()
        limits.liveBytesMax = 8_000
        let queries = LiveQueries(server.engine, limits)
        let reader = LiveReader(["SORT", "year"])
        let (handle, small) = (try reader.begin(queries, in: database), LiveReader(["KEYS", "LIMIT", "1"]))
        let other = try small.begin(queries, in: database)
        _ = client(["SET", "long", "{\"year\":1,\"text\":\"\(String(repeating: "x", count: 4_000))\"}"])
        await eventually { reader.keys.contains("long") }
        // The thread sends changes before it counts them.
        await eventually { (try? LiveReader(["WHERE", "year", "EXISTS"]).begin(queries, in: database)) == nil }
        _ = client(["SET", "long", "{\"year\":1,\"text\":\"\(String(repeating: "x", count: 8_000))\"}"])
        await eventually { reader.now.ended?.contains("too much memory") == true }
        #expect(small.now.ended == nil)
        await eventually { (try? LiveReader(["WHERE", "year", ">", "2000"]).begin(queries, in: database)) != nil }
        withExtendedLifetime((handle, other)) {}
    }

    @Test func impossibleQueriesAreRefused() throws {
        for words in [
            ["COUNT"], ["GROUP", "a"], ["SELECT", "1", "a"], ["LIMIT", "0"], ["LIMIT", "10001"],
            ["SKIP", "9999", "LIMIT", "2"],
        ] {
            let reader = LiveReader(words)
            #expect(throws: QueryFailure.self) { try reader.begin(live, in: database) }
        }
        #expect(live.count == 0)
    }

    @Test func aThousandQueriesEvaluateOnlyThoseConcerned() async throws {
        let readers = (0..<1000).map { LiveReader(["KEYS", "WHERE", "year", "=", "\($0)"]) }
        let handles = try readers.map { try $0.begin(live, in: database) }
        // When the last query has its row, all have been started: changes before that may be examined twice.
        _ = client(["SET", "last", "{\"year\":999}"])
        await eventually { readers[999].keys == ["last"] }
        _ = client(["SET", "x", "{\"year\":7}"])
        _ = client(["SET", "y", "{\"year\":[8,9]}"])
        await eventually { readers[7].keys == ["x"] && readers[8].keys == ["y"] && readers[9].keys == ["y"] }
        _ = client(["SET", "x", "{\"year\":8}"])
        await eventually { readers[7].keys == [] && readers[8].keys == ["x", "y"] }
        #expect(readers[7].outs == ["x changed"])
        #expect(readers.allSatisfy { $0.now.problems.isEmpty && $0.now.sets <= 2 })
        for handle in handles { handle.stop() }
        #expect(live.count == 0)
        await eventually { !server.engine.changes.isOn }
    }

    @Test func changesOfAKeyAreNotedOnce() {
        var noted = NotedChanges()
        func note(_ kind: EntryChange.Kind, expired: Bool = false) {
            noted.note(EntryChange(database: database, key: [1], kind: kind, removesExpired: expired))
        }
        let key = Key([1])
        note(.stored(RecordHeader(storedAt: 0)))
        note(.evicted)
        #expect(noted.keys[key]?.reason == .evicted && noted.keys[key]?.isStored == true)
        note(.removed, expired: true)
        #expect(noted.keys[key]?.reason == .expired)
        note(.outdated)
        note(.removed)
        #expect(noted.keys.count == 1 && noted.keys[key]?.reason == .removed && noted.recheck == nil)
        for index in 0..<70_000 {
            let key = withUnsafeBytes(of: index) { Array($0) }
            noted.note(EntryChange(database: database, key: key, kind: .removed))
        }
        #expect(noted.isUnknown && noted.keys.isEmpty)
    }
}
