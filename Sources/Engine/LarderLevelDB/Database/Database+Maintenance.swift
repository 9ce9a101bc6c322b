import CLarderLevelDB

extension Database {
    /// One of LevelDB's properties; nil for an unknown name. LevelDB knows `leveldb.num-files-at-level<N>`,
    /// `leveldb.stats`, `leveldb.sstables` and `leveldb.approximate-memory-usage`.
    package func property(_ name: String) throws(LevelDBError) -> String? {
        try withHandle("property") { handle in
            guard !name.utf8.contains(0), let value = leveldb_property_value(handle, name) else { return nil }
            defer { leveldb_free(value) }
            return String(cString: value)
        }
    }

    /// Merges the tables of a key range. This frees the space of deleted and overwritten entries, unless a snapshot or
    /// cursor needs them.
    ///
    /// Takes as long as reading and rewriting the range. Blocks only the caller, and ``close()``, which waits until the
    /// call has finished. If the merge fails, LevelDB reports that only at a later write.
    /// - Parameters:
    ///   - from: the first key of the range. The default is nil: all keys from the beginning.
    ///   - to: the last key of the range. The default is nil: all keys to the end.
    package func compact(from: [UInt8]? = nil, to: [UInt8]? = nil) throws(LevelDBError) {
        try withHandle("compact") { handle in
            Self.withOptionalBytes(from) { from, fromCount in
                Self.withOptionalBytes(to) { to, toCount in
                    leveldb_compact_range(handle, from, fromCount, to, toCount)
                }
            }
        }
    }

    /// Returns approximately how many bytes of the table files belong to the keys from `from` up to but not including
    /// `to`. Entries that are still in memory and in the log are not counted, so a new entry adds nothing at first. Do
    /// not use this to enforce a disk limit.
    package func approximateSize(from: [UInt8], to: [UInt8]) throws(LevelDBError) -> UInt64 {
        try withHandle("approximateSize") { handle in
            from.withUnsafeBytes { from in
                to.withUnsafeBytes { to in
                    var start: UnsafePointer<CChar>? = from.characters
                    var startCount = from.count
                    var limit: UnsafePointer<CChar>? = to.characters
                    var limitCount = to.count
                    var size: UInt64 = 0
                    gate.reads.withReadLock {
                        leveldb_approximate_sizes(handle, 1, &start, &startCount, &limit, &limitCount, &size)
                    }
                    return size
                }
            }
        }
    }

    private static func withOptionalBytes(_ bytes: [UInt8]?, _ body: (UnsafePointer<CChar>?, Int) -> Void) {
        guard let bytes else { return body(nil, 0) }
        bytes.withUnsafeBytes { body($0.characters, $0.count) }
    }
}
