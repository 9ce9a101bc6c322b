/// The order of byte strings: by the first different byte; the beginning of a longer one precedes it. This is LevelDB's
/// order of keys, and the order of UTF-8 texts by their scalars.
package enum ByteOrder {
    /// Returns a number less than 0 if `left` comes first, 0 if they are equal, and greater than 0 otherwise.
    @inlinable package static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        if let leftStart = left.baseAddress, let rightStart = right.baseAddress {
            let order = memcmp(leftStart, rightStart, min(left.count, right.count))
            if order != 0 { return Int(order) }
        }
        return left.count - right.count
    }

    /// Returns the smallest byte string that is greater than all that begin with `prefix`; nil if `prefix` has only
    /// 0xFF bytes. Trailing 0xFF bytes cannot be incremented, so they are dropped, and the byte before them is
    /// incremented.
    package static func successor(ofPrefix prefix: [UInt8]) -> [UInt8]? {
        guard let last = prefix.lastIndex(where: { $0 != 0xFF }) else { return nil }
        var end = Array(prefix[...last])
        end[last] += 1
        return end
    }
}

/// Hashes of byte strings that are the same in every process and version.
package enum StableHash {
    /// FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923).
    package static func fnv1a(_ bytes: some Sequence<UInt8>) -> UInt64 {
        // Generic code is slow, so the loop is not generic.
        Array(bytes).withUnsafeBytes { bytes in
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
            return hash
        }
    }
}
