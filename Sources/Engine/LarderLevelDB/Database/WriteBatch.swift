import CLarderLevelDB

/// Puts and deletes that ``Database/write(_:options:)`` applies together or not at all, in the order in which they were
/// added. A batch does not belong to a database: it may be written to several, and writing does not change it.
///
/// The whole batch becomes one log record and one insertion into memory: some megabytes are fine, gigabytes are not.
///
/// Single owner: two threads must not use it at the same time, not even to write it.
package final class WriteBatch {
    /// The number of puts and deletes.
    package private(set) var count = 0

    /// The size of LevelDB's representation and of the log record in bytes: 12, and for each record one byte for its
    /// kind, each length as a varint of 1 to 5 bytes, the key and, for a put, the value.
    package private(set) var byteCount = WriteBatch.headerBytes

    /// The maximum total length of a key and its value: 1 GiB. LevelDB uses 32-bit lengths without checks, so a larger
    /// record would be stored damaged.
    package static let recordBytesMax = 1 << 30

    /// The reason for which LevelDB could not store a record, set by the first such record. Writing the batch then
    /// fails.
    private(set) var complaint: String?

    /// The keys of the puts with values of at least ``longValueBytes``.
    package private(set) var longKeys: [[UInt8]] = []

    /// The smallest long value: 1 MiB.
    package static let longValueBytes = 1 << 20

    let handle: OpaquePointer
    private static let headerBytes = 12
    private static let countMax = Int(UInt32.max)

    package init() { handle = leveldb_writebatch_create() }

    deinit { leveldb_writebatch_destroy(handle) }

    package var isEmpty: Bool { count == 0 }

    /// Adds a put. The key and the value are copied. A pair larger than ``recordBytesMax`` is not added, and writing
    /// this batch then throws `.invalidArgument`.
    package func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        guard admit(key.count, value.count, records: 1) else { return }
        leveldb_writebatch_put(handle, key.characters, key.count, value.characters, value.count)
        count += 1
        byteCount += 1 + Self.varintBytes(key.count) + key.count + Self.varintBytes(value.count) + value.count
        if value.count >= Self.longValueBytes { longKeys.append([UInt8](key)) }
    }

    /// Adds a put.
    package func put(_ key: [UInt8], _ value: [UInt8]) {
        key.withUnsafeBytes { key in value.withUnsafeBytes { value in put(key, value) } }
    }

    /// Adds a delete; the key need not exist. For large keys see ``put(_:_:)``.
    package func delete(_ key: UnsafeRawBufferPointer) {
        guard admit(key.count, 0, records: 1) else { return }
        leveldb_writebatch_delete(handle, key.characters, key.count)
        count += 1
        byteCount += 1 + Self.varintBytes(key.count) + key.count
    }

    /// Adds a delete.
    package func delete(_ key: [UInt8]) {
        key.withUnsafeBytes { delete($0) }
    }

    /// Appends all records of `other`, which does not change and may be this batch itself.
    package func append(_ other: WriteBatch) {
        if other === self {
            // Without a copy, LevelDB would append a string to itself while it changes the string's header.
            let copy = WriteBatch()
            copy.append(other)
            append(copy)
            return
        }
        if let theirs = other.complaint, complaint == nil { complaint = theirs }
        guard admit(0, 0, records: other.count) else { return }
        leveldb_writebatch_append(handle, other.handle)
        count += other.count
        byteCount += other.byteCount - Self.headerBytes
        longKeys += other.longKeys
    }

    /// Removes all records. LevelDB keeps some of the memory for reuse.
    package func clear() {
        leveldb_writebatch_clear(handle)
        count = 0
        byteCount = Self.headerBytes
        longKeys = []
        complaint = nil
    }

    private func admit(_ keyBytes: Int, _ valueBytes: Int, records: Int) -> Bool {
        if let problem = Self.complaint(keyBytes: keyBytes, valueBytes: valueBytes) {
            complaint = complaint ?? problem
            return false
        }
        // Both numbers are at most countMax, so the sum cannot overflow.
        if count + records > Self.countMax {
            complaint = complaint ?? "the batch has more than \(Self.countMax) records"
            return false
        }
        return true
    }

    /// The reason for which LevelDB cannot store such a record; nil if it can.
    static func complaint(keyBytes: Int, valueBytes: Int) -> String? {
        // Compared separately first, so that the sum cannot overflow.
        if keyBytes <= recordBytesMax, valueBytes <= recordBytesMax, keyBytes + valueBytes <= recordBytesMax {
            return nil
        }
        return "a key of \(keyBytes) bytes with a value of \(valueBytes) bytes is larger than \(recordBytesMax) bytes"
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
