import CLarderCRC32C
import LarderLevelDBFormat

/// Finds a single flipped bit in bytes that have a checksum.
///
/// With CRC-32C, every single-bit error has a different effect on the checksum, and two flipped bits never look like
/// one. Worse damage may look like a single-bit error, with a probability of about (number of bits) / 2³². Therefore
/// values with a corrected bit are never returned. Corrected bytes of a log only show which keys are affected, and only
/// if they form a valid batch.
enum BitFlip {
    /// The location of the bit.
    enum Place: Equatable {
        /// The bit is in the stored checksum, and the bytes are correct.
        case checksum
        case bytes(offset: Int, mask: UInt8)
    }

    private static let reversedPolynomial: UInt32 = 0x82F6_3B78

    /// Returns the location of the flipped bit; nil if the damage is not a single bit. Only called if the checksum does
    /// not match.
    static func place(stored: UInt32, _ bytes: UnsafeRawBufferPointer) -> Place? {
        let actual = larder_crc32c_extend(0, bytes.baseAddress, bytes.count)
        for bit in 0..<UInt32(32) where MaskedChecksum.unmask(stored ^ 1 << bit) == actual { return .checksum }
        // The difference that a flipped bit makes to the CRC is 1, after one CRC step for this bit and for each later
        // bit. So step the difference back until it is 1: the steps count the position of the bit from the end.
        var difference = MaskedChecksum.unmask(stored) ^ actual
        for offset in stride(from: bytes.count - 1, through: 0, by: -1) {
            for bit in stride(from: 7, through: 0, by: -1) {
                difference = stepBack(difference)
                if difference == 1 { return .bytes(offset: offset, mask: 1 << UInt8(bit)) }
            }
        }
        return nil
    }

    private static func stepBack(_ remainder: UInt32) -> UInt32 {
        remainder >> 31 == 1 ? (remainder ^ reversedPolynomial) << 1 | 1 : remainder << 1
    }
}
