import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of tags, by which any number of entries can be purged together.
@Suite struct TagTests {
    private func tags(_ names: String...) throws -> Tags { try Tags(checking: names.map { Array($0.utf8) }) }

    private func put(
        _ database: Database, _ key: String, _ value: String, _ tags: Tags?, grace: Int64? = nil
    ) throws {
        _ = try database.commit([Key(key)], loading: .none) { update in
            Array(value.utf8).withUnsafeBytes { update.put(0, payload: $0, grace: grace, tags: tags) }
        }
    }

    private func purge(_ database: Database, _ names: String..., soft: Bool = false) throws {
        try database.purge(.tags(names.map { Array($0.utf8) }, soft: soft))
    }

    @Test func invalidTagsAreRefused() throws {
        #expect(throws: TagRules.Impossible.self) { try Tags(checking: [[]]) }
        #expect(throws: TagRules.Impossible.self) { try Tags(checking: [[1, 0, 2]]) }
        #expect(throws: TagRules.Impossible.self) { try Tags(checking: [[UInt8](repeating: 1, count: 129)]) }
        #expect(throws: TagRules.Impossible.self) { try Tags(checking: (1...17).map { [UInt8($0)] }) }
        let most = try Tags(checking: (1...16).map { [UInt8](repeating: UInt8($0), count: 128) })
        #expect(most.all.count == 16)
        #expect(try Tags(checking: [[7], [7], [8]]).all == [[7], [8]], "duplicate tags are dropped")
    }

