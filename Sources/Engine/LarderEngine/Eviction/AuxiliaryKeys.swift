import LarderLevelDB
import LarderLevelDBFormat

/// The keys in removed tables that are not keys of entries: the keys of the expiry index, and the metadata key that
/// records which part of the journal is still needed. They may have to be written again. A value.
///
/// Entries in the remaining tables may still need their index keys: an index key is written only once, not with each
/// version of its entry.
struct AuxiliaryKeys {
    private var index: [[UInt8]] = []
    private var journal: [UInt8]?

    var count: Int { index.count }

    /// Collects the keys of both kinds that LevelDB has in the key range of `tables`.
    mutating func collect(_ store: EpochStore, _ tables: [ManifestScan.Table]) throws(LarderError) {
        let start = [KeyKind.record + 1]
        let ranges = tables.filter { !$0.last.lexicographicallyPrecedes(start) }
        let last = ranges.map(\.last).max { $0.lexicographicallyPrecedes($1) }
        (index, journal) = try store.access("make room") { (leveldb) throws(LevelDBError) in
            var index: [[UInt8]] = []
            for kind in [KeyKind.ownDeadline, KeyKind.governed] {
                try leveldb.scan([kind]) { cursor in
                    let key = cursor.key
                    guard let last, !last.lexicographicallyPrecedes(key) else { return false }
                    index.append(key)
                    return true
                }
            }
            return (index, try leveldb.get(EpochMetadata.journalKey))
        }
    }

    /// Writes the collected keys again if they are still needed and now missing. If there is no space for that, the
    /// sweep rebuilds the expiry index later.
    func restore(_ database: Database, _ store: EpochStore) {
        do throws(LarderError) {
            let batch = LarderLevelDB.WriteBatch()
            for key in index {
                guard let entry = key.withUnsafeBytes({ ExpiryIndex.parse($0)?.key }),
                    try store.header(of: entry, nil) != nil, try store.value(of: key) == nil
                else { continue }
                batch.put(key, ExpiryIndex.value)
            }
            if let journal, try store.value(of: EpochMetadata.journalKey) != journal {
                batch.put(EpochMetadata.journalKey, journal)
            }
            if !batch.isEmpty { try store.write(batch, sync: true, changesEntries: false) }
        } catch {
            if !index.isEmpty { store.lacksIndex.store(true, ordering: .relaxed) }
            database.context.report(
                .debug, "database '\(database.name)': the expiry index is not complete yet: \(error)",
                database: database.name)
        }
    }
}

extension EpochStore {
    /// Returns the value that LevelDB has for a key of any kind, or nil if there is none.
    fileprivate func value(of key: [UInt8]) throws(LarderError) -> [UInt8]? {
        try access("make room") { (leveldb) throws(LevelDBError) in try leveldb.get(key) }
    }
}
