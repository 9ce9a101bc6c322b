import LarderLevelDB
import LarderPlatform
import LarderVocabulary

/// Giving space back to the disk.
extension EpochStore {
    /// Gives the space of deleted and overwritten records back to the disk. Takes long.
    func compactAll() throws(LarderError) {
        var part = 0
        while try compact(part: part) { part += 1 }
    }

    /// Merges one part of the keys.
    /// - Returns: whether there are more parts; false when the store is no longer current.
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

    /// Merges the tables of a range, some neighbours at a time.
    ///
    /// LevelDB takes small tables of a level together until they are as large as one table. Tables of removals alone are small, and
    /// what they remove is not: of a wide range all tables of the next level would be merged at once, and be there twice
    /// meanwhile.
    func compact(from: [UInt8], to: [UInt8]) throws(LarderError) {
        var start = from
        for cut in tables.cuts(from: from, to: to, every: Self.sliceBytes) + [to] {
            try access("compact") { (database) throws(LevelDBError) in try database.compact(from: start, to: cut) }
            start = cut
        }
    }

    /// Tables beyond both ends of a slice are merged too, each with up to ten tables of the next level.
    private static let sliceBytes = 4 << 20

    /// Has all tables of a small store merged by what merges its first part.
    ///
    /// LevelDB empties its memory into a table with all versions of a key in it, may put that table into the lowest level
    /// at once, and merges nothing in the lowest level: in a store of few tables former versions would stay for good.
    /// Removals of keys that nobody uses, before and behind all others, come into a table that lies above all those.
    private func spanSmall() throws(LarderError) {
        guard FileSystem.size(path) <= 4 * context.options.writeBufferBytes else { return }
        let batch = LarderLevelDB.WriteBatch()
        batch.delete([KeyKind.metadata, 0xFF])
        batch.delete([KeyKind.governed + 1])
        settleMemory()
        try write(batch, sync: false, changesEntries: false)
    }

    /// From how many bytes on a record is put into a table, and merged with its previous versions, before more memory
    /// of its size is used: 16 MiB. LevelDB holds several copies of what it merges.
    static let settledBytesMin = 16 << 20

    /// Waits until LevelDB has put its memory into a table, and for the running merge. The next write finds what
    /// failed.
    func settleMemory() {
        // LevelDB empties its memory before it looks for tables to merge, and there are none behind all keys.
        let end: [UInt8] = [0xFF, 0xFF]
        try? access("compact") { (database) throws(LevelDBError) in try database.compact(from: end, to: end) }
    }

    /// Like ``settleMemory()``, and then has LevelDB merge the versions of one key, two tables at a time. The next
    /// write finds what failed.
    func settle(_ key: Key) {
        try? access("compact") { (database) throws(LevelDBError) in
            try database.compact(from: key.stored, to: key.stored)
        }
    }

    /// The kinds of keys, the entries by the first byte of their keys.
    private static let parts: [(from: [UInt8], to: [UInt8])] =
        [([KeyKind.ownDeadline], [KeyKind.governed]), ([KeyKind.governed], [KeyKind.governed + 1])]
        + stride(from: UInt8(0), through: 0xF0, by: 16).map { byte in
            (byte == 0 ? [KeyKind.record] : [KeyKind.record, byte], [KeyKind.record, byte | 0x0F, 0xFF])
        }
}
