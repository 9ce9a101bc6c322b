import LarderLevelDB

extension EpochStore {
    /// Reads all records and verifies the checksums.
    /// - Throws: the first damage that was found, now or by an earlier call.
    func verify() throws(LarderError) {
        if let damage = knownDamage { throw damage }
        try access("verify") { (database) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try database.cursor(options)
            defer { cursor.close() }
            try cursor.seekToFirst()
            while cursor.isValid { try cursor.next() }
        }
    }

    /// Returns a key's record as stored in LevelDB, after verifying checksums; nil if there is none.
    func get(_ key: Key, fillCache: Bool = true, snapshot: LarderLevelDB.Snapshot? = nil) throws(LarderError)
        -> [UInt8]?
    {
        guard isMade else { return nil }
        var options = ReadOptions()
        options.fillCache = fillCache
        options.snapshot = snapshot
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
        var options = ReadOptions()
        options.fillCache = false
        options.snapshot = snapshot
        return try access("get", key: key) { (database) throws(LevelDBError) in
            try database.withValue(key.stored, options: options) { bytes in
                bytes.map { bytes in
                    (Result { () throws(RecordHeader.Defect) in try RecordHeader(parsing: bytes, purges) }, bytes.count)
                }
            }
        }
    }
}
