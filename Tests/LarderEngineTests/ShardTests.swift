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
}
