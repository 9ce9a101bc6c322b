import LarderLevelDB

/// One database's part of the work that makes segments of the journal unnecessary: a ``CheckpointPass`` or a
/// ``RewritePass``.
protocol CheckpointWork: AnyObject {
    var database: Database { get }
    /// The LevelDB of the entries; nil if it is not open.
    var openStore: EpochStore? { get }
    /// The newest commit unit whose entries stay in newer segments of the journal when the old ones are removed; 0 if
    /// there is none.
    var newest: UInt64 { get }

    /// Called after the segments were removed.
    func finish()
}

extension CheckpointWork {
    /// Records which part of the journal this LevelDB needs. Called before older segments are removed, and after the
    /// newer ones are synced. Creates the epoch's files if necessary: without them, the loss of its entries with a
    /// damaged journal would not be detected.
    func noteNewest() throws(LarderError) {
        // A store that accepts no writes still needs the same part of the journal as before.
        guard newest > 0, let store = openStore, store.ending == .none, !store.isSuspended else { return }
        do throws(LarderError) {
            try store.note(journalNeeded: newest)
        } catch {
            // If the database was purged or deleted in the meantime, it needs no part of the journal.
            database.pipeline.drain()
            guard store.ending == .none else { return }
            // Without disk space for files, the entries stay in the journal alone. This must not block the other
            // databases.
            guard store.isMade else {
                return database.context.report(.debug, "database '\(database.name)' has no files yet: \(error)")
            }
            throw error
        }
    }

    /// Keeps the segments: the frozen entries become normal dirty entries again, and the next checkpoint starts over.
    func abandon() {
        for shard in database.shards.all { shard.lock.withLock { shard.table.thaw() } }
    }
}

extension Database {
    /// The number of entries of a shard that are handled per lock acquisition: few, so that readers do not notice the
    /// wait.
    static let sliceCount = 64

    /// Calls `body` with one shard at a time, and again for shards that have more. The shards alternate, because a lock
    /// that is retaken at once is never passed to a waiting thread.
    /// - Parameters:
    ///   - body: takes the shard's lock for one slice. Returns whether there is more.
    ///   - afterRound: called after each round, without a lock.
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

    /// The approximate size, in the journal, of the entries that LevelDB does not have yet. Takes every shard's lock in
    /// turn.
    var journalBytesOfDirty: Int {
        shards.sum { $0.dirtyByteCount - $0.dirtyCount * (EntryPointer.overheadBytes - 16) }
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
