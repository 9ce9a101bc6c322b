import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of a journal that is long enough to be applied by several threads.
@Suite struct ReplayTests {
    @Test func aLongJournalIsReplayedInOrder() throws {
        let larder = try TestLarder { $0.checkpointBytes = 1 << 30 }
        var random = SeededGenerator(seed: 7)
        var expected: [String: [String: String]] = ["books": [:], "other": [:]]
        let filler = String(repeating: "x", count: 700)
        for number in 0..<12_000 {
            let name = number % 3 == 0 ? "other" : "books"
            let database = try larder.database(name)
            let key = "k\(Int.random(in: 0..<400, using: &random))"
            if random.oneIn(10) {
                try database.remove(key)
                expected[name]?[key] = nil
            } else {
                try database.put(key, "\(number)" + filler)
                expected[name]?[key] = "\(number)" + filler
            }
            if number == 4000 {
                // After the purge, earlier groups of the journal must not be applied.
                _ = try database.purge(.all(counting: false))
                expected[name] = [:]
            }
        }
        #expect(try larder.engine().journalByteCount > 5 << 20)
        let crashCopy = try larder.crashCopy()
        for name in ["books", "other"] {
            let contents = try crashCopy.database(name).contents()
            #expect(contents == expected[name], "\(name)")
        }
    }
}
