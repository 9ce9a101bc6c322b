/// One database's part of a rewrite of the journal: commits its dirty entries once more, as they are, so that the segments
/// that had them before may go without LevelDB getting anything.
///
/// What a log-structured store calls cleaning (Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured
/// File System", 1991): where the same keys are written over and over, most of the journal is superseded, and copying what
/// is left costs a tenth of writing it to LevelDB.
///
/// An entry is committed with its shard's lock held, so that no write comes in between. It stays dirty, and keeps its version:
/// nothing about it changes. One that was written again meanwhile is in a younger segment already.
///
/// It needs no LevelDB: so it takes the place of a checkpoint too where a database's files cannot be used for now.
///
/// Confined to the thread that writes the checkpoint.
final class RewritePass: CheckpointWork {
    let openStore: EpochStore?
    let database: Database
    private let sequence: UInt64
    /// The newest commit unit that has what older segments had; 0 when there is none.
    private(set) var newest: UInt64 = 0
    private var slice: [EntryPointer] = []
    /// To which the entries belong.
    private let epoch: UInt64

    /// Freezes what is dirty.
    init(_ database: Database, upTo sequence: UInt64) {
        self.database = database
        self.sequence = sequence
        database.lockAll()
        defer { database.unlockAll() }
        openStore = database.storeOfEntries
        epoch = database.epochOfEntries
        for index in 0..<Shard.count { database.shard(index).table.freeze() }
        slice.reserveCapacity(Database.sliceCount)
    }

    /// Commits what was written up to the sequence once more, a round of slices at a time. All of it must be committed.
    func write() {
        database.forEachSlice { shard in
            shard.lock.withLock { rewriteSlice(shard) }
        } afterRound: {
            database.pipeline.drain()
        }
        newest = max(newest, database.rewriteUnresolved())
    }

    /// Called with the shard's lock held.
    private func rewriteSlice(_ shard: Shard) -> Bool {
        // Purged meanwhile: the table was emptied, and what is in it belongs to another epoch.
        guard database.epochOfEntries == epoch, epoch != 0 else { return false }
        slice.removeAll(keepingCapacity: true)
        let hasMore = shard.table.passFrozen(most: Database.sliceCount) { entry in
            if entry.sequence <= sequence { slice.append(entry) } else { newest = max(newest, entry.sequence) }
        }
        guard !slice.isEmpty else { return hasMore }
        let unit = database.pipeline.enqueue(.os) { batch, unit in
            batch.select(database: database.name, number: database.number, epoch: epoch)
            for entry in slice {
                if let record = entry.record {
                    batch.put(key: entry.key, record: record, sequence: unit)
                } else {
                    batch.remove(key: entry.key, sequence: unit)
                }
            }
        }
        newest = max(newest, unit)
        return hasMore
    }

    /// Everything is dirty as before.
    func finish() {}
}
