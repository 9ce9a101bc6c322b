import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct ByteStringSortTests {
    private func sorted(_ strings: [[UInt8]]) -> [[UInt8]] {
        let bytes = strings.flatMap(\.self)
        let starts = strings.reduce(into: [0]) { starts, string in starts.append((starts.last ?? 0) + string.count) }
        return bytes.withUnsafeBytes { bytes in
            var order = ByteStringSort()
            order.sort(strings.count) { UnsafeRawBufferPointer(rebasing: bytes[starts[$0]..<starts[$0 + 1]]) }
            return strings.indices.map { strings[order[$0]] }
        }
    }

    /// Strings of two different bytes, so that many begin alike, and end within eight bytes of each other.
    @Test(arguments: [0, 1, 2, 3, 10, 300, 2000]) func randomStringsAreSorted(count: Int) {
        var random = SeededGenerator(seed: testSeed())
        for bytes in [[UInt8(0), 1], [7, 7, 7, 7, 9], [0, 255]] {
            let prefixes = ["", "key:", "user:0000000000", "a longer prefix, of several words of eight bytes: "]
            let strings = (0..<count).map { _ in
                Array((prefixes.randomElement(using: &random) ?? "").utf8)
                    + (0..<Int.random(in: 0...30, using: &random)).map { _ in bytes.randomElement(using: &random) ?? 0 }
            }
            #expect(sorted(strings) == strings.sorted { $0.lexicographicallyPrecedes($1) })
        }
    }

    @Test("strings that begin alike for many words are sorted") func longCommonPrefixes() {
        let strings = (0..<200).map { [UInt8](repeating: 1, count: $0 * 8) + [2] }
        #expect(sorted(strings.shuffled()) == strings.sorted { $0.lexicographicallyPrecedes($1) })
    }
}
