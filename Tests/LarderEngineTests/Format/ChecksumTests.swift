import CLarderCRC32C
import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct ChecksumTests {
    /// The examples of RFC 3720, appendix B.4, and the usual check value.
    @Test func checksumsMatchTheExamplesOfRFC3720() {
        #expect(CRC32C.checksum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(CRC32C.checksum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(CRC32C.checksum([UInt8](0..<32)) == 0x46DD_794E)
        #expect(CRC32C.checksum([UInt8]((0..<32).reversed())) == 0x113F_DB5C)
        #expect(CRC32C.checksum("123456789".utf8) == 0xE306_9283)
        #expect(CRC32C.checksum([]) == 0)
    }

    /// The CPU instruction, the table and the incremental computation return the same checksums for all lengths and
    /// alignments.
    @Test("all implementations of the checksum agree") func allWaysAgree() {
        var random = SeededGenerator(seed: testSeed())
        let bytes = random.bytes(count: 5000)
        bytes.withUnsafeBytes { all in
            for start in 0..<9 {
                for count in Array(0..<70) + [127, 128, 1000, 4096, 4991] {
                    let part = UnsafeRawBufferPointer(rebasing: all[start..<(start + count)])
                    let sum = CRC32C.checksum(part)
                    #expect(sum == larder_crc32c_extend_portable(0, part.baseAddress, part.count))
                    #expect(sum == bitByBit(part))
                    let half = Int.random(in: 0...count, using: &random)
                    let begun = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: part[..<half]))
                    #expect(sum == CRC32C.extend(begun, UnsafeRawBufferPointer(rebasing: part[half...])))
                }
            }
        }
    }

    /// The checksums of two parts of any length can be combined to the checksum of the whole.
    @Test func checksumsOfPartsCombineToThatOfTheWhole() {
        var random = SeededGenerator(seed: testSeed())
        let bytes = random.bytes(count: 70_000)
        bytes.withUnsafeBytes { all in
            for count in Array(0..<20) + [255, 256, 4095, 65_535, 65_536, 70_000] {
                for half in [0, 1, count / 2, count].map({ min($0, count) }) + [
                    Int.random(in: 0...count, using: &random)
                ] {
                    let first = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: all[..<half]))
                    let second = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: all[half..<count]))
                    #expect(
                        CRC32C.combine(first, second, count: count - half)
                            == CRC32C.checksum(UnsafeRawBufferPointer(rebasing: all[..<count])))
                }
            }
        }
    }

    private func bitByBit(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        var remainder: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            remainder ^= UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0x82F6_3B78 : remainder >> 1 }
        }
        return remainder ^ 0xFFFF_FFFF
    }
}
