import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct UpdateTests {
    /// Entries that are removed while the memory for entries is full stay removed, also in LevelDB.
    @Test func entriesRemovedWhileMemoryIsFullStayRemoved() throws {
        var random = SeededGenerator(seed: testSeed())
        let larder = try TestLarder { $0.memoryBytes = 60_000 }
        let database = try larder.database(policy: .never)
        var expected: [String: String] = [:]
        var quick = 0
        for round in 0..<300 {
            for _ in 0..<10 {
                let key = "k\(Int.random(in: 0..<150, using: &random))"
                let value = "\(round)" + String(repeating: "x", count: Int.random(in: 0..<600, using: &random))
                try database.put(key, value)
                expected[key] = value
            }
            if random.oneIn(3) { try database.flush() }
            let names = (0..<20).map { _ in "k\(Int.random(in: 0..<150, using: &random))" }
            var removed = 0
            let ticket = try database.perform(
                names.map { Key($0) }, .headers, .memoryOnly, now: database.now()
            ) { update in
                for index in names.indices where update.isFresh(index) {
                    removed += 1
                    update.remove(index)
                }
            }
            if ticket != nil {
                quick += 1
                #expect(removed == Set(names).count { expected[$0] != nil })
                for name in names { expected[name] = nil }
            }
            #expect(try database.contents() == expected)
            for name in names { #expect(try database.value(name) == expected[name]) }
        }
        #expect(quick > 0)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == expected)
    }

    /// Compares the search for the first occurrence of each key with a dictionary.
    @Test func repeatedKeysOfAnUpdateAreFound() {
        var random = SeededGenerator(seed: testSeed())
        for count in [0, 1, 2, 3, 10, 100, 3000] {
            for distinct in [1, 2, max(1, count / 2), 10 * count + 1] {
                let keys = (0..<count).map { _ in Key("k\(Int.random(in: 0..<distinct, using: &random))") }
                var first: [Key: Int] = [:]
                for (index, key) in keys.enumerated() where first[key] == nil { first[key] = index }
                let expected = keys.map { first[$0] ?? -1 }
                let slots = Update.positionsOfRepeatedKeys(keys)
                #expect((slots == nil) == (first.count == count))
                #expect((slots ?? Array(keys.indices)) == expected)
            }
        }
    }
}
