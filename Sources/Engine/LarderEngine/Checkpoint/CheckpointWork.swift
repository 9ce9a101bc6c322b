import LarderLevelDB

/// One database's part of the work that makes segments of the journal unnecessary: a ``CheckpointPass`` or a
/// ``RewritePass``.
protocol CheckpointWork: AnyObject {
    var database: Database { get }
    /// The LevelDB of the entries; nil if it is not open.
    var openStore: EpochStore? { get }
    /// The last commit unit that LevelDB still needs from the journal after the old segments are removed; 0 if there is
    /// none. Its entries are in newer segments.
    var newest: UInt64 { get }

    /// Ends the work after the old segments were removed.
    func finish()
}

extension CheckpointWork {
    /// Records in LevelDB that it needs the journal up to ``newest``. Only this record can show later that a damaged
    /// journal has lost entries, so LevelDB's files are created if there are none. Called after the newer segments are
    /// synced, and before the old ones are removed.
    func noteNewest() throws(LarderError) {
        // Skip a suspended store: nothing is written to it, so it needs no further part of the journal.
        guard newest > 0, let store = openStore, store.ending == .none, !store.isSuspended else { return }
        do throws(LarderError) {
            try store.note(journalNeeded: newest)
        } catch {
            // Wait for a running purge or deletion. If it has ended the store, the store needs no part of the journal.
            database.pipeline.drain()
            guard store.ending == .none else { return }
            // LevelDB's files could not be created, for example on a full disk, so the entries stay in the journal.
            // This must not fail the checkpoint of the other databases.
            guard store.isMade else {
                return database.context.report(
                    .debug, "database '\(database.name)' has no files yet: \(error)", database: database.name)
            }
            throw error
        }
    }

    /// Ends the work if the segments are kept. The frozen entries become normal dirty entries, which the next
    /// checkpoint writes.
    func abandon() {
        for shard in database.shards.all { shard.lock.withLock { shard.table.thaw() } }
    }
}

extension Database {
    /// The number of entries that are processed each time a shard (a part of the database) is locked. It is so small
    /// that readers do not notice the wait.
    static let sliceCount = 64

    /// Processes all shards in slices: calls `body` for each shard in turn, until no shard has more. The shards take
    /// turns: if a thread releases a lock and immediately takes it again, waiting threads never get it.
    /// - Parameters:
    ///   - body: locks the shard, processes one slice of it, and returns whether the shard has more.
    ///   - afterRound: called after each round through the shards, without a lock held.
    func forEachSlice<Failure: Error>(
        _ body: (Shard) throws(Failure) -> Bool, afterRound: () -> Void = {}
    ) throws(Failure) {
        var unfinished = shards.all
        while !unfinished.isEmpty {
            var next: [Shard] = []
            for shard in unfinished where try body(shard) { next.append(shard) }
            unfinished = next
            afterRound()
        }
    }

    /// The approximate size in the journal, in bytes, of the entries that LevelDB does not have yet. Locks one shard
    /// after the other.
    var journalBytesOfDirty: Int { shards.sum(\.journalBytesOfDirty) }

    /// The approximate number of bytes that a checkpoint of these entries adds to LevelDB: more than
    /// ``journalBytesOfDirty`` if there are indexes.
    var incomingBytes: Int {
        let hintBytes = indexing.hintBytesPerRecord
        return journalBytesOfDirty + (hintBytes > 0 ? hintBytes * dirtyCount : 0)
    }
}

extension EpochStore {
    /// Records the last commit unit that LevelDB needs from the journal to be consistent; 0 if it needs none.
    func note(journalNeeded sequence: UInt64, sync: Bool = true) throws(LarderError) {
        if isFrozen { return noteWhileFrozen(journalNeeded: sequence) }
        let batch = LarderLevelDB.WriteBatch()
        batch.put(EpochMetadata.journalKey, EpochMetadata.journalValue(sequence))
        try write(batch, sync: sync)
        journalNeeded.store(sequence, ordering: .relaxed)
    }
}
