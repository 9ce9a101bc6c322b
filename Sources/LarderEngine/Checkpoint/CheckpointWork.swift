import LevelDB

/// One database's part of what makes segments of the journal superfluous: a ``CheckpointPass`` or a ``RewritePass``.
protocol CheckpointWork: AnyObject {
    var database: Database { get }
    /// The LevelDB that the entries belong to; nil where it is not open.
    var openStore: EpochStore? { get }
    /// The newest commit unit that younger segments have instead of those that are to go; 0 when there is none.
    var newest: UInt64 { get }

    /// The segments are gone.
    func finish()
}

extension CheckpointWork {
    /// Notes how much of the journal has to be there: before older segments go, and after the younger ones are synced. For that
    /// an epoch gets its files: without the note nobody would miss its entries, should the journal be damaged.
    func noteNewest() throws(LarderError) {
        // One that takes no writes needs what it needed before.
        guard newest > 0, let store = openStore, store.ending == .none, !store.isSuspended else { return }
        do throws(LarderError) {
            try store.note(journalNeeded: newest)
        } catch {
            // Purged or deleted meanwhile: nothing is needed any more.
            database.pipeline.drain()
            guard store.ending == .none else { return }
            // Where the disk has no room for files, the journal is all there is, and what others need must not wait for them.
            guard store.isMade else {
                return database.context.report(.debug, "database '\(database.name)' stays without files: \(error)")
            }
            throw error
        }
    }

    /// The segments stay: what was frozen is as all that is dirty, and the next checkpoint begins anew.
    func abandon() {
        for index in 0..<Shard.count {
            let shard = database.shard(index)
            shard.lock.withLock { shard.table.thaw() }
        }
    }
}

extension Database {
    /// Entries of one shard looked at with its lock held once: readers that wait meanwhile must not notice.
    static let sliceCount = 64

    /// Calls `body` with one shard after the other, and again with those that have more. In turns, because a lock that is
    /// taken again at once never comes to who waits for it.
    /// - Parameters:
    ///   - body: takes the shard's lock for one slice. Returns whether there is more.
    ///   - afterRound: called after each round, without a lock.
    func forEachSlice<Failure: Error>(
        _ body: (Shard) throws(Failure) -> Bool, afterRound: () -> Void = {}
    ) throws(Failure) {
        var unfinished = (0..<Shard.count).map(shard)
        while !unfinished.isEmpty {
            var next: [Shard] = []
            for shard in unfinished where try body(shard) { next.append(shard) }
            unfinished = next
            afterRound()
        }
    }

    /// What the entries that LevelDB does not have yet would take in the journal, about, in bytes. Takes every shard's lock
    /// in turn.
    var journalBytesOfDirty: Int {
        (0..<Shard.count).reduce(0) { sum, index in
            let shard = shard(index)
            return sum
                + shard.lock.withLock {
                    shard.table.dirtyByteCount - shard.table.dirtyCount * (EntryPointer.overheadBytes - 16)
                }
        }
    }
}

extension EpochStore {
    /// Notes up to where the journal has to be there for LevelDB to be a consistent state; 0 where it needs nothing of it.
    func note(journalNeeded sequence: UInt64, sync: Bool = true) throws(LarderError) {
        if isFrozen { return noteWhileFrozen(journalNeeded: sequence) }
        let batch = LevelDB.WriteBatch()
        batch.put(EpochMetadata.journalKey, EpochMetadata.journalValue(sequence))
        try write(batch, sync: sync)
        journalNeeded.store(sequence, ordering: .relaxed)
    }
}
