import TestSupport
import Testing

@testable import LarderEngine

/// The memory tier by itself: what it keeps, what it lets go, and how well it guesses.
@Suite struct MemoryTierTests {
    private static func record(_ bytes: Int) -> Record {
        Record(RecordHeader(storedAt: 1), payload: [UInt8](repeating: 7, count: bytes))
    }

    @Test func keepsReplacesAndRemoves() {
        var tier = MemoryTier()
        #expect(tier.peek(Key("a")) == nil)
        tier.insert(Key("a"), Self.record(10))
        let bytes = tier.byteCount
        #expect(bytes == Key("a").stored.count + 16 + 10 + MemoryTier.overheadBytes)
        tier.insert(Key("a"), Self.record(20))
        #expect(tier.byteCount == bytes + 10)
        let found = tier.find(Key("a"))
        #expect(found?.payloadCount == 20)
        #expect(tier.count == 1)
        tier.remove(Key("a"))
        tier.remove(Key("a"))
        #expect(tier.byteCount == 0 && tier.count == 0)
        #expect(tier.peek(Key("a")) == nil)
        let hasEvicted = tier.evict()
        #expect(!hasEvicted)
    }

    /// Runs `keys` through a tier of `capacity` entries, as a cache in front of something slow.
    private static func hitRatio(_ keys: [Int], capacity: Int) -> Double {
        var tier = MemoryTier()
        let record = record(1)
        var hits = 0
        for key in keys {
            let key = Key("\(key)")
            if tier.find(key) != nil {
                hits += 1
                continue
            }
            tier.insert(key, record)
            while tier.count > capacity { _ = tier.evict() }
        }
        return Double(hits) / Double(keys.count)
    }

    /// SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is Simpler than LRU", NSDI 2024), to compare with.
    private static func sieveHitRatio(_ keys: [Int], capacity: Int) -> Double {
        var order: [Int] = []  // The newest last.
        var visited: [Int: Bool] = [:]
        var hand = 0
        var hits = 0
        for key in keys {
            if visited[key] != nil {
                hits += 1
                visited[key] = true
                continue
            }
            if order.count == capacity {
                if hand >= order.count { hand = 0 }
                while visited[order[hand]] == true {
                    visited[order[hand]] = false
                    hand = (hand + 1) % order.count
                }
                visited[order[hand]] = nil
                order.remove(at: hand)
            }
            order.append(key)
            visited[key] = false
        }
        return Double(hits) / Double(keys.count)
    }

    private static func lruHitRatio(_ keys: [Int], capacity: Int) -> Double {
        var order: [Int] = []
        var hits = 0
        for key in keys {
            if let place = order.lastIndex(of: key) {
                hits += 1
                order.remove(at: place)
            } else if order.count == capacity {
                order.removeFirst()
            }
            order.append(key)
        }
        return Double(hits) / Double(keys.count)
    }

    /// Keys drawn with Zipf's law: key *k* with a probability in proportion to 1 / k^skew.
    private static func zipf(_ skew: Double, keys: Int, count: Int, _ generator: inout SeededGenerator) -> [Int] {
        var sums: [Double] = []
        var sum = 0.0
        for key in 1...keys {
            sum += 1 / power(Double(key), skew)
            sums.append(sum)
        }
        return (0..<count).map { _ in
            let point = Double.random(in: 0..<sum, using: &generator)
            var (low, high) = (0, sums.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] <= point { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }

    /// `base` to the power 0.8 or 1, by square roots: 0.8 is 1/2 + 1/4 + 1/32 + 1/64 + 1/512 and a little.
    private static func power(_ base: Double, _ exponent: Double) -> Double {
        var result = exponent >= 1 ? base : 1
        var rest = exponent >= 1 ? exponent - 1 : exponent
        var root = base
        for _ in 0..<30 {
            root = root.squareRoot()
            rest *= 2
            if rest >= 1 {
                result *= root
                rest -= 1
            }
        }
        return result
    }

    @Test(arguments: [0.8, 1.0]) func hitsZipfAtLeastAsOftenAsSieve(skew: Double) {
        var generator = SeededGenerator(seed: 7)
        let keys = Self.zipf(skew, keys: 5_000, count: 30_000, &generator)
        let ours = Self.hitRatio(keys, capacity: 500)
        let sieve = Self.sieveHitRatio(keys, capacity: 500)
        #expect(ours >= sieve - 0.005, "ours \(ours), SIEVE \(sieve)")
        #expect(ours > Self.lruHitRatio(keys, capacity: 500))
    }

    /// A scan over keys that never come back must not push out what is hot.
    @Test func aScanPushesNothingHotOut() {
        var generator = SeededGenerator(seed: 8)
        let hot = Self.zipf(1, keys: 5_000, count: 20_000, &generator)
        var polluted: [Int] = []
        for (position, key) in hot.enumerated() {
            polluted.append(key)
            polluted.append(1_000_000 + position)
        }
        let ours = Self.hitRatio(polluted, capacity: 500)
        let sieve = Self.sieveHitRatio(polluted, capacity: 500)
        #expect(ours >= sieve - 0.005, "ours \(ours), SIEVE \(sieve)")
        #expect(ours > Self.lruHitRatio(polluted, capacity: 500) * 1.1)
    }

    @Test func countsItsBytesThroughAnyHistory() {
        var generator = SeededGenerator(seed: 9)
        var tier = MemoryTier()
        var model: [Int: Int] = [:]
        for _ in 0..<5_000 {
            let key = Int.random(in: 0..<300, using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<4:
                let size = Int.random(in: 0..<100, using: &generator)
                tier.insert(Key("\(key)"), Self.record(size))
                model[key] = size
            case 4..<8:
                let found = tier.find(Key("\(key)"))
                #expect(found?.payloadCount == model[key])
            case 8:
                tier.remove(Key("\(key)"))
                model[key] = nil
            default:
                if tier.evict() {
                    let gone = model.keys.filter { tier.peek(Key("\($0)")) == nil }
                    #expect(gone.count == 1)
                    for key in gone { model[key] = nil }
                }
            }
            let bytes = model.reduce(0) {
                $0 + Key("\($1.key)").stored.count + 16 + $1.value + MemoryTier.overheadBytes
            }
            #expect(tier.byteCount == bytes && tier.count == model.count)
        }
    }
}
