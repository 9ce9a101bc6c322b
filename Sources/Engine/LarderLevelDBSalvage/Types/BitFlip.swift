import CLarderCRC32C

/// Finds the one bit that was flipped in bytes with a checksum.
///
/// CRC-32C distinguishes any two single-bit errors, and never reports two flipped bits as one. It reports worse damage
/// as a single-bit error with a probability of about the number of bits in 2³². Values with a corrected bit are
/// therefore never returned. The corrected bytes only show which keys are affected, and only if all of them form a
/// valid batch.
enum BitFlip {
    /// The place of the bit.
    enum Place: Equatable {
        /// The bit is in the stored checksum, and the bytes are correct.
        case checksum
        case bytes(offset: Int, mask: UInt8)
    }

    private static let reversedPolynomial: UInt32 = 0x82F6_3B78

    /// Returns the place of the flipped bit; nil if the damage is not a single bit.
    static func place(stored: UInt32, _ bytes: UnsafeRawBufferPointer) -> Place? {
        let actual = larder_crc32c_extend(0, bytes.baseAddress, bytes.count)
        for bit in 0..<UInt32(32) where MaskedChecksum.unmask(stored ^ 1 << bit) == actual { return .checksum }
        // A flipped bit enters the remainder as 1, and each later bit is one step. The number of steps back is
        // therefore the distance from the end.
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
