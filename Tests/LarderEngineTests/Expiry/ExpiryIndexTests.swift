import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct ExpiryIndexTests {
    private func bucket(_ key: [UInt8]) -> Int64? { key.withUnsafeBytes { ExpiryIndex.parse($0)?.bucket } }

    @Test func indexedDeadlinesAreNeverEarlyAndAtMostA64thLate() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<5000 {
            let stored = Int64.random(in: 0...2_000_000_000_000, using: &random)
            let span = Int64.random(
                in: 1...(ExpiryIndex.unindexedMilliseconds - 1) >> Int64.random(in: 0...26, using: &random),
                using: &random)
            let key = Key(random.bytes(count: 5))
            let own = RecordHeader(storedAt: stored, rule: .own(stored + span))
            let ownKey = try #require(ExpiryIndex.key(for: key, own, policy: .low))
            let late = try #require(bucket(ownKey)) - (stored + span)
            #expect(late >= 0)
            #expect(late < max(1024, span / 64))
            let policy = try #require(UpdatePolicy.every(milliseconds: span))
            let governedKey = try #require(ExpiryIndex.key(for: key, RecordHeader(storedAt: stored), policy: policy))
            let governedLate = try #require(bucket(governedKey)) - stored
            #expect(governedLate >= 0)
            #expect(governedLate < max(1024, span / 64))
            #expect(ownKey.withUnsafeBytes { ExpiryIndex.parse($0)?.key } == key)
            #expect(ownKey[0] == 2)
            #expect(governedKey[0] == 3)
        }
    }

    @Test("the granularity of expiry buckets grows with the lifetime") func granularities() {
        #expect(ExpiryIndex.granularity(-5) == 1024)
        #expect(ExpiryIndex.granularity(0) == 1024)
        #expect(ExpiryIndex.granularity(2048 * 64 - 1) == 1024)
        #expect(ExpiryIndex.granularity(2048 * 64) == 2048)
        #expect(ExpiryIndex.granularity(604_800_000) == 1 << 23)
        #expect(ExpiryIndex.granularity(.max) == 1 << 32)
        #expect(ExpiryIndex.roundUp(0, to: 1024) == 0)
        #expect(ExpiryIndex.roundUp(1, to: 1024) == 1024)
        #expect(ExpiryIndex.roundUp(1024, to: 1024) == 1024)
        #expect(ExpiryIndex.roundUp(-1, to: 1024) == 0)
        #expect(ExpiryIndex.roundUp(.max, to: 1 << 32) > EngineTime.latestMilliseconds)
    }

    @Test func entriesThatCannotExpireHaveNoIndexKey() {
        let key = Key("k")
        #expect(ExpiryIndex.key(for: key, RecordHeader(storedAt: 1, rule: .ownNever), policy: .low) == nil)
        #expect(ExpiryIndex.key(for: key, RecordHeader(storedAt: 1), policy: .never) == nil)
        #expect(ExpiryIndex.key(for: key, RecordHeader(storedAt: 1, rule: .own(5)), policy: .never) != nil)
        // Entries that live for a day or longer have no index key either.
        let day = ExpiryIndex.unindexedMilliseconds
        #expect(ExpiryIndex.key(for: key, RecordHeader(storedAt: 1), policy: .low) == nil)
        #expect(ExpiryIndex.key(for: key, RecordHeader(storedAt: 1, rule: .own(1 + day)), policy: .high) == nil)
        #expect(ExpiryIndex.key(for: key, RecordHeader(storedAt: 1, rule: .own(day)), policy: .low) != nil)
    }

    @Test func overwritingAnEntryLeavesAtMost130IndexKeysPerLifetime() throws {
        for policy in [UpdatePolicy.highest, .high, .middle] {
            let interval = try #require(policy.intervalMilliseconds)
            var keys: Set<[UInt8]> = []
            for step in 0..<2000 {
                let stored = 1_700_000_000_000 + interval / 2000 * Int64(step)
                keys.insert(
                    try #require(ExpiryIndex.key(for: Key("k"), RecordHeader(storedAt: stored), policy: policy)))
            }
            #expect(keys.count <= 130, "\(policy)")
        }
    }

    @Test func invalidIndexKeysAreParsedWithoutCrash() {
        for bytes in [[], [2], [2, 0, 0, 0, 0, 0, 0, 0]] as [[UInt8]] { #expect(bucket(bytes) == nil) }
        #expect(bucket([2] + [UInt8](repeating: 0xFF, count: 8)) == -1)
        let parsed = ([3, 0, 0, 0, 0, 0, 0, 4, 0] as [UInt8]).withUnsafeBytes { ExpiryIndex.parse($0) }
        #expect(parsed?.bucket == 1024)
        #expect(parsed?.key == Key([]))
        let extremes: [Int64] = [.min, -1, 0, .max]
        for deadline in extremes {
            for storedAt in extremes {
                _ = ExpiryIndex.key(for: Key("k"), RecordHeader(storedAt: storedAt, rule: .own(deadline)), policy: .low)
                _ = ExpiryIndex.key(for: Key("k"), RecordHeader(storedAt: storedAt), policy: .low)
            }
        }
    }
}
