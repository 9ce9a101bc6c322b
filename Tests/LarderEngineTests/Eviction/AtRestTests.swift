import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of how much disk space the files of an idle larder take.
@Suite struct AtRestTests {
    /// The files of an idle larder shrink within minutes, whatever its history. Then they have at most 1.3 times the
    /// bytes of its entries, plus 64 MB.
    @Test func filesOfAnIdleLarderAreLittleLargerThanItsEntries() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        var random = SeededGenerator(seed: testSeed())
        var live: [String: Int] = [:]
        for round in 0..<3 {
            let databases = try ["one", "two"].map { try larder.database($0, policy: .never) }
            var written = 0
            while written < 70 << 20 {
                let which = random.below(2)
                let key = "key:\(random.below(4_000))"
                let bytes = random.oneIn(20) ? random.below(1 << 20) : 1_000 + random.below(50_000)
                let value = Incompressible.bytes(count: bytes, &random)
                try databases[which].commit([Key(key)], loading: .none) { update in
                    value.withUnsafeBytes { update.put(0, payload: $0) }
                }
                live["\(which) \(key)"] = key.utf8.count + bytes
                written += bytes
            }
            // Removes nine of ten entries, in the order of the keys.
            for entry in live.keys.sorted() where !random.oneIn(10) {
                let words = entry.split(separator: " ")
                try databases[words[0] == "0" ? 0 : 1].remove(String(words[1]))
                live[entry] = nil
            }
            if round == 1 { larder.close() }
        }
        let entries = live.values.reduce(0, +)
        let before = FileSystem.space(larder.path)
        for _ in 0..<10 {
            larder.time.advance(milliseconds: 30_000)
            try larder.maintain()
        }
        let after = FileSystem.space(larder.path)
        #expect(before > after)
        #expect(after <= entries * 13 / 10 + 64_000_000, "\(after) of \(before), entries \(entries)")
    }
}
