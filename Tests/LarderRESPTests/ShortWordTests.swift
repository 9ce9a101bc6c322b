import LarderTestSupport
import Testing

@testable import LarderRESP

@Suite struct ShortWordTests {
    private func word(_ bytes: [UInt8]) -> ShortWord { bytes.withUnsafeBytes { ShortWord($0) } }

    /// Words are equal if their bytes are, ignoring the case of ASCII letters. Words that are too long are not names.
    @Test func wordsThatDifferInCaseOnlyAreEqual() {
        var random = SeededGenerator(seed: testSeed())
        let telling = Array("aAzZ@[`{-mM\0\r".utf8) + [0xC1, 0xE1, 0xFF]
        func lower(_ bytes: [UInt8]) -> [UInt8] { bytes.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 } }
        for _ in 0..<20_000 {
            let one = (0..<Int.random(in: 0...17, using: &random)).map { _ in telling.randomElement(using: &random)! }
            var other = one
            for _ in 0..<Int.random(in: 0...2, using: &random) where !other.isEmpty {
                let place = other.indices.randomElement(using: &random)!
                switch Int.random(in: 0..<4, using: &random) {
                case 0: other[place] ^= 0x20
                case 1: other[place] = telling.randomElement(using: &random)!
                case 2: other.remove(at: place)
                default: other.append(0)
                }
            }
            let isLong = one.count > ShortWord.lengthMax || other.count > ShortWord.lengthMax
            if isLong {
                #expect((word(one) == .other) == (one.count > ShortWord.lengthMax))
            } else {
                #expect((word(one) == word(other)) == (lower(one) == lower(other)), "\(one) \(other)")
            }
        }
    }

    @Test func wordsOfAllLengthsUpTo15AreDistinct() {
        let text = Array("ABCDEFGHIJKLMNO".utf8)
        let words = (0...15).map { word(Array(text[..<$0])) }
        #expect(Set(words).count == 16)
        #expect(words[15] == ShortWord("abcdefghijklmno"))
        #expect(words[3] == ShortWord(constant: 0x63_62_61, length: 3))
        #expect(word(text + text) == .other)
    }
}
