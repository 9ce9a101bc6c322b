import Foundation
import Larder
import LarderTestSupport
import Testing

/// Makes random changes of entries, and compares the cache with a dictionary. The clock moves and jumps, policies
/// change, and the larder is reopened. A failure prints its seed; `LARDER_SEED` repeats it.
@Suite struct ModelTests {
    /// The expected state of the cache.
    private struct Expected {
        struct Item {
            var value: Reader
            var storedAt: Int64
            /// The entry's own deadline; an inner nil if it never expires; nil if it follows the database's policy.
            var own: Int64??
            /// In milliseconds; nil for the database's grace, which is none.
            var grace: Int64?
            var tags: [String] = []
        }

        var items: [String: Item] = [:]
        var policy: UpdatePolicy
        var deadBefore: Int64 = 0

        func deadline(_ item: Item) -> Int64? {
            if let own = item.own { return own }
            if item.storedAt <= deadBefore { return 0 }
            return policy.intervalMilliseconds.map { item.storedAt + $0 }
        }

        func isFresh(_ item: Item, now: Int64) -> Bool { deadline(item).map { now < $0 } ?? true }

        func fresh(now: Int64) -> [String: Reader] { items.filter { isFresh($0.value, now: now) }.mapValues(\.value) }

        /// A soft purge makes entries stale; only calls that fetch can distinguish this from a hard purge.
        mutating func remove(tagged tags: Set<String>) {
            items = items.filter { tags.isDisjoint(with: $0.value.tags) }
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
        /// The expected time of the engine: the wall clock, but never going back.
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
        // Identifies keys by their bytes, because Swift considers the two spellings of é equal.
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
                // Deadlines refer to the wall clock, which may be behind the engine's time.
                let ahead = now - work.time.wallMilliseconds()
                return (
                    .until(millisecondsSince1970: instant - (ahead > 1 ? ahead : 0)), { _ in .some(instant) }
                )
            default: return (.database, { _ in nil })
            }
        }

        func item(
            _ value: Reader, _ own: Int64??, _ grace: Int64? = nil, _ tags: [String] = []
        ) -> Expected.Item {
            .init(value: value, storedAt: now, own: own, grace: grace, tags: tags)
        }

        func pickTags() -> [String] {
            random.oneIn(2) ? [] : Array(["red", "blue", "green"].shuffled(using: &random).prefix(1 + random.below(2)))
        }

        func pickGrace() -> Int64? { random.oneIn(2) ? nil : Int64([0, 5_000, 90_000][random.below(3)]) }

        /// Returns a model of a random size, including sizes that are so large that they are stored in another way.
        func pickValue(_ number: Int) -> Reader {
            var value = Reader("v\(number)", price: Double(number))
            let length = [0, 100, 5_000, 1 << 20, 4 << 20][random.oneIn(200) ? 3 + random.below(2) : random.below(3)]
            value.book.name = String(repeating: "x", count: random.oneIn(4) ? length : 3)
            return value
        }

        func fresh(_ key: String) -> Expected.Item? {
            expected.items[id(key)].flatMap { expected.isFresh($0, now: now) ? $0 : nil }
        }

