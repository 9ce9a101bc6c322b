import Platform
import TestSupport
import Testing

@testable import LarderEngine

/// A random history under a limit of the disk, with all threads at work. The sizes of the files are looked at all the time.
@Suite(.timeLimit(.minutes(20))) struct DiskHistoryTests {
    private static let limit = 16 << 20
    private static let largest = 2 << 20

    /// The limit; a full journal and what a checkpoint writes; and LevelDB's largest merge, which in a larder of this
    /// size may be of all tables.
    private static var bound: Int {
        let marks = DiskMarks(limit: limit, checkpointBytes: 64 << 20, hasJournal: true)
        return limit + 3 * marks.checkpointBytes + 3 * largest + marks.ceiling
    }

    private struct History {
        var random: SeededGenerator
        /// What the keys were last set to; nil for what was removed.
        var model: [String: Int?] = [:]
        var number = 0

        mutating func key() -> String {
            // Few keys are used often, many once.
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
            case 0:
                _ = try database.purge(counting: false)
                model = [:]
            case 1...2:
                _ = try database.purge(prefix: Array("key:1".utf8))
                for key in model.keys where key.hasPrefix("key:1") { model[key] = .some(nil) }
            case 3...9: larder.time.advance(milliseconds: Int64(random.below(20_000)))
            case 10..<60:
                try database.remove(key)
                model[key] = .some(nil)
            case 60..<250: try check(database, key)
            case 250: _ = try database.cursor()?.next()
            default: try store(database, key)
            }
        }

        private mutating func store(_ database: Database, _ key: String) throws {
            let rule: DeadlineRule = random.oneIn(4) ? .own(database.now() + Int64(random.below(60_000))) : .governed
            var value = Incompressible.bytes(count: size(), &random)
            withUnsafeBytes(of: number.bigEndian) { value.replaceSubrange(0..<8, with: $0) }
            try database.commit([Key(key)], loading: false) { update in
                value.withUnsafeBytes { update.put(0, payload: $0, rule: rule) }
            }
            model[key] = number
        }

        /// What is there is what was stored last.
        func check(_ database: Database, _ key: String) throws {
            guard let record = try database.get(Key(key)) else { return }
            let found = record.withPayload { BigEndian.read($0, at: 0) }.map { Int($0) }
            let wanted: Int? = model[key] ?? nil
            #expect(found == wanted, "\(key)")
        }

        func checkAll(_ database: Database) throws { for key in model.keys { try check(database, key) } }
    }

    @Test func theLimitHoldsWhateverHappens() throws {
        let rounds = TestSetting.diskRounds.number() ?? 2
        let larder = try TestLarder {
            $0.diskBytesMax = Self.limit
            $0.backgroundMaintenance = true
            $0.memoryBytes = 1 << 20
        }
        var history = History(random: SeededGenerator(seed: testSeed()))
        var most = 0
        for round in 0..<rounds {
            let database = try larder.database(policy: .every(100_000))
            try history.checkAll(database)
            let snapshot = round % 2 == 0 ? try database.snapshot() : nil
            for _ in 0..<2_500 {
                try history.step(larder, database)
                most = max(most, FileSystem.space(larder.path))
            }
            withExtendedLifetime(snapshot) {}
            larder.close()
        }
        try history.checkAll(try larder.database())
        larder.close()
        print(
            "limit \(Self.limit >> 10) KiB, most \(most >> 10) KiB, bound \(Self.bound >> 10) KiB, \(history.number) steps"
        )
        #expect(most > Self.limit / 3 * 2, "the history did not come near the limit")
        #expect(most <= Self.bound)
    }
}
