import LarderPlatform
import Testing

@testable import larderbench

@Suite struct KeyChooserTests {
    @Test(arguments: [1, 2, 3, 10, 618, 1000, 99_991]) func theScatteredOrderContainsEachKeyOnce(count: Int) {
        var chooser = KeyChooser(.scattered, count: count, seed: 1)
        var seen = Set<Int>()
        for _ in 0..<count { seen.insert(chooser.next()) }
        #expect(seen.count == count)
        #expect(seen.allSatisfy { (0..<count).contains($0) })
    }

    @Test("the scattered order looks random: it is neither sorted nor evenly spread")
    func theScatteredOrderLooksRandom() {
        let count = 100_000
        var chooser = KeyChooser(.scattered, count: count, seed: 1)
        let keys = (0..<count).map { _ in chooser.next() }
        let rising = zip(keys, keys.dropFirst()).count { $0 < $1 }
        #expect((45_000...55_000).contains(rising))
        // Of 1000 random keys, about 368 of 1000 equal ranges have none.
        let hit = Set(keys.prefix(1000).map { $0 / 100 })
        #expect((560...700).contains(hit.count), "\(hit.count)")
        #expect((0..<3).map { _ in chooser.next() } == Array(keys.prefix(3)))
    }

    @Test func sequentialKeysRestartAfterTheLastOne() {
        var chooser = KeyChooser(.sequential, count: 3, seed: 1)
        let keys = (0..<7).map { _ in chooser.next() }
        #expect(keys == [0, 1, 2, 0, 1, 2, 0])
    }

    @Test("a uniform chooser chooses all keys equally often") func uniformKeysAreChosenEquallyOften() {
        var chooser = KeyChooser(.uniform, count: 10, seed: 3)
        var counts = [Int](repeating: 0, count: 10)
        for _ in 0..<100_000 { counts[chooser.next()] += 1 }
        #expect(counts.allSatisfy { (9_500...10_500).contains($0) }, "\(counts)")
    }

    @Test("sampled keys have the frequencies of the Zipf distribution", arguments: [0.8, 1.0, 1.2])
    func zipfKeysHaveTheirFrequencies(exponent: Double) {
        let count = 1000
        let sampler = ZipfSampler(count: count, exponent: exponent)
        var generator = SplitMix(seed: 5)
        let draws = 1_000_000
        var counts = [Int](repeating: 0, count: count)
        for _ in 0..<draws { counts[sampler.sample(&generator)] += 1 }
        let weights = (1...count).map { rank in pow(Double(rank), -exponent) }
        let sum = weights.reduce(0, +)
        for rank in [1, 2, 3, 4, 5, 10, 50, 200] {
            let expected = Double(draws) * weights[rank - 1] / sum
            let deviation = abs(Double(counts[rank - 1]) - expected)
            // Five standard deviations of a count.
            #expect(deviation < 5 * expected.squareRoot(), "rank \(rank): \(counts[rank - 1]), expected \(expected)")
        }
        let tail = counts[500...].reduce(0, +)
        let expectedTail = Double(draws) * weights[500...].reduce(0, +) / sum
        #expect(abs(Double(tail) - expectedTail) < 5 * expectedTail.squareRoot())
    }

    @Test func theSameSeedGivesTheSameKeys() {
        var first = KeyChooser(.zipf(exponent: 1), count: 1000, seed: 9)
        var second = KeyChooser(.zipf(exponent: 1), count: 1000, seed: 9)
        let same = (0..<100).allSatisfy { _ in first.next() == second.next() }
        #expect(same)
    }
}
