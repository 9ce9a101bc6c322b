import Foundation
import Larder
import LarderTestSupport
import Testing

/// A random run of everything that changes entries, against a dictionary that says what must be there: with time that
/// moves and jumps, policies that change, and reopening. A failure prints its seed; `LARDER_SEED` runs it again.
@Suite struct ModelTests {
    /// What the cache should be.
    private struct Expected {
        struct Item {
            var value: Reader
            var storedAt: Int64
            /// nil: governed by the database's policy.
            var own: Int64??
        }

        var items: [String: Item] = [:]
        var policy: UpdatePolicy
        var deadBefore: Int64 = 0

        func deadline(_ item: Item) -> Int64? {
            if let own = item.own { return own }
            if item.storedAt <= deadBefore { return 0 }
            return policy.intervalMilliseconds.map { item.storedAt + $0 }
        }

        func fresh(now: Int64) -> [String: Reader] {
            items.filter { deadline($0.value).map { now < $0 } ?? true }.mapValues(\.value)
        }

        mutating func change(to new: UpdatePolicy, now: Int64) {
            guard new != policy else { return }
            if let interval = policy.intervalMilliseconds { deadBefore = max(deadBefore, now - interval) }
            policy = new
        }
    }

    private final class Run {
        let work: Workspace
        let memoryBytes: Int
        var random: SeededGenerator
        var cache: Cache
        var expected: Expected
        /// What the engine's time must be: the wall clock's, but never running back.
        var now: Int64

        init(seed: UInt64, memoryBytes: Int) throws {
            work = try Workspace()
            self.memoryBytes = memoryBytes
            random = SeededGenerator(seed: seed)
            cache = try work.cache(policy: .high) { $0.memoryBytes = memoryBytes }
            expected = Expected(policy: .high)
            now = work.time.wallMilliseconds()
        }

        let keys = (0..<24).map { "key \($0)" } + ["", "é", "e\u{301}", "key"]
        // As bytes, since Swift holds the two spellings of é for equal.
        func id(_ key: String) -> String { Array(key.utf8).description }

        func pickPolicy() -> (EntryPolicy, (Int64) -> Int64??) {
            switch Int.random(in: 0..<6, using: &random) {
            case 0: return (.highest, { .some($0 + 10_000) })
            case 1: return (.never, { _ in .some(nil) })
            case 2:
                let span = Int64.random(in: 1...90_000, using: &random)
                return (.seconds(Double(span) / 1000), { .some($0 + span) })
            case 3:
                let instant = now + Int64.random(in: -5_000...60_000, using: &random)
                // Instants are given by the wall clock, which may be behind.
                let ahead = now - work.time.wallMilliseconds()
                return (
                    .until(millisecondsSince1970: instant - (ahead > 1 ? ahead : 0)), { _ in .some(instant) }
                )
            default: return (.database, { _ in nil })
            }
        }

        func item(_ value: Reader, _ own: Int64??) -> Expected.Item { .init(value: value, storedAt: now, own: own) }

        func step(_ number: Int) throws {
            let key = keys.randomElement(using: &random) ?? ""
            let value = Reader("v\(number)", price: Double(number))
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<30:
                let (policy, own) = pickPolicy()
                try cache.set(value, forKey: key, policy: policy)
                expected.items[id(key)] = item(value, own(now))
            case 30..<40:
                let wasThere = try cache.remove(key)
                #expect(wasThere == (expected.fresh(now: now)[id(key)] != nil))
                expected.items[id(key)] = nil
            case 40..<52: try batch(number)
            case 52..<56: try changeDeadline(key)
            case 56..<60:
                let policy = [UpdatePolicy.highest, .high, .middle, .never].randomElement(using: &random) ?? .high
                try cache.setPolicy(policy)
                expected.change(to: policy, now: now)
            case 60..<62:
                try cache.removeAll()
                // A new epoch begins with a clean slate.
                expected.items = [:]
                expected.deadBefore = 0
            case 62..<65:
                try cache.remove(prefix: "key 1")
                expected.items = expected.items.filter { !$0.key.hasPrefix(id("key 1").dropLast()) }
            case 65..<68: try cache.sweep()
            case 68..<69: try cache.removeExpired()
            case 69..<75:
                cache.close()
                // A clock that is behind at a start is another story, told in ExpiryTests.
                work.time.stepWall(milliseconds: now - work.time.wallMilliseconds())
                cache = try work.cache(policy: nil) { $0.memoryBytes = memoryBytes }
            default: moveTime()
            }
        }

        /// Stops the test at the first difference: what comes after it says nothing.
        func check(_ number: Int, _ place: Comment) throws {
            let fresh = expected.fresh(now: now)
            if number % 10 == 0 {
                let entries = try cache.entries(of: Reader.self).map { ("\($0.keyBytes)", try $0.value()) }
                try #require(Dictionary(uniqueKeysWithValues: entries) == fresh, place)
                try #require(try cache.count() == fresh.count, place)
            } else {
                let key = keys[number % keys.count]
                try #require(try cache.value(Reader.self, forKey: key) == fresh[id(key)], place)
            }
        }

        func batch(_ number: Int) throws {
            let own = pickPolicy()
            let chosen = (0..<6).map { _ in keys.randomElement(using: &random) ?? "" }
            try cache.batch {
                for (index, key) in chosen.enumerated() {
                    let value = Reader("v\(number).\(index)")
                    if index % 3 == 2 {
                        $0.remove(key)
                        expected.items[id(key)] = nil
                    } else {
                        try $0.set(value, forKey: key, policy: own.0)
                        expected.items[id(key)] = item(value, own.1(now))
                    }
                }
            }
        }

        func changeDeadline(_ key: String) throws {
            let (policy, own) = pickPolicy()
            let wasThere = try cache.touch(key, policy: policy)
            #expect(wasThere == (expected.fresh(now: now)[id(key)] != nil))
            if wasThere { expected.items[id(key)]?.own = own(now) }
        }

        func moveTime() {
            if random.oneIn(8) {
                work.time.stepWall(milliseconds: -Int64.random(in: 1...30_000, using: &random))
            } else {
                let span = Int64.random(in: 0...(random.oneIn(4) ? 120_000 : 4_000), using: &random)
                work.time.advance(milliseconds: span)
                now += span
            }
            now = max(now, work.time.wallMilliseconds())
        }
    }

    @Test(arguments: [0, 2_000, 16 << 20])
    func itDoesWhatADictionaryWouldDo(memoryBytes: Int) throws {
        let seed = testSeed()
        let run = try Run(seed: seed, memoryBytes: memoryBytes)
        for number in 0..<2_000 {
            try run.step(number)
            try run.check(number, "seed \(seed), step \(number)")
        }
    }
}
