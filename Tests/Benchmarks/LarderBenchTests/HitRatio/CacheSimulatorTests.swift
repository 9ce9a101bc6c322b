import LarderPlatform
import Testing

@testable import larderbench

@Suite struct CacheSimulatorTests {
    /// Returns for each request whether it was a hit.
    private func hits(_ simulator: some CacheSimulator, _ trace: [Int]) -> [Bool] {
        var simulator = simulator
        return trace.map { simulator.access($0) }
    }

    @Test func lruEvictsTheLeastRecentlyUsedKey() {
        // Key 0 is used again and stays; key 1 is evicted for key 2.
        let simulator = LRUSimulator(capacity: 2, universe: 3)
        #expect(hits(simulator, [0, 1, 0, 2, 0, 1]) == [false, false, true, false, true, false])
    }

    @Test func sieveKeepsKeysWhoseVisitedBitIsSet() {
        // The hit on 0 sets its bit. Key 1 is evicted for 3, and the hand stays at 2. Then 2, whose bit is not set, is
        // evicted for 4.
        let simulator = SieveSimulator(capacity: 3, universe: 6)
        #expect(
            hits(simulator, [0, 1, 2, 0, 3, 4, 0, 3, 1, 2])
                == [false, false, false, true, false, false, true, true, false, false])
    }

    @Test func sieveClearsVisitedBitsWhenTheHandPasses() {
        // Both bits are set: the hand clears both, returns to key 0 and evicts this key.
        let simulator = SieveSimulator(capacity: 2, universe: 3)
        #expect(
            hits(simulator, [0, 1, 0, 1, 2, 1, 0]) == [false, false, true, true, false, true, false])
    }

    @Test func s3FIFOKeepsHotKeysDuringAScan() {
        var simulator = S3FIFOSimulator(capacity: 100, universe: 10_000)
        // Ninety hot keys get enough hits to move to the main queue when they leave the small queue.
        for _ in 0..<4 { for key in 0..<90 { _ = simulator.access(key) } }
        for key in 1000..<5000 { _ = simulator.access(key) }
        let kept = (0..<90).filter { simulator.access($0) }.count
        #expect(kept == 90)
    }

    @Test func s3FIFOPromotesKeysFromTheGhostQueue() {
        var simulator = S3FIFOSimulator(capacity: 10, universe: 100)
        for key in 0..<11 { _ = simulator.access(key) }
        // Key 0 has left the small queue and is a ghost. Now it moves to the main queue, where a scan does not evict
        // it.
        let wasThere = simulator.access(0)
        #expect(!wasThere)
        for key in 50..<80 { _ = simulator.access(key) }
        let isThere = simulator.access(0)
        #expect(isThere)
        #expect(simulator.count == 10)
    }

    @Test func beladysOptimumAgreesWithATraceComputedByHand() {
        // Two keys fit. At position 2, the key whose next request is farthest away is key 2 itself, so it is not
        // stored.
        let trace: [Int32] = [0, 1, 2, 0, 1, 2]
        let simulator = BeladySimulator(capacity: 2, universe: 3, trace: trace)
        #expect(hits(simulator, trace.map(Int.init)) == [false, false, false, true, true, false])
    }

    @Test(arguments: Trace.Kind.allCases) func noPolicyHasMoreHitsThanBeladysOptimum(kind: Trace.Kind) {
        let trace = Trace(kind, count: 100_000, seed: 11)
        var belady = BeladySimulator(capacity: 2000, universe: trace.universe, trace: trace.keys)
        var lru = LRUSimulator(capacity: 2000, universe: trace.universe)
        var sieve = SieveSimulator(capacity: 2000, universe: trace.universe)
        var s3 = S3FIFOSimulator(capacity: 2000, universe: trace.universe)
        let best = belady.hitRatio(trace.keys, from: 0)
        let ratios = [
            lru.hitRatio(trace.keys, from: 0), sieve.hitRatio(trace.keys, from: 0), s3.hitRatio(trace.keys, from: 0),
        ]
        #expect(ratios.allSatisfy { $0 < best }, "\(ratios) against \(best)")
        // As in their papers, SIEVE and S3-FIFO have more hits than LRU for skewed traces.
        #expect(ratios[1] > ratios[0] && ratios[2] > ratios[0], "\(ratios)")
        for count in [lru.count, sieve.count, s3.count, belady.count] { #expect(count == 2000) }
    }

    /// Compares the results with those of the simplest implementation of LRU.
    @Test func lruAgreesWithASimpleImplementation() {
        var generator = SplitMix(seed: 17)
        var simulator = LRUSimulator(capacity: 5, universe: 12)
        var list: [Int] = []
        for _ in 0..<5000 {
            let key = Int(generator.next() % 12)
            let isHit = list.contains(key)
            list.removeAll { $0 == key }
            list.append(key)
            if list.count > 5 { list.removeFirst() }
            let found = simulator.access(key)
            #expect(found == isHit)
        }
    }

    @Test func beladysOptimumAgreesWithASimpleImplementation() {
        var generator = SplitMix(seed: 23)
        let trace = (0..<2000).map { _ in Int32(generator.next() % 10) }
        var simulator = BeladySimulator(capacity: 4, universe: 10, trace: trace)
        var held: Set<Int32> = []
        for (position, key) in trace.enumerated() {
            let isHit = held.contains(key)
            let found = simulator.access(Int(key))
            #expect(found == isHit)
            held.insert(key)
            if held.count > 4 {
                let last = held.max { first, second in
                    next(trace, first, after: position) < next(trace, second, after: position)
                }
                if let last { held.remove(last) }
            }
        }
    }

    private func next(_ trace: [Int32], _ key: Int32, after position: Int) -> Int {
        trace[(position + 1)...].firstIndex(of: key) ?? trace.count + Int(key)
    }
}
