import CLarderCRC32C
import LarderPlatform

/// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, as in RFC 3720 appendix B.4), for the engine's own files.
package enum CRC32C {
    package static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 { extend(0, bytes) }

    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        bytes.withContiguousStorageIfAvailable { checksum(UnsafeRawBufferPointer($0)) }
            ?? Array(bytes).withUnsafeBytes { checksum($0) }
    }

    /// Returns the last line of a small text file: the checksum of all lines before it.
    static func line(of body: String) -> String { "crc32c \(UInt64(checksum(body.utf8)).hexadecimal(digits: 8))\n" }

    /// Returns the checksum of a sequence that ends with `bytes`. `checksum` is the checksum of the part before
    /// `bytes`; 0 if there is no such part.
    package static func extend(_ checksum: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        larder_crc32c_extend(checksum, bytes.baseAddress, bytes.count)
    }

    /// Returns the checksum of two parts together: `first` is the checksum of the first part, `second` that of the
    /// second part, which has `count` bytes. The bytes themselves are not needed. O(log count).
    ///
    /// A checksum is a polynomial over GF(2), modulo the polynomial of the CRC. Appending n bits multiplies it by xⁿ.
    /// Both checksums are inverted in the same way: this cancels out (as Mark Adler found for zlib's crc32_combine).
    static func combine(_ first: UInt32, _ second: UInt32, count: Int) -> UInt32 {
        var power: UInt32 = 1 << 31  // x⁰: the highest bit is the lowest coefficient.
        var square: UInt32 = 1 << 30  // x¹, squared at every step.
        var bits = UInt64(count) * 8
        while bits > 0 {
            if bits & 1 == 1 { power = product(power, square) }
            square = product(square, square)
            bits >>= 1
        }
        return product(power, first) ^ second
    }

    /// Returns the product of two polynomials, modulo the polynomial of the CRC.
    private static func product(_ left: UInt32, _ right: UInt32) -> UInt32 {
        var sum: UInt32 = 0
        var right = right
        for bit in stride(from: 31, through: 0, by: -1) {
            if left >> UInt32(bit) & 1 == 1 { sum ^= right }
            right = right & 1 == 1 ? right >> 1 ^ reversedPolynomial : right >> 1
        }
        return sum
    }

    private static let reversedPolynomial: UInt32 = 0x82F6_3B78
}

extension UInt64 {
    /// Returns the number in hexadecimal digits, with leading zeros.
    package func hexadecimal(digits count: Int = 16) -> String { zeroPadded(count, radix: 16) }
}
