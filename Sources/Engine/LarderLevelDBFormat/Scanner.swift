import CLarderCRC32C
import LarderPlatform

/// Returns a key in quotes, for messages: printable ASCII stays as it is, other bytes become `\xNN`. Bytes after the
/// first 64 are dropped, and the key's length is appended.
package func quoted(_ key: [UInt8]) -> String {
    var text = "\""
    for byte in key.prefix(64) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += "\\\(Character(Unicode.Scalar(byte)))"
        case 0x20...0x7E: text.append(Character(Unicode.Scalar(byte)))
        default: text += "\\x" + HexText.text([byte])
        }
    }
    return text + (key.count > 64 ? "… (\(key.count) bytes)\"" : "\"")
}

/// The checksums in LevelDB's files: CRC-32C, which LevelDB stores rotated and with a constant added.
package enum MaskedChecksum {
    package static func unmask(_ stored: UInt32) -> UInt32 {
        let rotated = stored &- 0xA282_EAD8
        return rotated >> 17 | rotated << 15
    }

    static func mask(_ checksum: UInt32) -> UInt32 { (checksum >> 15 | checksum << 17) &+ 0xA282_EAD8 }

    package static func matches(_ stored: UInt32, _ bytes: UnsafeRawBufferPointer) -> Bool {
        unmask(stored) == larder_crc32c_extend(0, bytes.baseAddress, bytes.count)
    }
}

/// Reads numbers and byte strings from bytes that may be invalid, one after another. Returns nil instead of reading
/// beyond the end.
package struct Scanner {
    package let bytes: UnsafeRawBufferPointer
    package var offset: Int

    @inlinable package init(_ bytes: UnsafeRawBufferPointer, from offset: Int = 0) {
        self.bytes = bytes
        self.offset = min(max(offset, 0), bytes.count)
    }

    @inlinable package var isAtEnd: Bool { offset == bytes.count }
    @inlinable package var remaining: Int { bytes.count - offset }

    @inlinable package mutating func byte() -> UInt8? {
        guard offset < bytes.count else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// Reads a varint of at most ten bytes; nil if the number does not fit in 64 bits.
    @inlinable package mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            guard let byte = byte() else { return nil }
            let part = UInt64(byte & 0x7F)
            if shift == 63, part > 1 { return nil }
            value |= part << shift
            if byte < 0x80 { return value }
        }
        return nil
    }

    /// Reads a varint that is a length or an offset; nil if it does not fit in an Int.
    @inlinable package mutating func length() -> Int? { varint().flatMap { Int(exactly: $0) } }

    @inlinable package mutating func fixed32() -> UInt32? {
        guard remaining >= 4 else { return nil }
        defer { offset += 4 }
        return UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    @inlinable package mutating func fixed64() -> UInt64? {
        guard remaining >= 8 else { return nil }
        defer { offset += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inlinable package mutating func piece(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, count <= remaining else { return nil }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
    }

    /// Reads a length as a varint, and returns that many bytes.
    @inlinable package mutating func prefixed() -> UnsafeRawBufferPointer? { length().flatMap { piece($0) } }
}

/// A key in LevelDB's tables: the key that the user has stored, and eight bytes with a sequence and a kind.
package struct InternalKey {
    package let userKey: UnsafeRawBufferPointer
    package let sequence: UInt64
    package let kind: UInt8

    @inlinable package static var removal: UInt8 { 0 }
    @inlinable package static var value: UInt8 { 1 }

    /// Parses an internal key; nil if it is too short.
    @inlinable package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 8 else { return nil }
        userKey = UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - 8)])
        let tag = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
        sequence = tag >> 8
        kind = UInt8(truncatingIfNeeded: tag)
    }

    /// Orders keys ascending, and versions of one key by sequence descending.
    @inlinable package static func isLess(_ left: InternalKey, _ right: InternalKey) -> Bool {
        let order = ByteOrder.compare(left.userKey, right.userKey)
        return order != 0 ? order < 0 : left.sequence > right.sequence
    }
}
