import Testing

@testable import LarderEngine

@Suite struct ShardTests {
    /// Keys of every usual form spread over the shards: none has more than twice its part.
    @Test(arguments: ["", "key:", "user:session:", "ключ/", "a-rather-long-prefix-that-many-keys-have-in-common/"])
    func keysSpread(prefix: String) {
        var counts = [Int](repeating: 0, count: Shard.count)
        for number in 0..<16_000 { counts[Shard.index(Key("\(prefix)\(number)").hash)] += 1 }
        #expect(counts.allSatisfy { (500...2000).contains($0) }, "\(counts)")
    }

    @Test func everyLengthHasAShard() {
        for length in 0...40 {
            let key = Key([UInt8](repeating: 0xFF, count: length))
            #expect((0..<Shard.count).contains(Shard.index(key.hash)))
            #expect(Shard.index(key.hash) == Shard.index(Key([UInt8](repeating: 0xFF, count: length)).hash))
        }
    }

    /// What a read brings from the disk must not take the place of what was written while it was under way.
    @Test func aColdReadNeverHidesAWrite() {
        let shard = Shard(budget: MemoryBudget(limitBytes: 1 << 20))
        let key = Key("k")
        let old = Record(RecordHeader(storedAt: 1), payload: [1])
        let new = Record(RecordHeader(storedAt: 2), payload: [2])
        func stored() -> [UInt8]? { shard.find(key)?.record.map { Array($0) } }
        shard.lock.withLock {
            let mark = shard.beginColdRead(key)
            key.withBytes { bytes in
                new.stored.withUnsafeBytes { shard.put(bytes, key.hash, stored: $0, sequence: 9) }
            }
            shard.endColdRead(key, mark, keeping: old)
            #expect(stored() == new.stored)
            // Not even when the write was let go meanwhile.
            let second = shard.beginColdRead(key)
            key.withBytes { shard.remove($0, key.hash, sequence: 10) }
            shard.clear()
            shard.endColdRead(key, second, keeping: old)
            #expect(stored() == nil)
            let third = shard.beginColdRead(key)
            shard.endColdRead(key, third, keeping: old)
            #expect(stored() == old.stored)
        }
    }

    /// That LevelDB has nothing is kept too, and is as good as any other answer.
    @Test func absenceIsRemembered() {
        let shard = Shard(budget: MemoryBudget(limitBytes: 1 << 20))
        let key = Key("k")
        shard.lock.withLock {
            let mark = shard.beginColdRead(key)
            shard.endColdRead(key, mark, keeping: nil)
            #expect(shard.find(key) != nil)
            #expect(shard.find(key)?.record == nil)
            #expect(shard.find(key)?.isDirty == false)
        }
    }
}
