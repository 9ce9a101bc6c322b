import TestSupport
import Testing

@testable import LarderEngine

@Suite struct UpdateTests {
    /// Where each key is named first, found by a table of hashes, against a dictionary.
    @Test func repeatedKeysAreFound() {
        var random = SeededGenerator(seed: testSeed())
        for count in [0, 1, 2, 3, 10, 100, 3000] {
            for distinct in [1, 2, max(1, count / 2), 10 * count + 1] {
                let keys = (0..<count).map { _ in Key("k\(Int.random(in: 0..<distinct, using: &random))") }
                var first: [Key: Int] = [:]
                for (index, key) in keys.enumerated() where first[key] == nil { first[key] = index }
                let expected = keys.map { first[$0] ?? -1 }
                let slots = Update.slotsOfRepeatedKeys(keys)
                #expect((slots == nil) == (first.count == count))
                #expect((slots ?? Array(keys.indices)) == expected)
            }
        }
    }
}