    @Test func aRecordWithTagsIsReadBack() throws {
        let tags = try tags("article:17", "x")
        for rule in [DeadlineRule.governed, .own(99), .ownNever] {
            for grace: Int64? in [nil, 5000] {
                let header = RecordHeader(storedAt: 7, rule: rule, codec: .json, grace: grace)
                let record = Record(header, tags: tags.section(stamp: 42), payload: Array("payload".utf8))
                let read = try Record(parsing: record.stored, nil)
                #expect(read == record && read.text == "payload" && read.tags == tags)
                #expect(read.header.grace == grace && read.header.rule == rule && read.stored[0] == 2)
                #expect(read.with(rule: .own(5)).tags == tags)
                for count in 0..<(record.stored.count - 7) {
                    #expect(throws: RecordHeader.Defect.self) {
                        try Record(parsing: Array(record.stored[..<count]), nil)
                    }
                }
            }
        }
        var random = SeededGenerator(seed: testSeed())
        let purges = TagPurges().adding([1, 2, 3], 7, softAt: nil)
        for _ in 0..<(TestSetting.rounds.number() ?? 1) * 2_000 {
            var bytes = random.bytes(count: Int.random(in: 16...60, using: &random))
            bytes.replaceSubrange(0..<4, with: [2, 8 | bytes[1] % 8, 0, 0])
            guard let record = try? Record(parsing: bytes, purges) else { continue }
            _ = record.tags?.all
            #expect(record.payloadCount >= 0)
        }
    }

    /// Entries stored before a soft purge are stale at any time: even before the time of the purge, as if the clock was
    /// set back. A second purge of the same tag does not change that.
    @Test func softPurgedEntriesAreNeverFresh() throws {
        let hash = Array("x".utf8).withUnsafeBytes { TagPurges.hash($0) }
        let purges = TagPurges().adding([hash], 50, softAt: 2_000).adding([hash], 60, softAt: 3_000)
        var rules = FreshnessRules(policy: .low)
        rules.purges = purges
        let header = RecordHeader(storedAt: 1_000, rule: .own(100_000), codec: .json, grace: 5_000)
        for (stamp, expected) in [(42 as UInt64, Freshness.stale), (55, .stale), (61, .fresh)] {
            let stored = Record(header, tags: try tags("x").section(stamp: stamp), payload: [1]).stored
            let read = try Record(parsing: stored, purges)
            for now: Int64 in [1_500, 2_000, 2_999, 3_000] {
                #expect(rules.freshness(read.header, now: now) == expected, "\(stamp) at \(now)")
            }
        }
    }

    @Test(arguments: [0, 64 << 20]) func aTagPurgeRemovesEarlierEntries(memory: Int) throws {
        let larder = try TestLarder { $0.memoryBytes = memory }
        let database = try larder.database()
        try put(database, "a", "1", tags("x", "y"))
        try put(database, "b", "1", tags("y"))
        try put(database, "c", "1", nil)
        _ = try database.flushedStore()
        try put(database, "d", "1", tags("x"))
        let snapshot = try database.snapshot()
        #expect(try database.contents() == ["a": "1", "b": "1", "c": "1", "d": "1"])
        try purge(database, "x")
        #expect(try database.contents() == ["b": "1", "c": "1"])
        #expect(try snapshot.contents() == ["b": "1", "c": "1"], "a snapshot too")
        for key in ["a", "d"] {
            #expect(try database.value(key) == nil)
            #expect(try snapshot.value(key) == nil)
        }
        #expect(try database.count(includingExpired: false) == 2)
        try put(database, "a", "2", tags("x", "y"))
        #expect(try database.value("a") == "2", "an entry stored after the purge is returned")
        snapshot.close()
        larder.close()
        let again = try larder.database()
        #expect(try again.contents() == ["a": "2", "b": "1", "c": "1"], "a restart keeps the purges")
        try purge(again, "y", "nothing")
        #expect(try again.contents() == ["c": "1"])
    }

    @Test func changingAnEntryKeepsItsTags() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for key in ["a", "b", "c", "d"] { try put(database, key, "1", tags("x")) }
        _ = try database.commit([Key("a"), Key("b"), Key("c"), Key("e")], loading: .records) { update in
            update.change(0, count: 3) { $0[1] = 0x32 }
            _ = update.persist(1)
            if let record = update.current(2) {
                update.put(2, record.with(rule: .own(database.now() + 90_000)))
                update.place(3, record)
            }
        }
        #expect(try database.contents().count == 5)
        try purge(database, "x")
        #expect(try database.contents() == [:])
    }

    @Test func aSoftPurgeMakesEntriesStale() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .middle)
        try put(database, "a", "1", tags("x"), grace: 60_000)
        try put(database, "b", "1", tags("x"))
        larder.time.advance(milliseconds: 1000)
        try purge(database, "x", soft: true)
        #expect(try database.contents() == [:])
        func state() throws -> FetchAnswer.State? {
            let request = FetchRequest(key: Key("a"), holder: LeaseHolder(), askedAt: database.now())
            var ticket = CommitTicket.none
            var found: FetchAnswer?
            var value: String?
            _ = try database.fetch(request, now: database.now(), .mayBlock, ticket: &ticket) { answer, payload in
                found = answer
                value = payload.map { String(decoding: $0, as: UTF8.self) }
            }
            guard case .lead = found?.state else { return found?.state }
            #expect(value == (larder.time.wallMilliseconds() < start + 60_000 ? "1" : nil))
            return found?.state
        }
        let start = larder.time.wallMilliseconds()
        guard case .lead = try state() else {
            Issue.record("nobody leads")
            return
        }
        larder.time.advance(milliseconds: 60_000)
        guard case .lead = try state() else {
            Issue.record("nobody leads")
            return
        }
    }

    /// After a power failure, the time in the file TIME may be a second old, and the clock may be set back. The purge's
    /// record in the journal has the time of the purge, so the purged entries stay stale.
    @Test func softPurgedEntriesStayStaleAfterTheClockIsSetBack() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try put(database, "a", "1", tags("t"), grace: 600_000)
        _ = try larder.engine().maintain()
        let mark = try Files.read(larder.path + "/TIME")
        larder.time.advance(milliseconds: 100)
        try purge(database, "t", soft: true)
        let after = try larder.crashCopy()
        try Files.write(after.path + "/TIME", mark)
        after.time.stepWall(milliseconds: -30_000)
        let again = try after.database()
        #expect(again.now() >= database.now())
        #expect(try again.value("a") == nil)
        #expect(try again.contents() == [:])
    }

    @Test(arguments: [0, 64 << 20]) func theSweepReclaimsPurgedEntries(memory: Int) throws {
        let larder = try TestLarder { $0.memoryBytes = memory }
        let database = try larder.database(policy: .never)
        for number in 0..<700 { try put(database, "k\(number)", "v", tags(number % 2 == 0 ? "even" : "odd")) }
        _ = try database.flushedStore()
        try larder.maintain()
        try purge(database, "even")
        // The current scan completes first. The next scan starts ten minutes after the current one started.
        for _ in 0..<4 {
            larder.time.advance(milliseconds: 700_000)
            try larder.maintain()
        }
        #expect(try database.rawKeys().count { $0.first == KeyKind.record } == 350)
        #expect(try database.contents().count == 350)
        larder.close()
        let again = try larder.database()
        #expect(try again.contents().count == 350)
        try put(again, "new", "v", tags("odd"))
        try purge(again, "odd")
        #expect(try again.contents() == [:])
    }

    @Test("beyond the limit of remembered tags, all earlier tagged entries are purged")
    func beyondTheLimitMoreIsPurgedButNeverLess() throws {
        var purges = TagPurges()
        for first in stride(from: 1, through: TagPurges.notesMax, by: 1024) {
            purges = purges.adding((first..<(first + 1024)).map { UInt64($0) }, UInt64(first), softAt: nil)
        }
        #expect(purges.count == TagPurges.notesMax && purges.floors.hard == 0)
        let previous = purges
        purges = purges.adding([UInt64.max], 100_000, softAt: nil)
        #expect(purges.count == 0 && purges.floors.hard == 100_000)
        let section = try tags("anything").section(stamp: 99_999)
        #expect(section.withUnsafeBytes { purges.end(of: $0) } == .min)
        let later = try tags("anything").section(stamp: 100_000)
        #expect(later.withUnsafeBytes { purges.end(of: $0) } == .max)
        let changes = TagFacts.changes(from: previous, to: purges, of: [.max], in: "books")
        #expect(changes.count == 1 + TagPurges.notesMax && changes.dropFirst().allSatisfy { $0.value == nil })
    }

    @Test func aFailedPurgeChangesNothing() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try put(database, "a", "1", tags("x"))
        // A foreign file replaces the ledger, so the purge cannot be stored.
        try Files.write(larder.path + "/" + DatabaseName.ledger, [1])
        #expect(throws: LarderError.self) { try purge(database, "x") }
        #expect(try database.value("a") == "1")
        try FileSystem.removeFile(larder.path + "/" + DatabaseName.ledger)
        try purge(database, "x")
        #expect(try database.value("a") == nil)
    }

    // MARK: TAGS, the file of earlier versions

    private static func tagsFile(_ lines: [String]) -> [UInt8] {
        (["larder-tags 1"] + lines).flatMap { line in
            Array("\(line) \(UInt64(CRC32C.checksum(line.utf8)).hexadecimal(digits: 8))\n".utf8)
        }
    }

    private static func hash(_ tag: String) -> String {
        String(Array(tag.utf8).withUnsafeBytes { TagPurges.hash($0) }, radix: 16)
    }

    /// A flipped bit is either detected or changes no line. A truncation is either detected or leaves all complete
    /// lines.
    @Test func damageOfATagsFileIsDetectedOrChangesNoLine() throws {
        let all: [TagsFile.Line] = [
            .hard(tag: 0xAF63_DC4C_8601_EC8C, sequence: 42), .soft(tag: 7, sequence: 43, at: 1_700_000_000_000),
            .floor(sequence: 5),
        ]
        let bytes = Self.tagsFile(["hard af63dc4c8601ec8c 42", "soft 7 43 1700000000000", "floor 5"])
        #expect(TagsFile.parse(bytes) == .lines(all))
        for index in bytes.indices {
            for bit in 0..<8 {
                var flipped = bytes
                flipped[index] ^= 1 << UInt8(bit)
                if case .lines(let read) = TagsFile.parse(flipped) { #expect(read == all, "\(index) \(bit)") }
            }
            if case .lines(let read) = TagsFile.parse(Array(bytes[..<index])) {
                let ends = bytes[..<index].count { $0 == 0x0A } - 1
                #expect(all.starts(with: read) && read.count >= ends, "cut at \(index)")
            }
        }
        #expect(TagsFile.parse([]) == .damaged("it has no first line"))
        #expect(TagsFile.parse(Self.tagsFile([]).map { $0 == 0x31 ? 0x32 : $0 }) != .lines([]))
    }

    /// An earlier version purged `x`, and its file TAGS was damaged before it could be migrated.
    @Test func aDamagedTagsFileNeverMakesPurgedEntriesFresh() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for (key, tag) in [("a", "x"), ("b", "y"), ("s", "z")] { try put(database, key, "1", tags(tag)) }
        try put(database, "c", "1", nil)
        try database.replacePointer("purge", { $0.hasTagPurges = true })
        let sequence = database.pipeline.everythingApplied.sequence + 1
        larder.close()
        let path = larder.directory(of: "books") + "/" + TagsFile.name
        let bytes = Self.tagsFile([
            "hard \(Self.hash("x")) \(sequence)",
            "soft \(Self.hash("z")) \(sequence) \(larder.time.wallMilliseconds())",
        ])
        let lastLine = try #require(bytes.dropLast().lastIndex(of: 0x0A))
        let original = try TemporaryDirectory(inMemory: true)
        try Files.copy(larder.path, to: original.path + "/larder")
        var random = SeededGenerator(seed: testSeed())
        var damages: [[UInt8]] = [[], Array(bytes[...lastLine]), [UInt8](repeating: 0, count: bytes.count)]
        for index in bytes.indices {
            guard random.oneIn(3) || index == lastLine || index == bytes.count - 1 else { continue }
            var flipped = bytes
            flipped[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            damages.append(flipped)
            if index > lastLine { damages.append(Array(bytes[..<index])) }
            if index < bytes.firstIndex(of: 0x0A) ?? 0 { damages.append(Array(bytes[..<index])) }
        }
        var noticed = 0
        for damaged in damages {
            let copy = try TestLarder { $0.durability = .os }
            copy.time.stepWall(milliseconds: larder.time.wallMilliseconds() - copy.time.wallMilliseconds())
            try Files.copy(original.path + "/larder", to: copy.path)
            try Files.write(copy.directory(of: "books") + "/" + TagsFile.name, damaged)
            for life in 0..<2 {
                let contents = try copy.database().contents()
                let isNoticed = copy.events.contains("purges of tags may be lost")
                noticed += isNoticed && life == 0 ? 1 : 0
                #expect(contents["a"] == nil, "purged")
                #expect(contents["c"] == "1", "without tags")
                #expect(contents["b"] == (isNoticed ? nil : "1"), "stale only with a report")
                // An incomplete last line may belong to a purge that was never acknowledged.
                if damaged.count >= bytes.count - 1 { #expect(contents["s"] == nil, "purged softly") }
                copy.close()
            }
        }
        #expect(noticed > damages.count / 2)
        try Files.write(path, bytes)
        #expect(try larder.database().contents() == ["b": "1", "c": "1"])
    }

    @Test(arguments: [["MANIFEST"], ["POINTER"], ["POINTER", "../LEDGER"]]) func aSalvageNeverRevivesEntriesPurgedByTag(
        _ lost: [String]
    ) throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        let database = try larder.database()
        for (key, tags) in [("a", try tags("x")), ("b", try tags("y")), ("c", nil)] {
            _ = try database.commit([Key(key)], loading: .none) { update in
                Array("1".utf8).withUnsafeBytes { update.put(0, payload: $0, rule: .ownNever, tags: tags) }
            }
        }
        _ = try database.flushedStore()
        try purge(database, "x")
        larder.close()
        if lost == ["MANIFEST"] {
            let epoch = try larder.epochDirectory()
            try Files.flip(epoch + "/" + Files.manifest(epoch), at: 12)
        } else {
            for name in lost { try FileSystem.removeTree(larder.directory(of: "books") + "/" + name) }
        }
        for _ in 0..<2 {
            let again = try larder.database()
            #expect(try again.contents() == (lost.count > 1 ? ["c": "1"] : ["b": "1", "c": "1"]))
            larder.close()
        }
    }

    /// A purge is remembered as long as the journal, a snapshot or a lease may have older entries.
    @Test(arguments: [false, true]) func purgedEntriesStayPurgedAfterTheSweep(soft: Bool) throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        try put(database, "a", "1", tags("x"))
        try put(database, "b", "1", nil)
        let snapshot = try database.snapshot()
        defer { snapshot.close() }
        try purge(database, "x", soft: soft)
        for _ in 0..<4 {
            larder.time.advance(milliseconds: 700_000)
            try larder.maintain()
        }
        #expect(try snapshot.contents() == ["b": "1"])
        // Opens a copy of the files, as after SIGKILL: the journal still has the purged entry.
        let place = try TemporaryDirectory(inMemory: true)
        try Files.copy(larder.parent + "/larder", to: place.path + "/larder")
        let killed = try Engine.open(place.path + "/larder", options: larder.options, time: larder.time)
        defer { killed.shutdown() }
        #expect(try killed.database("books").contents() == ["b": "1"])
    }

    @Test func repeatedPurgesOfATagUseNoMoreSpace() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for _ in 0..<500 { try purge(database, "x") }
        try put(database, "a", "1", tags("x"))
        try purge(database, "x")
        #expect(try larder.engine().ledger.database.contents().count == 2)
        larder.close()
        #expect(try larder.database().contents() == [:])
    }
}