        func step(_ number: Int) throws {
            let key = keys.randomElement(using: &random) ?? ""
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<20: try set(key, pickValue(number))
            case 20..<25: try update(key, number)
            case 25..<27: try count(key)
            case 27..<30:
                let (tags, isSoft) = (
                    Array(["red", "blue"].shuffled(using: &random).prefix(1 + random.below(2))), random.oneIn(2)
                )
                try cache.removeAll(tagged: tags, soft: isSoft)
                expected.remove(tagged: Set(tags))
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
                // After the purge, the database has no entries, and earlier changes of its policy have no effect.
                expected.items = [:]
                expected.deadBefore = 0
            case 62..<65:
                try cache.remove(prefix: "key 1")
                expected.items = expected.items.filter { !$0.key.hasPrefix(id("key 1").dropLast()) }
            case 65..<68: try cache.sweep()
            case 68..<69: try cache.removeExpired()
            case 69..<75:
                cache.close()
                // Sets the clock to the engine's time. ExpiryTests test a clock that is behind at the start.
                work.time.stepWall(milliseconds: now - work.time.wallMilliseconds())
                cache = try work.cache(policy: nil) { $0.memoryBytes = memoryBytes }
            default: moveTime()
            }
        }

        /// Compares the cache with the expected state. Stops the test at the first difference, because later
        /// differences are meaningless.
        func check(_ number: Int, _ place: Comment) throws {
            let fresh = expected.fresh(now: now)
            if number % 10 == 0 {
                let entries = try cache.entries(of: Reader.self).map { ("\($0.keyBytes)", try $0.value()) }
                try #require(Dictionary(uniqueKeysWithValues: entries) == fresh, place)
                try #require(try cache.count() == fresh.count, place)
            } else {
                let key = keys[number % keys.count]
                try #require(try cache.value(Reader.self, forKey: key) == fresh[id(key)], place)
                try checkFacts(key, place)
            }
        }

        func set(_ key: String, _ value: Reader) throws {
            var (policy, own) = pickPolicy()
            let keeps = random.oneIn(5)
            if keeps { (policy, own) = (.keep, { _ in nil }) }
            let (tags, grace) = (pickTags(), pickGrace())
            if let grace { policy = policy.grace(.milliseconds(grace)) }
            let previous = fresh(key)
            switch random.below(6) {
            case 0:
                #expect(try cache.setIfAbsent(value, forKey: key, policy: policy, tags: tags) == (previous == nil))
                if previous != nil { return }
            case 1:
                #expect(try cache.setIfPresent(value, forKey: key, policy: policy, tags: tags) == (previous != nil))
                if previous == nil { return }
            default: try cache.set(value, forKey: key, policy: policy, tags: tags)
            }
            store(key, value, keeps, own(now), grace, tags)
        }

        private func store(
            _ key: String, _ value: Reader, _ keeps: Bool, _ own: Int64??, _ grace: Int64?, _ tags: [String]
        ) {
            let previous = keeps ? fresh(key) : nil
            expected.items[id(key)] = item(
                value, keeps ? previous?.own ?? nil : own, grace ?? previous?.grace,
                tags.isEmpty ? previous?.tags ?? [] : tags)
        }

        /// Updates an entry while another caller changes the entry, or only its lifetime or tags: the closure runs
        /// again.
        func update(_ key: String, _ number: Int) throws {
            var runs = 0
            let changeKind = random.below(4)
            let before = fresh(key)
            try cache.update(Reader.self, forKey: key) { value in
                runs += 1
                #expect(value == fresh(key)?.value)
                if runs == 1, let before { try changeConcurrently(key, before, changeKind, number) }
                value = Reader("u\(number)", price: (value?.book.price ?? 0) + 1)
            }
            // If another caller has changed the lifetime or the tags, the closure has run again.
            if before != nil, changeKind == 1 || changeKind == 3 { #expect(runs == 2) }
            let previous = fresh(key)
            let value = Reader("u\(number)", price: (previous?.value.book.price ?? 0) + 1)
            expected.items[id(key)] = item(value, previous?.own ?? nil, previous?.grace, previous?.tags ?? [])
        }

        private func changeConcurrently(_ key: String, _ previous: Expected.Item, _ kind: Int, _ number: Int) throws {
            switch kind {
            case 1:
                // Set a new lifetime, relative to the wall clock, which may be behind the engine's time.
                let instant = now + 70_000 + Int64(number)
                let ahead = now - work.time.wallMilliseconds()
                try cache.touch(key, policy: .until(millisecondsSince1970: instant - (ahead > 1 ? ahead : 0)))
                expected.items[id(key)]?.own = .some(instant)
            case 2:
                try cache.remove(key)
                expected.items[id(key)] = nil
            case 3:
                // Store the same value with other tags and another grace.
                try cache.set(
                    previous.value, forKey: key, policy: .never.grace(.milliseconds(number)), tags: ["meddled"])
                expected.items[id(key)] = item(previous.value, .some(nil), Int64(number), ["meddled"])
            default: break
            }
        }

        /// A counter keeps the lifetime, the grace and the tags of its entry.
        func count(_ key: String) throws {
            let name = "count " + key
            let (policy, own) = pickPolicy()
            let (tags, grace) = (pickTags(), pickGrace())
            try cache.set(41, forKey: name, policy: grace.map { policy.grace(.milliseconds($0)) } ?? policy, tags: tags)
            let isFresh = expected.isFresh(item(Reader(""), own(now)), now: now)
            let info = try cache.info(forKey: name)
            #expect(try cache.increment(name) == (isFresh ? 42 : 1))
            let after = try cache.info(forKey: name)
            if isFresh {
                #expect(after?.graceMilliseconds == info?.graceMilliseconds && after?.rule == info?.rule)
                #expect(try cache.tags(forKey: name).map { Set($0) } == Set(tags))
            }
            try cache.remove(name)
        }

        /// Checks the metadata of an entry.
        func checkFacts(_ key: String, _ place: Comment) throws {
            let item = fresh(key)
            try #require(try cache.tags(forKey: key).map { Set($0) } == item.map { Set($0.tags) }, place)
            guard let item else { return }
            try #require(try cache.info(forKey: key)?.graceMilliseconds == item.grace ?? 0, place)
        }

        func batch(_ number: Int) throws {
            let own = pickPolicy()
            let tags = pickTags()
            let chosen = (0..<6).map { _ in keys.randomElement(using: &random) ?? "" }
            try cache.batch {
                for (index, key) in chosen.enumerated() {
                    let value = Reader("v\(number).\(index)")
                    if index % 3 == 2 {
                        $0.remove(key)
                        expected.items[id(key)] = nil
                    } else {
                        try $0.set(value, forKey: key, policy: own.0, tags: tags)
                        expected.items[id(key)] = item(value, own.1(now), nil, tags)
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
    func aCacheAgreesWithADictionary(memoryBytes: Int) throws {
        let seed = testSeed()
        let run = try Run(seed: seed, memoryBytes: memoryBytes)
        for number in 0..<2_000 {
            try run.step(number)
            try run.check(number, "seed \(seed), step \(number)")
        }
    }
}
