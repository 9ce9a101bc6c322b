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
    /// A hint of an index: 0x04, the index's number (8 bytes, big-endian), a term, the entry's key.
    package static let hint: UInt8 = 0x04
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
        Int(bitPattern: UInt(sipHash(bytes, seed, rounds: 1, lastRounds: 3)))
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
        if count == 4 { return UInt64(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))) }
        var value: UInt64 = 0
        for index in offset..<(offset + count) { value = value << 8 | UInt64(bytes[index]) }
        return value
    }
}

// MARK: Hash

/// SipHash (Aumasson and Bernstein: SipHash, a fast short-input PRF, 2012) with one round for each word and three
/// rounds at the end. The standard library's `Hasher` does the same, but its calls cannot be inlined. The secret key is
/// random in each process, so clients cannot choose keys with the same hash.
extension Key {
    /// The secret key of this process.
    private static let seed = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    /// Returns the SipHash of bytes.
    /// - Parameters:
    ///   - key: the two words of the key.
    ///   - rounds: the number of rounds for each word of eight bytes.
    ///   - lastRounds: the number of rounds at the end.
    @inline(__always)
    static func sipHash(
        _ bytes: UnsafeRawBufferPointer, _ key: (UInt64, UInt64), rounds: Int, lastRounds: Int
    ) -> UInt64 {
        var v0 = key.0 ^ 0x736f_6d65_7073_6575
        var v1 = key.1 ^ 0x646f_7261_6e64_6f6d
        var v2 = key.0 ^ 0x6c79_6765_6e65_7261
        var v3 = key.1 ^ 0x7465_6462_7974_6573

        @inline(__always) func mix(_ count: Int) {
            for _ in 0..<count {
                v0 &+= v1
                v2 &+= v3
                v1 = (v1 << 13 | v1 >> 51) ^ v0
                v3 = (v3 << 16 | v3 >> 48) ^ v2
                v0 = v0 << 32 | v0 >> 32
                v2 &+= v1
                v0 &+= v3
                v1 = (v1 << 17 | v1 >> 47) ^ v2
                v3 = (v3 << 21 | v3 >> 43) ^ v0
                v2 = v2 << 32 | v2 >> 32
            }
        }
        @inline(__always) func add(_ word: UInt64) {
            v3 ^= word
            mix(rounds)
            v0 ^= word
        }

        @inline(__always) func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }

        let (count, rest) = (bytes.count, bytes.count & 7)
        var offset = 0
        while offset < count - rest {
            add(word(offset))
            offset += 8
        }
        var last = UInt64(truncatingIfNeeded: count) << 56
        if rest > 0, count >= 8 {
            // The last eight bytes contain the rest.
            last |= word(count - 8) >> UInt64(64 - 8 * rest)
        } else {
            for index in 0..<rest { last |= UInt64(bytes[index]) << UInt64(8 * index) }
        }
        add(last)
        v2 ^= 0xff
        mix(lastRounds)
        return v0 ^ v1 ^ v2 ^ v3
    }
}
