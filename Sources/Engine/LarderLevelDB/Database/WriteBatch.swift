import CLarderLevelDB

/// A list of puts and deletes. ``Database/write(_:sync:)`` applies either all of them, in the order in which they
/// were added, or none. A batch does not belong to a database: it may be written to several databases, and writing does
/// not change it.
///
/// LevelDB writes the whole batch as one log record, and copies it to its memory: some megabytes are fine, gigabytes
/// are not.
///
/// Not thread-safe: two threads must not use it at the same time, not even to write it to a database.
package final class WriteBatch {
    /// The number of puts and deletes. Accesses to it and to ``byteCount`` never overlap, so the check is turned off.
    @exclusivity(unchecked) package private(set) var count = 0

    /// The size of the batch in LevelDB's format, and thus of its log record, in bytes. The header has 12 bytes. Each
    /// put or delete has a byte for its kind, then the key and, for a put, the value. The key and the value are each
    /// preceded by their length, a varint of 1 to 5 bytes.
    @exclusivity(unchecked) package private(set) var byteCount = WriteBatch.headerBytes

    /// The maximum total length of a key and its value in bytes: 1 GiB. LevelDB uses 32-bit lengths without checking
    /// for overflow, so it would store a larger pair incorrectly.
    package static let recordBytesMax = 1 << 30

    /// The reason why the first rejected put or delete was rejected; nil if none was. If not nil, writing the batch
    /// throws.
    private(set) var complaint: String?

    /// The keys of the puts with values of at least ``longValueBytes``.
    package private(set) var longKeys: [[UInt8]] = []

    /// The minimum length of a long value in bytes: 1 MiB.
    package static let longValueBytes = 1 << 20

    let handle: OpaquePointer
    private static let headerBytes = 12
    private static let countMax = Int(UInt32.max)

    package init() { handle = leveldb_writebatch_create() }

    deinit { leveldb_writebatch_destroy(handle) }

    package var isEmpty: Bool { count == 0 }

    /// Adds a put. Copies the key and the value. If together they are longer than ``recordBytesMax``, they are not
    /// added, and writing this batch throws `.invalidArgument`.
    package func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        guard admit(key.count, value.count) else { return }
        leveldb_writebatch_put(handle, key.characters, key.count, value.characters, value.count)
        count += 1
        byteCount += 1 + Self.varintBytes(key.count) + key.count + Self.varintBytes(value.count) + value.count
        if value.count >= Self.longValueBytes { longKeys.append([UInt8](key)) }
    }

    package func put(_ key: [UInt8], _ value: [UInt8]) {
        key.withUnsafeBytes { key in value.withUnsafeBytes { value in put(key, value) } }
    }

    /// Adds a delete; the key need not exist. A key that is too long is handled as by ``put(_:_:)``.
    package func delete(_ key: UnsafeRawBufferPointer) {
        guard admit(key.count, 0) else { return }
        leveldb_writebatch_delete(handle, key.characters, key.count)
        count += 1
        byteCount += 1 + Self.varintBytes(key.count) + key.count
    }

    package func delete(_ key: [UInt8]) {
        key.withUnsafeBytes { delete($0) }
    }

    /// Removes all puts and deletes. LevelDB keeps some of the memory for reuse.
    package func clear() {
        leveldb_writebatch_clear(handle)
        count = 0
        byteCount = Self.headerBytes
        longKeys = []
        complaint = nil
    }

    /// Checks whether LevelDB can store a key and a value of these lengths. If not, records the reason.
    private func admit(_ keyBytes: Int, _ valueBytes: Int) -> Bool {
        // Compared separately first, so that the sum cannot overflow.
        let most = Self.recordBytesMax
        guard keyBytes <= most, valueBytes <= most, keyBytes + valueBytes <= most else {
            complaint =
                complaint
                ?? "a key of \(keyBytes) bytes with a value of \(valueBytes) bytes is larger than \(most) bytes"
            return false
        }
        guard count < Self.countMax else {
            complaint = complaint ?? "the batch has more than \(Self.countMax) records"
            return false
        }
        return true
    }

    private static func varintBytes(_ length: Int) -> Int {
        switch length {
        case ..<(1 << 7): 1
        case ..<(1 << 14): 2
        case ..<(1 << 21): 3
        case ..<(1 << 28): 4
        default: 5
        }
    }
}
