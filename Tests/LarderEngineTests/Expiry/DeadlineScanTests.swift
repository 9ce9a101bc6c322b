import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the scans for deadlines, and of the removals that wait until an expiry is reported.
@Suite struct DeadlineScanTests {
    private func find(
        _ database: Database, _ kind: DeadlineScan.Kind, _ range: Range<Int64>,
        between: () throws -> Void = {}
    ) throws -> [String: Int64] {
        var scan = DeadlineScan(database, kind, range)
        var found: [String: Int64] = [:]
        while let slice = try scan.next() {
            for entry in slice {
                let key = String(decoding: entry.key, as: UTF8.self)
                #expect(found[key] == nil || entry.mayRepeat || found[key] == entry.deadline)
                found[key] = entry.deadline
            }
            try between()
        }
        return found
    }

    @Test func theBucketsOfARangeContainAllLocatedDeadlines() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<3000 {
            let from = Int64.random(in: 1_700_000_000_000...1_700_100_000_000, using: &random)
            let range = from..<(from + Int64.random(in: 1...60_000, using: &random))
            let buckets = ExpiryIndex.buckets(ofDeadlines: range)
            #expect(buckets.count <= 11)
            #expect(zip(buckets, buckets.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
            let deadline = Int64.random(in: range, using: &random)
            let span = Int64.random(
                in: 1...(ExpiryIndex.unindexedMilliseconds - 1) >> Int64.random(in: 0...20, using: &random),
                using: &random)
            let header = RecordHeader(storedAt: deadline - span, rule: .own(deadline))
            #expect(ExpiryIndex.locates(header))
            let key = try #require(ExpiryIndex.key(for: Key("k"), header, policy: .never))
            let bucket = try #require(key.withUnsafeBytes { ExpiryIndex.parse($0)?.bucket })
            #expect(buckets.contains { $0.contains(bucket) }, "\(deadline) \(span)")
        }
        #expect(ExpiryIndex.buckets(ofDeadlines: 5..<5).isEmpty)
    }

    /// Entries in every state: dirty, clean in memory, only in LevelDB, overwritten, persistent, removed, governed,
    /// with a grace, with long lifetimes; and after a restart.
    @Test(arguments: [0, 64 << 20]) func bothKindsOfScansFindAllOwnDeadlines(memory: Int) throws {
        var random = SeededGenerator(seed: testSeed())
        let larder = try TestLarder { $0.memoryBytes = memory }
        for round in 0..<12 {
            let database = try larder.database(policy: .high)
            for _ in 0..<200 {
                let key = "k\(random.below(300))"
                let now = database.now()
                let life = random.oneIn(4) ? 200_000_000 : Int64.random(in: 1...4_000_000, using: &random)
                try database.commit([Key(key)], loading: .none) { update in
                    if random.oneIn(8) { return update.remove(0) }
                    let rule: DeadlineRule =
                        random.oneIn(6) ? .ownNever : random.oneIn(6) ? .governed : .own(now + life)
                    let grace: Int64? = random.oneIn(5) ? 50_000 : nil
                    [1, 2, 3].withUnsafeBytes { update.put(0, payload: $0, rule: rule, grace: grace) }
                }
                larder.time.advance(milliseconds: Int64(random.below(200)))
            }
            switch round % 4 {
            case 0: try database.checkpointer.flush(database)
            case 1: larder.close()
            case 2: try database.setPolicy(round % 8 == 2 ? .highest : .middle)
            default: break
            }
            try check(try larder.database(), &random)
        }
    }

    private func check(_ database: Database, _ random: inout SeededGenerator) throws {
        var all: [String: (Int64, DeadlineScan.Kind)] = [:]
        if let cursor = try database.cursor(EnumerationOptions(includeExpired: true)) {
            while try cursor.next() {
                guard case .own(let deadline) = try cursor.header().rule else { continue }
                all[String(decoding: try cursor.key().bytes, as: UTF8.self)] = (deadline, .init(try cursor.header()))
            }
        }
        for _ in 0..<6 {
            let from = database.now() + Int64.random(in: -1_000_000...4_000_000, using: &random)
            let range = from..<(from + Int64.random(in: 1...600_000, using: &random))
            for (kind, range) in [(DeadlineScan.Kind.indexed, range), (.others, range), (.others, from..<(.max))] {
                let wanted = all.filter { $0.value.1 == kind && range.contains($0.value.0) }.mapValues(\.0)
                #expect(try find(database, kind, range) == wanted)
            }
        }
    }

    @Test func aScanFindsWhatIsWrittenToLevelDBMeanwhile() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        let now = database.now()
        for number in 0..<2000 { try database.put("k\(number)", "v", rule: .own(now + 60_000)) }
        for kind in DeadlineScan.Kind.allCases {
            let found = try find(database, kind, now..<(now + 100_000)) {
                try database.checkpointer.flush(database)
            }
            #expect(found.count == (kind == .indexed ? 2000 : 0))
        }
    }

    @Test func entriesWithPurgedTagsAreNotFound() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        let now = database.now()
        let tags = try Tags(checking: [Array("t".utf8)])
        for (key, tags) in [("tagged", tags), ("plain", nil)] {
            try database.commit([Key(key)], loading: .none) { update in
                [1].withUnsafeBytes { update.put(0, payload: $0, rule: .own(now + 5000), tags: tags) }
            }
        }
        #expect(try find(database, .indexed, now..<(now + 10_000)).count == 2)
        try database.purge(.tags([Array("t".utf8)], soft: false))
        #expect(try find(database, .indexed, now..<(now + 10_000)).keys.sorted() == ["plain"])
        try database.checkpointer.flush(database)
        #expect(try find(database, .indexed, now..<(now + 10_000)).keys.sorted() == ["plain"])
    }

    // MARK: Removals

    @Test func expiredEntriesStayUntilTheirExpiryIsReported() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        let now = database.now()
        let engine = try larder.engine()
        func stored() throws -> Int { try database.count(includingExpired: true) }
        try database.put("disk", "v", rule: .own(now + 5000))
        try database.put("long", "v", rule: .own(now + 100_000_000))
        try database.put("governed", "v")
        try database.checkpointer.flush(database)
        try database.put("memory", "v", rule: .own(now + 6000))
        engine.keepExpired(from: now + 5000)
        larder.time.advance(milliseconds: 200_000_000)
        try larder.maintain()
        #expect(try stored() == 3)
        engine.keepExpired(from: now + 6000)
        try larder.maintain()
        #expect(try stored() == 2)
        engine.keepExpired(from: .max)
        larder.time.advance(milliseconds: 7 * 3_600_000)
        try larder.maintain()
        #expect(try stored() == 0)
    }

    @Test func nothingIsRemovedDuringAPause() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("disk", "v")
        try database.checkpointer.flush(database)
        try database.put("memory", "v")
        let engine = try larder.engine()
        engine.holdExpiry(until: engine.monotonic() + 500_000)
        larder.time.advance(milliseconds: 200_000)
        try larder.maintain()
        try database.checkpointer.flush(database)
        #expect(try database.count(includingExpired: true) == 2)
        larder.time.advance(milliseconds: 400_000)
        try larder.maintain()
        #expect(try database.count(includingExpired: true) == 0)
    }
}
