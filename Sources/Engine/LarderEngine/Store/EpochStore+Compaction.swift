import LarderLevelDB
import LarderPlatform
import LarderVocabulary

/// Freeing disk space by merging tables.
extension EpochStore {
    /// Frees the space of deleted and overwritten records. Takes long.
    func compactAll() throws(LarderError) {
        var part = 0
        while try compact(part: part) { part += 1 }
    }

    /// Merges one part of the keys.
    /// - Returns: whether there are more parts; false if the store is no longer current.
    func compact(part: Int) throws(LarderError) -> Bool {
        guard ending == .none, isMade else { return false }
        do throws(LarderError) {
            if part == 0 { try spanSmall() }
            let (from, to) = Self.parts[part]
            try compact(from: from, to: to)
        } catch {
            // A store that is no longer current needs no compacting.
            guard ending != .none else { throw error }
        }
        if part + 1 < Self.parts.count { return true }
        forgetDead()
        return false
    }

    /// Merges the tables of a range, a few adjacent tables at a time.
    ///
    /// LevelDB merges small tables of a level together, until their total size is that of one table. Tables that
    /// contain only removals are small, but the removed entries are not. For a wide range, LevelDB would merge all
    /// tables of the next level at once, and temporarily store them twice.
    func compact(from: [UInt8], to: [UInt8]) throws(LarderError) {
        var start = from
        for cut in tables.cuts(from: from, to: to, every: Self.sliceBytes) + [to] {
            try access("compact") { (database) throws(LevelDBError) in try database.compact(from: start, to: cut) }
            start = cut
        }
    }

    /// The size of a slice. The tables that extend beyond either end of it are merged too, each with up to ten tables
    /// of the next level.
    private static let sliceBytes = 4 << 20

    /// Makes the merge of a small store's first part merge all its tables.
    ///
    /// LevelDB writes its memory, with all versions of a key, to a table that it may put into the lowest level at once.
    /// It merges nothing in the lowest level, so a store with few tables would keep old versions permanently. Removing
    /// two unused keys, one before and one after all others, creates a table that overlaps all tables.
    private func spanSmall() throws(LarderError) {
        guard FileSystem.size(path) <= 4 * context.options.writeBufferBytes else { return }
        let batch = LarderLevelDB.WriteBatch()
        batch.delete([KeyKind.metadata, 0xFF])
        batch.delete([KeyKind.governed + 1])
        settleMemory()
        try write(batch, sync: false, changesEntries: false)
    }

    /// The record size from which a record is written to a table and merged with its previous versions before more
    /// memory is used: 16 MiB. LevelDB keeps several copies of the data that it merges.
    static let settledBytesMin = 16 << 20

    /// Waits until LevelDB has written its memory to a table and finished the running merge. The next write detects
    /// failures.
    func settleMemory() {
        // LevelDB writes its memory before it looks for tables to merge. This range, after all keys, has no tables.
        let end: [UInt8] = [0xFF, 0xFF]
        try? access("compact") { (database) throws(LevelDBError) in try database.compact(from: end, to: end) }
    }

    /// Like ``settleMemory()``, and then has LevelDB merge the versions of one key, two tables at a time. The next
    /// write detects failures.
    func settle(_ key: Key) {
        try? access("compact") { (database) throws(LevelDBError) in
            try database.compact(from: key.stored, to: key.stored)
        }
    }

    /// The parts that are merged one by one: the special kinds of keys, and the entries by the first byte of their
    /// keys.
    private static let parts: [(from: [UInt8], to: [UInt8])] =
        [([KeyKind.ownDeadline], [KeyKind.governed]), ([KeyKind.governed], [KeyKind.governed + 1])]
        + stride(from: UInt8(0), through: 0xF0, by: 16).map { byte in
            (byte == 0 ? [KeyKind.record] : [KeyKind.record, byte], [KeyKind.record, byte | 0x0F, 0xFF])
        }
}
