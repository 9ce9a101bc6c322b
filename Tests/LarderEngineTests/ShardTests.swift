import Testing

@testable import LarderEngine

@Suite struct ShardTests {
    /// Keys of every usual form spread over the shards: none has more than twice its part.
    @Test(arguments: ["", "key:", "user:session:", "ключ/", "a-rather-long-prefix-that-many-keys-have-in-common/"])
    func keysSpread(prefix: String) {
        var counts = [Int](repeating: 0, count: Shard.count)
        for number in 0..<16_000 { counts[Shard.index(Key("\(prefix)\(number)"))] += 1 }
        #expect(counts.allSatisfy { (500...2000).contains($0) }, "\(counts)")
    }

    @Test func everyLengthHasAShard() {
        for length in 0...40 {
            let key = Key([UInt8](repeating: 0xFF, count: length))
            #expect((0..<Shard.count).contains(Shard.index(key)))
            #expect(Shard.index(key) == Shard.index(Key([UInt8](repeating: 0xFF, count: length))))
        }
    }

    private static func record(_ bytes: Int) -> Record {
        Record(RecordHeader(storedAt: 1), payload: [UInt8](repeating: 7, count: bytes))
    }

    /// A shard with a committed entry in its tier.
    private static func shardWithEntry(_ key: Key) -> Shard {
        let shard = Shard(budget: MemoryBudget(limitBytes: 32_000))
        shard.set(key, PendingEntry(sequence: 1, record: record(10)))
        shard.settle(key, sequence: 1)
        return shard
    }

    @Test func aWriteReachesTheTierWhenItIsCommitted() {
        let key = Key("k")
        let shard = Self.shardWithEntry(key)
        shard.set(key, PendingEntry(sequence: 2, record: Self.record(20)))
        #expect(shard.overlay[key]?.record?.payloadCount == 20)
        shard.settle(key, sequence: 2)
        #expect(shard.overlay.isEmpty)
        #expect(shard.tier.peek(key)?.payloadCount == 20)
        #expect(shard.tier.count == 1)
    }

    @Test func anEarlierCommitDoesNotSettleALaterWrite() {
        let key = Key("k")
        let shard = Self.shardWithEntry(key)
        shard.set(key, PendingEntry(sequence: 2, record: Self.record(20)))
        shard.set(key, PendingEntry(sequence: 3, record: nil))
        shard.settle(key, sequence: 2)
        #expect(shard.overlay[key]?.sequence == 3)
        shard.settle(key, sequence: 3)
        #expect(shard.tier.peek(key) == nil)
    }

    /// Or the tier would go on serving what was written over.
    @Test func whatTheTierDoesNotTakeLeavesNothingOlderInIt() {
        let key = Key("k")
        let shard = Self.shardWithEntry(key)
        shard.set(key, PendingEntry(sequence: 2, record: Self.record(2000)))
        shard.settle(key, sequence: 2)
        #expect(shard.tier.peek(key) == nil)
    }
}
