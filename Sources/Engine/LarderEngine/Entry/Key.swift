import LarderPlatform

/// The first byte of every LevelDB key. **On disk: do not change these values.**
package enum KeyKind {
    /// Metadata of the database: 0x00, then a name.
    package static let metadata: UInt8 = 0x00
    /// An entry: 0x01, then the entry's key.
    package static let record: UInt8 = 0x01
    /// Expiry index, entries with an own deadline: 0x02, bucket time (8 bytes, big-endian), the entry's key.
    package static let ownDeadline: UInt8 = 0x02
    /// Expiry index, governed entries: 0x03, bucket time (8 bytes, big-endian), the entry's key.
    package static let governed: UInt8 = 0x03
}

/// An entry's key in LevelDB's form: ``KeyKind/record``, then the user's bytes.
package struct Key: Hashable, Sendable {
    /// The key with the leading kind byte, as stored in LevelDB.
    package let stored: [UInt8]
    /// The hash of the user's bytes, with a different seed in each process. Stored, because a key is looked up more
    /// than once.
    let hash: Int

    /// The maximum length of a key, in bytes.
    package static let bytesMax = 65_536

    /// Creates a key from the user's bytes. They must not be longer than ``bytesMax``; callers check that when they
    /// receive the bytes.
    package init(_ bytes: UnsafeRawBufferPointer) {
        // Appending is specialized for bytes; the initializer with uninitialized memory looks up the array's type each
        // time, which costs more than everything else.
        var stored: [UInt8] = []
        stored.reserveCapacity(bytes.count + 1)
        stored.append(KeyKind.record)
        stored.append(contentsOf: bytes)
        self.stored = stored
        hash = Self.hash(bytes)
    }

    /// Returns the hash of a key with these bytes, as in ``hash``.
    package static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        // Hash all bytes at once: the standard hash of an array hashes each element, at five times the cost.
        hasher.combine(bytes: bytes)
        return hasher.finalize()
    }

    /// Returns the hash of a key in LevelDB's form.
    static func hash(ofStored bytes: [UInt8]) -> Int {
        bytes.withUnsafeBytes { hash(UnsafeRawBufferPointer(rebasing: $0.dropFirst())) }
    }

    package init(_ bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { Key($0) }
    }

    package init(_ text: String) {
        var text = text
        self = text.withUTF8 { Key(UnsafeRawBufferPointer($0)) }
    }

    /// Creates a key from a LevelDB key that is known to begin with ``KeyKind/record``.
    init(stored: [UInt8]) {
        self.stored = stored
        hash = stored.withUnsafeBytes { Self.hash(UnsafeRawBufferPointer(rebasing: $0.dropFirst())) }
    }

    /// The user's bytes.
    package var bytes: ArraySlice<UInt8> { stored.dropFirst() }

    /// Runs `body` on the user's bytes, without copying them.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try stored.withUnsafeBufferPointer { (stored) throws(Failure) in
            try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(stored).dropFirst()))
        }
    }

    /// The user's bytes, valid while this key or a copy of it exists: the array owns its memory, and never changes.
    var unsafeBytes: UnsafeRawBufferPointer { withBytes { $0 } }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    package static func == (left: Key, right: Key) -> Bool { left.hash == right.hash && left.stored == right.stored }
}

extension Key: CustomStringConvertible {
    package var description: String { printableKey(bytes) }
}

/// The order of keys: that of their bytes, as in LevelDB.
enum KeyOrder {
    /// Returns a number less than 0 if `left` comes first, 0 if they are equal, and greater than 0 otherwise.
    static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        let common = min(left.count, right.count)
        if common > 0, let leftStart = left.baseAddress, let rightStart = right.baseAddress {
            let order = memcmp(leftStart, rightStart, common)
            if order != 0 { return Int(order) }
        }
        return left.count - right.count
    }
}

/// Big-endian integers inside keys and records.
package enum BigEndian {
    package static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    static func bytes(_ numbers: [UInt64]) -> [UInt8] { numbers.reduce(into: []) { append($1, to: &$0) } }

    /// Returns the numbers in `bytes`; nil unless there are exactly `count`.
    static func numbers(_ count: Int, in bytes: some Collection<UInt8>) -> [UInt64]? {
        guard bytes.count == 8 * count else { return nil }
        return Array(bytes).withUnsafeBytes { bytes in (0..<count).compactMap { read(bytes, at: 8 * $0) } }
    }

    /// Reads `count` (at most 8) bytes at `offset`; nil if there are fewer.
    package static func read(_ bytes: UnsafeRawBufferPointer, at offset: Int, count: Int = 8) -> UInt64? {
        guard offset >= 0, count >= 0, count <= 8, bytes.count >= count, offset <= bytes.count - count else {
            return nil
        }
        if count == 8 { return UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
        var value: UInt64 = 0
        for index in offset..<(offset + count) { value = value << 8 | UInt64(bytes[index]) }
        return value
    }
}
