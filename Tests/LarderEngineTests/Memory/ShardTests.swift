import Testing

@testable import LarderEngine

@Suite struct ShardTests {
    /// Keys of all usual forms are distributed over the shards (parts of a database): each shard has at least half and
    /// at most twice its share.
    @Test(arguments: ["", "key:", "user:session:", "ключ/", "a-rather-long-prefix-that-many-keys-have-in-common/"])
    func keysAreSpreadEvenlyOverTheShards(prefix: String) {
        var counts = [Int](repeating: 0, count: Shard.count)
        for number in 0..<16_000 { counts[Shard.index(Key("\(prefix)\(number)").hash)] += 1 }
        #expect(counts.allSatisfy { (500...2000).contains($0) }, "\(counts)")
    }

    @Test func keysOfEveryLengthHaveAFixedShard() {
        for length in 0...40 {
            let key = Key([UInt8](repeating: 0xFF, count: length))
            #expect((0..<Shard.count).contains(Shard.index(key.hash)))
            #expect(Shard.index(key.hash) == Shard.index(Key([UInt8](repeating: 0xFF, count: length)).hash))
        }
    }

    /// A value that is read from the disk must not replace one that was written during the read.
    @Test func aReadFromDiskNeverReplacesANewerWrite() {
        let shard = Shard(budget: MemoryBudget(limitBytes: 1 << 20))
        let key = Key("k")
        let old = Record(RecordHeader(storedAt: 1), payload: [1])
        let new = Record(RecordHeader(storedAt: 2), payload: [2])
        func stored() -> [UInt8]? { shard.find(key)?.stored }
        func end(_ read: Int, _ record: Record?) {
            key.withBytes { bytes in
                guard let record else { return shard.endRead(read, bytes, key.hash, keeping: nil) }
                record.stored.withUnsafeBytes { shard.endRead(read, bytes, key.hash, keeping: $0) }
            }
        }
        shard.lock.withLock {
            let first = shard.beginRead(key.hash)
            key.withBytes { bytes in
                new.stored.withUnsafeBytes { shard.put(bytes, key.hash, stored: $0, sequence: 9) }
            }
            end(first, old)
            #expect(stored() == new.stored)
            // A value from the disk is not kept if its key was written during the read, even if the written entry is
            // evicted before the read ends.
            let second = shard.beginRead(key.hash)
            key.withBytes { shard.remove($0, key.hash, sequence: 10) }
            shard.clear()
            end(second, old)
            #expect(stored() == nil)
            // Nor is a value from the disk kept if the shard was cleared, or the record in LevelDB swept, during the
            // read.
            for change in [shard.clear, shard.forgetStored, { shard.reads.swept(key.hash) }] {
                let third = shard.beginRead(key.hash)
                change()
                end(third, old)
                #expect(stored() == nil)
            }
            // A value is kept if its read began after the change. Changes of other keys do not matter.
            let other = Key("other")
            let fourth = shard.beginRead(other.hash)
            let fifth = shard.beginRead(key.hash)
            other.withBytes { shard.remove($0, other.hash, sequence: 11) }
            shard.endRead(fourth)
            end(fifth, old)
            #expect(stored() == old.stored)
        }
    }

    /// If several readers of a key overlap with a write, none keeps a value that it read before the write.
    @Test func overlappingReadsFromDiskNeverKeepAnOutdatedValue() {
        var reads = InFlightReads()
        func isKept(_ number: Int) -> Bool { reads.end(number) }
        let first = reads.begin(7)
        let second = reads.begin(7)
        let other = reads.begin(8)
        #expect(Set([first, second, other]).count == 3)
        reads.swept(7)
        #expect(!isKept(first))
        // The third read reuses the slot of the first. Changes before a read began do not affect that read.
        let third = reads.begin(7)
        #expect(isKept(third))
        #expect(!isKept(second))
        #expect(isKept(other))
        reads.swept(7)
        let fourth = reads.begin(7)
        reads.changedAll()
        #expect(!isKept(fourth))
    }

    /// The absence of a key in LevelDB is kept in memory too.
    @Test func theAbsenceOfAKeyIsKeptInMemory() {
        let shard = Shard(budget: MemoryBudget(limitBytes: 1 << 20))
        let key = Key("k")
        shard.lock.withLock {
            let read = shard.beginRead(key.hash)
            key.withBytes { shard.endRead(read, $0, key.hash, keeping: nil) }
            #expect(shard.find(key) != nil)
            #expect(shard.find(key)?.hasRecord == false)
            #expect(shard.find(key)?.isDirty == false)
        }
    }
}
