/// One database's part of a rewrite of the journal: commits its dirty entries again, unchanged, so that the older
/// segments can be removed without writing to LevelDB.
///
/// Log-structured stores call this cleaning (Rosenblum and Ousterhout, "The Design and Implementation of a
/// Log-Structured File System", 1991). If the same keys are written over and over, most of the journal is superseded.
/// Copying the remaining part costs a tenth of writing it to LevelDB.
///
/// An entry is committed again with its shard's lock held, so that no write comes in between. It stays dirty and keeps
/// its version. An entry that was changed since the rewrite began is already in a newer segment, and is skipped.
///
/// A rewrite does not use LevelDB, so it also replaces a checkpoint of a database whose files cannot be used for now.
///
/// Not thread-safe: used only by the thread that writes the checkpoint.
final class RewritePass: CheckpointWork {
    let openStore: EpochStore?
    let database: Database
    private let sequence: UInt64
    /// The last commit unit of the entries that this pass found in, or wrote to, newer segments; 0 if there is none.
    private(set) var newest: UInt64 = 0
    private var slice: [EntryPointer] = []
    /// The epoch of the entries: the number of the database's LevelDB to which they belong.
    private let epoch: UInt64

    /// Freezes the dirty entries: assigns them to this pass, so that entries written later do not belong to it.
    init(_ database: Database, upTo sequence: UInt64) {
        self.database = database
        self.sequence = sequence
        database.shards.lockAll()
        defer { database.shards.unlockAll() }
        openStore = database.storeOfEntries
        epoch = database.epochOfEntries
        for shard in database.shards.all { shard.table.freeze() }
        slice.reserveCapacity(Database.sliceCount)
    }

    /// Commits the frozen entries up to `sequence` a second time, and waits for these commits after each round through
    /// the shards. The entries must already be committed.
    func write() {
        database.forEachSlice { shard in
            shard.lock.withLock { rewriteSlice(shard) }
        } afterRound: {
            database.pipeline.drain()
        }
        newest = max(newest, database.rewriteUnresolved())
    }

    /// Commits the next entries of a shard again, and returns whether it has more. Called with the shard's lock held.
    private func rewriteSlice(_ shard: Shard) -> Bool {
        // After a purge, the table is empty, and new entries belong to another epoch.
        guard database.epochOfEntries == epoch, epoch != 0 else { return false }
        slice.removeAll(keepingCapacity: true)
        let hasMore = shard.table.passFrozen(most: Database.sliceCount) { entry, written in
            if written <= sequence { slice.append(entry) } else { newest = max(newest, written) }
        }
        guard !slice.isEmpty else { return hasMore }
        var record: [UInt8] = []
        let unit = database.pipeline.enqueue(.os) { batch, unit in
            batch.select(database: database.name, number: database.number, epoch: epoch)
            for entry in slice {
                guard entry.hasRecord else {
                    batch.remove(key: entry.key, sequence: unit)
                    continue
                }
                record.removeAll(keepingCapacity: true)
                entry.appendStored(to: &record)
                record.withUnsafeBytes { batch.put(key: entry.key, record: $0, sequence: unit) }
            }
        }
        newest = max(newest, unit)
        return hasMore
    }

    /// Does nothing: the entries stay dirty.
    func finish() {}
}
