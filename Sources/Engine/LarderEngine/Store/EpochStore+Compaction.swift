import LarderLevelDB
import LarderPlatform
import LarderVocabulary

/// Freeing disk space by merging tables.
extension EpochStore {
    /// Frees the space of all deleted and overwritten records by merging all tables. Takes long.
    func compactAll() throws(LarderError) {
        var part = 0
        while try compact(part: part) { part += 1 }
    }

    /// Merges the tables of one part of the keys; see ``parts``.
    /// - Returns: whether there are more parts; false if the store is no longer current.
    func compact(part: Int) throws(LarderError) -> Bool {
        guard ending == .none, isMade else { return false }
        do throws(LarderError) {
            if part == 0 { try writeSpanningRemovals() }
            let (from, to) = Self.parts[part]
            try compact(from: from, to: to)
        } catch {
            // An error of a store that is no longer current is ignored: its files are about to be removed.
            guard ending != .none else { throw error }
        }
        if part + 1 < Self.parts.count { return true }
        forgetDead()
        return false
    }

    /// Merges the tables of a range, a few adjacent tables at a time.
    ///
    /// If LevelDB merges a range in one step, it takes adjacent small tables of a level together, up to the size of one
    /// table. Tables with only removals are small, but they may overlap many tables of the next level. LevelDB would
    /// merge all these tables in one step, and temporarily store them twice.
    func compact(from: [UInt8], to: [UInt8]) throws(LarderError) {
        var start = from
        for cut in tables.cuts(from: from, to: to, every: Self.sliceBytes) + [to] {
            try access("compact") { (database) throws(LevelDBError) in try database.compact(from: start, to: cut) }
            start = cut
        }
    }

    /// The bytes of tables that are merged at a time. In addition, LevelDB merges the tables that extend beyond the
    /// ends of the range, each with up to ten tables of the next level.
    private static let sliceBytes = 4 << 20

    /// Prepares a small store so that merging its first part merges all its tables.
    ///
    /// LevelDB writes its memory table, with all versions of a key, to a file. It may put this file directly into a
    /// level without overlapping tables, and never merge it. So a store with few tables would keep old versions
    /// permanently. Therefore this removes two unused keys, one before and one after all others: the table with these
    /// removals overlaps all tables.
    private func writeSpanningRemovals() throws(LarderError) {
        guard FileSystem.size(path) <= 4 * writeBufferBytes else { return }
        let batch = LarderLevelDB.WriteBatch()
        batch.delete([KeyKind.metadata, 0xFF])
        batch.delete([KeyKind.hint + 1])
        flushMemtable()
        try write(batch, sync: false, changesEntries: false)
    }

    /// The minimum size in bytes of a long record or batch in a checkpoint: 16 MiB. While LevelDB writes or merges a
    /// long record, several copies of it are in memory. So before a long batch, a checkpoint waits until the previous
    /// long batch is in a table. At the end, the checkpoint makes LevelDB merge the versions of each long record.
    static let versionMergeBytesMin = 16 << 20

    /// Waits until LevelDB has written its memory table to a file and finished the running merge. Ignores failures: the
    /// next write detects them.
    func flushMemtable() {
        // Before LevelDB compacts a range, it writes its memory table to a file. This range is after all keys, so there
        // are no tables to merge.
        let end: [UInt8] = [0xFF, 0xFF]
        unflushed.store(0, ordering: .relaxed)
        try? access("compact") { (database) throws(LevelDBError) in try database.compact(from: end, to: end) }
    }

    /// Keeps LevelDB's log so short on a nearly full disk that the reserve suffices to open the LevelDB, which writes the
    /// log to a table.
    func flushIfTight() {
        if unflushed.load(ordering: .relaxed) > 4 << 20, context.disk.isTight { flushMemtable() }
    }

    /// The size of LevelDB's memory table at which LevelDB writes it to a file, in bytes.
    private var writeBufferBytes: Int { context.levelDBOptions(create: false).writeBufferBytes }

    /// Whether LevelDB's memory table should be written to a file after `byteCount` more bytes: 2 MiB, or half of a
    /// smaller memory table. Then the log need not be synced, and memory is freed.
    func isFlushDue(after byteCount: Int) -> Bool {
        unflushed.load(ordering: .relaxed) + byteCount >= min(2 << 20, writeBufferBytes / 2)
    }

    /// Like ``flushMemtable()``, and then makes LevelDB merge all versions of one key, two tables at a time.
    func mergeVersions(of key: Key) {
        try? access("compact") { (database) throws(LevelDBError) in
            try database.compact(from: key.stored, to: key.stored)
        }
    }

    /// The ranges of keys that ``compact(part:)`` merges: the two kinds of keys of the expiry index, the hints, and 16
    /// ranges of entries by the first byte of their keys.
    private static let parts: [(from: [UInt8], to: [UInt8])] =
        [KeyKind.ownDeadline, KeyKind.governed, KeyKind.hint].map { ([$0], [$0 + 1]) }
        + stride(from: UInt8(0), through: 0xF0, by: 16).map { byte in
            (byte == 0 ? [KeyKind.record] : [KeyKind.record, byte], [KeyKind.record, byte | 0x0F, 0xFF])
        }
}
