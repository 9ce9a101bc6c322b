import LarderLevelDB
import LarderPlatform
import Synchronization

extension EpochStore {
    /// Reads all records and verifies the checksums.
    /// - Throws: the first damage that was found, now or by an earlier call.
    func verify() throws(LarderError) {
        if let damage = knownDamage { throw damage }
        try access("verify") { (database) throws(LevelDBError) in try database.scan { _ in true } }
    }

    /// Returns a key's record as stored in LevelDB, after verifying checksums; nil if there is none.
    func get(_ key: Key, fillCache: Bool = true, snapshot: LarderLevelDB.Snapshot? = nil) throws(LarderError)
        -> [UInt8]?
    {
        guard isMade else { return nil }
        let options = ReadOptions(fillCache: fillCache, snapshot: snapshot)
        return try access("get", key: key) { (database) throws(LevelDBError) in
            try database.get(key.stored, options: options)
        }
    }

    /// Returns the header of a key's record and the record's length in bytes, after verifying checksums; nil if there
    /// is no record. Does not copy the payload.
    /// - Parameter purges: as for ``RecordHeader``.
    func header(
        of key: Key, _ purges: TagPurges?, snapshot: LarderLevelDB.Snapshot? = nil
    ) throws(LarderError) -> (Result<RecordHeader, RecordHeader.Defect>, byteCount: Int)? {
        guard isMade else { return nil }
        let options = ReadOptions(fillCache: false, snapshot: snapshot)
        return try access("get", key: key) { (database) throws(LevelDBError) in
            try database.withValue(key.stored, options: options) { bytes in
                bytes.map { (RecordHeader.read($0, purges), $0.count) }
            }
        }
    }
}

extension LarderLevelDB.Database {
    /// Moves a cursor over the keys with this prefix, beginning at `start`, until `body` returns false. The blocks that
    /// are read are not added to the cache.
    func scan(
        _ prefix: [UInt8] = [], from start: [UInt8] = [], _ body: (LarderLevelDB.Cursor) throws(LevelDBError) -> Bool
    ) throws(LevelDBError) {
        let cursor = try cursor(ReadOptions(fillCache: false), prefix: prefix)
        defer { cursor.close() }
        try cursor.seek(to: start)
        while cursor.isValid, try body(cursor) { try cursor.next() }
    }
}

/// The hashes of the keys whose long values were most recently written to a LevelDB. These values may still be in
/// LevelDB's memory table. Looking up such a key there would copy the whole value. Thread-safe.
final class LongKeys: Sendable {
    /// The maximum number of keys. LevelDB's memory cannot have more long values: it has two memory tables, and a table
    /// accepts no more batches once it has exceeded its size (at most 32 MiB unless a program sets another size).
    private static let countMax = 128

    private let hashes = Locked<[Int]>([])
    private let isEmpty = Atomic<Bool>(true)

    /// Adds the hash of a key, and removes the oldest hash if there are too many.
    func add(_ hash: Int) {
        hashes.withLock { hashes in
            if hashes.count == Self.countMax { hashes.removeFirst() }
            hashes.append(hash)
        }
        isEmpty.store(false, ordering: .releasing)
    }

    /// Whether a key with this hash was added. Costs one atomic load if no key was ever added.
    func contains(_ hash: Int) -> Bool {
        !isEmpty.load(ordering: .acquiring) && hashes.withLock { $0.contains(hash) }
    }
}
