import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of a random history under a disk limit, with the engine's background threads running. A thread of the test
/// measures the files continuously.
@Suite(.timeLimit(.minutes(20))) struct DiskHistoryTests {
    private static let largest = 2 << 20

    /// Returns the maximum disk usage in bytes, plus the longest value twice: once in the journal and once in LevelDB's
    /// log.
    private static func bound(_ limit: Int) -> Int {
        DiskThresholds(limit: limit, checkpointBytes: 64 << 20, hasJournal: true).peakBytes + 2 * largest
    }

    private struct History {
        var random: SeededGenerator
        let purges: Bool
        /// The last value of each key; nil for removed keys.
        var model: [String: Int?] = [:]
        var number = 0

        mutating func key() -> String {
            // A third of the operations use one of 100 keys, so these keys are used often; all others are rarely used.
            random.oneIn(3) ? "hot:\(random.below(100))" : "key:\(random.below(50_000))"
        }

        mutating func size() -> Int {
            switch random.below(400) {
            case 0: DiskHistoryTests.largest
            case 1..<20: 20_000 + random.below(200_000)
            default: 100 + random.below(6_000)
            }
        }

        mutating func step(_ larder: TestLarder, _ database: Database) throws {
            number += 1
            let key = key()
            switch random.below(1_000) {
            case 0 where purges:
                _ = try database.purge(.all(counting: false))
                model = [:]
            case 1...2 where purges:
                _ = try database.purge(.prefix(Array("key:1".utf8)))
                for key in model.keys where key.hasPrefix("key:1") { model[key] = .some(nil) }
            case 3...9: larder.time.advance(milliseconds: Int64(random.below(20_000)))
            case 10..<60:
                try database.remove(key)
                model[key] = .some(nil)
            case 60..<250: try check(database, key)
            case 250: try enumerate(database)
            default: try store(database, key)
            }
        }

        /// Enumerates a database. An eviction may end the enumeration with an error.
        private func enumerate(_ database: Database) throws {
            do throws(LarderError) {
                _ = try database.cursor()?.next()
            } catch {
                guard error.code == .invalidated else { throw error }
            }
        }

        private mutating func store(_ database: Database, _ key: String) throws {
            let rule: DeadlineRule = random.oneIn(4) ? .own(database.now() + Int64(random.below(60_000))) : .governed
            var value = Incompressible.bytes(count: size(), &random)
            withUnsafeBytes(of: number.bigEndian) { value.replaceSubrange(0..<8, with: $0) }
            try database.commit([Key(key)], loading: .none) { update in
                value.withUnsafeBytes { update.put(0, payload: $0, rule: rule) }
            }
            model[key] = number
        }

        /// Checks that an entry, if present, has the value that was stored last.
        func check(_ database: Database, _ key: String) throws {
            guard let record = try database.get(Key(key)) else { return }
            let found = record.withPayload { BigEndian.read($0, at: 0) }.map { Int($0) }
            let wanted: Int? = model[key] ?? nil
            #expect(found == wanted, "\(key)")
        }

        func checkAll(_ database: Database) throws { for key in model.keys { try check(database, key) } }
    }

    /// The limits to test, in bytes. The large limit takes minutes.
    private static let limits = [16 << 20, 48 << 20] + (TestSetting.diskRounds.number() == nil ? [] : [512 << 20])

    @Test(arguments: limits) func theDiskLimitHoldsUnderRandomOperations(limit: Int) throws {
        let rounds = (TestSetting.diskRounds.number() ?? 2) * max(1, limit / (24 << 20))
        let larder = try TestLarder {
            $0.diskBytesMax = limit
            $0.backgroundMaintenance = true
            $0.memoryBytes = 1 << 20
        }
        // Purge only under the smallest limit: purges would keep the larder below a larger one.
        var history = History(random: SeededGenerator(seed: testSeed()), purges: limit <= 16 << 20)
        let sampler = DiskSampler(larder.path)
        for round in 0..<rounds {
            let database = try larder.database(policy: .every(100_000))
            try history.checkAll(database)
            let snapshot = round % 2 == 0 ? try database.snapshot() : nil
            for _ in 0..<2_500 { try history.step(larder, database) }
            withExtendedLifetime(snapshot) {}
            larder.close()
        }
        try history.checkAll(try larder.database())
        larder.close()
        let result = sampler.stop()
        print(
            "limit \(limit >> 10) KiB, most \(result.most.bytes >> 10) KiB, "
                + "of these \(result.most.unlistedBytes >> 10) KiB of a merge, bound \(Self.bound(limit) >> 10) KiB, "
                + "\(history.number) steps, \(result.samples) samples")
        #expect(result.samples > 100)
        #expect(result.most.bytes > limit / 3 * 2, "the history did not come near the limit")
        #expect(result.most.bytes <= Self.bound(limit))
    }

    /// There are two databases. One of them has a limit of its own.
    @Test func theDiskLimitOfADatabaseHoldsUnderRandomOperations() throws {
        let (limit, own) = (48 << 20, 12 << 20)
        let larder = try TestLarder {
            $0.diskBytesMax = limit
            $0.backgroundMaintenance = true
            $0.memoryBytes = 1 << 20
        }
        let databases = try ["small", "other"].map { try larder.database($0, policy: .every(100_000)) }
        try databases[0].setDiskLimit(own)
        var histories = (0..<2).map { History(random: SeededGenerator(seed: testSeed() &+ UInt64($0)), purges: false) }
        let samplers = [DiskSampler(larder.directory(of: "small")), DiskSampler(larder.path)]
        for _ in 0..<(TestSetting.diskRounds.number() ?? 2) * 2_500 {
            for index in 0..<2 { try histories[index].step(larder, databases[index]) }
        }
        for index in 0..<2 { try histories[index].checkAll(databases[index]) }
        larder.close()
        let marks = DiskThresholds(limit: own, checkpointBytes: min(limit / 32, own / 4), hasJournal: false)
        for (sampler, promised) in zip(samplers, [marks.peakBytes + 2 * Self.largest, Self.bound(limit)]) {
            let result = sampler.stop()
            print("most \(result.most.bytes >> 10) KiB, bound \(promised >> 10) KiB, \(result.samples) samples")
            #expect(result.samples > 100)
            #expect(result.most.bytes > own / 2)
            #expect(result.most.bytes <= promised)
        }
    }

    /// Small tables have removals over a wide key range. LevelDB alone would merge them with all overlapping tables of
    /// lower levels in one step; the engine must merge them in several.
    @Test func aMergeUsesLimitedTemporaryDiskSpace() throws {
        let larder = try TestLarder { $0.diskBytesMax = 128 << 20 }
        let database = try larder.database()
        var random = SeededGenerator(seed: testSeed())
        for start in stride(from: 0, to: 6_000, by: 100) {
            for number in start..<start + 100 {
                try put(database, number, Incompressible.bytes(count: 10_000, &random))
            }
            try database.flush()
        }
        let store = try #require(database.durableState.store)
        try store.compactAll()
        for number in stride(from: 0, to: 6_000, by: 20) { try database.remove("key:\(100_000 + number)") }
        try database.flush()
        let sampler = DiskSampler(larder.path)
        try store.compactAll()
        let result = sampler.stop()
        #expect(FileSystem.size(store.path) > 50 << 20)
        #expect(result.mostUnlisted > 1 << 20, "nothing was merged")
        #expect(
            result.mostUnlisted <= DiskThresholds(limit: 128 << 20, checkpointBytes: 1, hasJournal: true).mergeBytes)
        larder.close()
    }

    private func put(_ database: Database, _ number: Int, _ value: [UInt8]) throws {
        try database.commit([Key("key:\(100_000 + number)")], loading: .none) { update in
            value.withUnsafeBytes { update.put(0, payload: $0, rule: .governed) }
        }
    }
}
