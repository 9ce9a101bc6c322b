import CCRC32C

/// Finds the one bit that was flipped in bytes with a checksum.
///
/// CRC-32C tells any two errors of one bit apart, and never takes two flipped bits for one. What was damaged in more
/// places is taken for it with a probability of about the number of bits in 2³²: so nobody gives values that were
/// mended; what is concluded is only which keys they belong to, and only if all of it is a batch.
enum BitFlip {
    /// Where the bit is.
    enum Place: Equatable {
        /// In the stored checksum: the bytes are right.
        case checksum
        case bytes(offset: Int, mask: UInt8)
    }

    private static let reversedPolynomial: UInt32 = 0x82F6_3B78

    /// nil if it is not one bit.
    static func place(stored: UInt32, _ bytes: UnsafeRawBufferPointer) -> Place? {
        let actual = larder_crc32c_extend(0, bytes.baseAddress, bytes.count)
        for bit in 0..<UInt32(32) where MaskedChecksum.unmask(stored ^ 1 << bit) == actual { return .checksum }
        // A flipped bit enters the remainder as 1, and each bit behind it is a step. So that many steps back are
        // counted from the end.
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
