import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of the format of DUMP and RESTORE. The conformance tests verify that the format and its LZF compression are
/// the same as in Redis.
@Suite struct DumpPayloadTests {
    private func decode(_ payload: [UInt8], most: Int = 1 << 20) -> Result<[UInt8], DumpPayload.Defect> {
        payload.withUnsafeBytes { bytes in
            Result { () throws(DumpPayload.Defect) in try DumpPayload.decode(bytes, bytesMax: most) }
        }
    }

    /// Returns a payload that has this body and a valid version and checksum.
    private func sealed(_ body: [UInt8]) -> [UInt8] {
        let bytes = body + [10, 0]
        let sum = bytes.withUnsafeBytes { CRC64.checksum($0) }
        return bytes + (0..<8).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) }
    }

    /// The widely published check value of this CRC-64.
    @Test("the checksum equals the published check value") func theChecksum() {
        #expect(Array("123456789".utf8).withUnsafeBytes { CRC64.checksum($0) } == 0xE9C6_D914_C4B8_D9CA)
    }

    @Test func everyValueIsDecodedToItsOriginal() {
        var generator = SeededGenerator(seed: testSeed())
        for round in 0..<400 {
            let letters = UInt64(1 + round % 5 * 13)
            let count = Int.random(in: 0...(round % 10 == 0 ? 5000 : 100), using: &generator)
            let value = (0..<count).map { _ in UInt8(generator.next() % letters) }
            let payload = value.withUnsafeBytes { DumpPayload.encode($0) }
            #expect(decode(payload) == .success(value))
        }
        for number in [0, 1, -1, 127, 128, -128, -129, 32767, 32768, Int(Int32.max), Int(Int32.min), .max, .min] {
            let value = Array("\(number)".utf8)
            #expect(decode(value.withUnsafeBytes { DumpPayload.encode($0) }) == .success(value))
        }
    }

    @Test("every changed byte of a payload is detected") func changedPayloads() {
        let payload = Array("a value that is long enough, long enough".utf8).withUnsafeBytes { DumpPayload.encode($0) }
        for index in payload.indices {
            var changed = payload
            changed[index] ^= 0x10
            #expect(decode(changed) == .failure(.footer))
            #expect(decode(Array(payload[..<index])) == .failure(.footer))
        }
    }

    /// Random bytes with a valid checksum are either refused, or decoded to a value within the limit.
    @Test("random payloads with a valid checksum do not crash the decoder") func hostileBodies() {
        var generator = SeededGenerator(seed: testSeed())
        for _ in 0..<20_000 {
            var body: [UInt8] = [0]
            body += [[0xC0, 0xC1, 0xC2, 0xC3, 0x80, 0x81, 0x40, 0x05][Int.random(in: 0..<8, using: &generator)]]
            body += generator.bytes(count: Int.random(in: 0...24, using: &generator))
            if case .success(let value) = decode(sealed(body), most: 1000) { #expect(value.count <= 1000) }
        }
        // Lengths that are followed by too few bytes are refused.
        for length in [[0xBF] as [UInt8], [0x80, 0xFF, 0xFF, 0xFF, 0xFF], [0x81] + [UInt8](repeating: 0xFF, count: 8)] {
            #expect(decode(sealed([0] + length + [1, 2, 3]), most: .max) == .failure(.format))
            #expect(decode(sealed([0, 0xC3, 1] + length + [0]), most: .max) == .failure(.format))
            #expect(decode(sealed([0, 0xC3] + length + [1, 0]), most: .max) == .failure(.format))
        }
    }

    @Test("a payload with a value above the limit is refused") func longerThanAllowed() {
        let value = [UInt8](repeating: 7, count: 1001)
        let payload = value.withUnsafeBytes { DumpPayload.encode($0) }
        #expect(payload.count < 100, "the value is compressed")
        #expect(decode(payload, most: 1001) == .success(value))
        #expect(decode(payload, most: 1000) == .failure(.format))
    }
}
