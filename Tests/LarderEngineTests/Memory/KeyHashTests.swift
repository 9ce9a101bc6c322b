import Testing

@testable import LarderEngine

/// Tests of the hash function of keys.
@Suite struct KeyHashTests {
    /// The example in appendix A of the paper on SipHash, which has two rounds for each word and four at the end.
    @Test("SipHash has the value that its authors publish")
    func publishedValue() {
        let key: (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
        let hash = (0..<15).map { UInt8($0) }.withUnsafeBytes { Key.sipHash($0, key, rounds: 2, lastRounds: 4) }
        #expect(hash == 0xa129_ca61_49be_45e5)
    }

    @Test("keys that differ in length or in one bit have different hashes")
    func hashesDiffer() {
        var seen: Set<Int> = []
        var count = 0
        for length in 0...40 {
            let zeros = [UInt8](repeating: 0, count: length)
            seen.insert(zeros.withUnsafeBytes { Key.hash($0) })
            count += 1
            for bit in 0..<8 * length {
                var bytes = zeros
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                let hash = bytes.withUnsafeBytes { Key.hash($0) }
                #expect(hash == bytes.withUnsafeBytes { Key.hash($0) })
                seen.insert(hash)
                count += 1
            }
        }
        #expect(seen.count == count)
    }

    /// The table and the shards use different bits of the hash, so all bits must be even.
    @Test("each bit of the hashes of similar keys is set in half of them")
    func bitsAreEven() {
        var counts = [Int](repeating: 0, count: 64)
        let keys = 20_000
        for number in 0..<keys {
            let hash = UInt(bitPattern: Key("user:\(number)").hash)
            for bit in 0..<64 where hash >> UInt(bit) & 1 == 1 { counts[bit] += 1 }
        }
        // Seven standard deviations: a wrong alarm in one of 10^10 runs.
        for count in counts { #expect(abs(count - keys / 2) < 500) }
    }
}
