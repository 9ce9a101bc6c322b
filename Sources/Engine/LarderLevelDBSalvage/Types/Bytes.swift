import CLarderCRC32C
import LarderPlatform

/// Allocated memory that is freed with its object. Its size may come from a damaged file and be huge. A failed
/// allocation throws here; a Swift array would terminate the process.
final class Memory {
    private(set) var start: UnsafeMutableRawPointer
    private(set) var count: Int
    private var capacity: Int

    /// Allocates `count` uninitialized bytes.
    init(count: Int, path: String) throws(SalvageError) {
        guard let start = malloc(max(count, 1)) else { throw Self.exhausted(path) }
        self.start = start
        self.count = count
        capacity = max(count, 1)
    }

    deinit { free(start) }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// Appends bytes. Pointers that ``bytes`` has returned before are invalid afterwards.
    func append(_ bytes: UnsafeRawBufferPointer, path: String) throws(SalvageError) {
        guard let source = bytes.baseAddress else { return }
        if bytes.count > capacity - count { try grow(to: count + bytes.count, path) }
        (start + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    /// Flips the bits in `mask` of the byte at `offset`. Does nothing if there is no such byte.
    func flip(_ mask: UInt8, at offset: Int) {
        guard offset >= 0, offset < count else { return }
        start.storeBytes(of: bytes[offset] ^ mask, toByteOffset: offset, as: UInt8.self)
    }

    /// Drops all bytes after the first `count`, but does not free their memory.
    func truncate(to count: Int) { self.count = min(self.count, count) }

    /// Frees the unused memory.
    func trim() {
        guard capacity > count, let smaller = realloc(start, max(count, 1)) else { return }
        start = smaller
        capacity = max(count, 1)
    }

    private func grow(to needed: Int, _ path: String) throws(SalvageError) {
        let wanted = max(needed, capacity + capacity / 2)
        guard let larger = realloc(start, wanted) else { throw Self.exhausted(path) }
        start = larger
        capacity = wanted
    }

    private static func exhausted(_ path: String) -> SalvageError {
        SalvageError(systemCall: "malloc", path: path, errno: ENOMEM)
    }
}

/// Compares keys like LevelDB's bytewise comparator. Returns a number less than 0, 0, or a number greater than 0.
func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    if let leftStart = left.baseAddress, let rightStart = right.baseAddress {
        let order = memcmp(leftStart, rightStart, min(left.count, right.count))
        if order != 0 { return Int(order) }
    }
    return left.count - right.count
}

/// The checksums in LevelDB's files: CRC-32C, which LevelDB stores rotated and with a constant added.
enum MaskedChecksum {
    static func unmask(_ stored: UInt32) -> UInt32 {
        let rotated = stored &- 0xA282_EAD8
        return rotated >> 17 | rotated << 15
    }

    static func matches(_ stored: UInt32, _ bytes: UnsafeRawBufferPointer) -> Bool {
        unmask(stored) == larder_crc32c_extend(0, bytes.baseAddress, bytes.count)
    }
}

/// Reads numbers and byte strings from bytes that may be invalid, one after another. Returns nil instead of reading
/// beyond the end.
struct Scanner {
    let bytes: UnsafeRawBufferPointer
    private(set) var offset: Int

    init(_ bytes: UnsafeRawBufferPointer, from offset: Int = 0) {
        self.bytes = bytes
        self.offset = min(max(offset, 0), bytes.count)
    }

    var isAtEnd: Bool { offset == bytes.count }
    var remaining: Int { bytes.count - offset }

    mutating func byte() -> UInt8? {
        guard offset < bytes.count else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// Reads a varint of at most ten bytes; nil if the number does not fit in 64 bits.
    mutating func varint() -> UInt64? {
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
    mutating func length() -> Int? { varint().flatMap { Int(exactly: $0) } }

    mutating func fixed32() -> UInt32? {
        guard remaining >= 4 else { return nil }
        defer { offset += 4 }
        return UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    mutating func fixed64() -> UInt64? {
        guard remaining >= 8 else { return nil }
        defer { offset += 8 }
        return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    mutating func piece(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, count <= remaining else { return nil }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
    }

    /// Reads a length as a varint, and returns that many bytes.
    mutating func prefixed() -> UnsafeRawBufferPointer? { length().flatMap { piece($0) } }
}

/// A key in LevelDB's tables: the key that the user has stored, and eight bytes with a sequence and a kind.
struct InternalKey {
    let userKey: UnsafeRawBufferPointer
    let sequence: UInt64
    let kind: UInt8

    static let removal: UInt8 = 0
    static let value: UInt8 = 1

    /// Parses an internal key; nil if it is too short.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 8 else { return nil }
        userKey = UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count - 8)])
        let tag = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
        sequence = tag >> 8
        kind = UInt8(truncatingIfNeeded: tag)
    }

    /// Orders keys ascending, and versions of one key by sequence descending.
    static func isLess(_ left: InternalKey, _ right: InternalKey) -> Bool {
        let order = compare(left.userKey, right.userKey)
        return order != 0 ? order < 0 : left.sequence > right.sequence
    }
}
