/// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, as in RFC 3720 appendix B.4), for the engine's own small files.
package enum CRC32C {
    private static let table: [UInt32] = (0..<256).map { index in
        var remainder = UInt32(index)
        for _ in 0..<8 { remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0x82F6_3B78 : remainder >> 1 }
        return remainder
    }

    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        var remainder: UInt32 = 0xFFFF_FFFF
        for byte in bytes { remainder = remainder >> 8 ^ table[Int((remainder ^ UInt32(byte)) & 0xFF)] }
        return remainder ^ 0xFFFF_FFFF
    }
}
