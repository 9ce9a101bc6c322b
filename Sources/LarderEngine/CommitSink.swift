import LevelDB

/// The seam between what is applied and what is durable. A group of units goes in, in the order of their sequences;
/// when `commit` returns, all of it is durable at the level that its units ask for.
///
/// Called by one thread at a time.
protocol CommitSink: Sendable {
    /// - Parameter durable: counted up as units become durable. Whatever is thrown, the first `durable` units of the
    ///   group stay: the caller must treat them as committed, or what it serves is not what the disk says.
    func commit(_ group: ArraySlice<CommitUnit>, durable: inout Int) throws(LarderError)
}

/// Commits straight to LevelDB: the units of a database that follow each other share one WriteBatch.
///
/// A synced write makes LevelDB's current log durable. When LevelDB changed to a new log since the last sync, what
/// stood at the end of the old one was closed unsynced: a failing machine (not a killed process) can lose it.
struct DirectCommitSink: CommitSink {
    let context: EngineContext

    /// Bytes of one WriteBatch: a batch is one record of LevelDB's log and one insertion into its memory table.
    private static let batchBytesMax = 4 << 20

    func commit(_ group: ArraySlice<CommitUnit>, durable: inout Int) throws(LarderError) {
        try context.options.beforeCommit?()
        var batch = PendingBatch()
        for unit in group {
            switch unit.action {
            case .write(_, let store, let operations):
                if batch.store !== store || batch.batch.byteCount > Self.batchBytesMax {
                    durable += try batch.flush()
                }
                batch.store = store
                batch.units += 1
                batch.sync = batch.sync || unit.durability == .always
                batch.syncLater = batch.syncLater || unit.durability == .everysecond
                for operation in operations { batch.add(operation) }
            case .control(let perform, _):
                durable += try batch.flush()
                try perform()
                durable += 1
            }
        }
        durable += try batch.flush()
    }

    /// The batch being filled, and the store it is for.
    private struct PendingBatch {
        let batch = LevelDB.WriteBatch()
        var store: EpochStore?
        var units = 0
        var sync = false
        var syncLater = false

        func add(_ operation: CommitOperation) {
            switch operation {
            case .put(let key, let record, let index):
                batch.put(key.stored, record.stored)
                if let index { batch.put(index, ExpiryIndex.value) }
            case .remove(let key): batch.delete(key.stored)
            case .dropIndex(let key): batch.delete(key)
            case .addIndex(let key): batch.put(key, ExpiryIndex.value)
            }
        }

        /// - Returns: how many units are now durable.
        mutating func flush() throws(LarderError) -> Int {
            guard let store else { return 0 }
            // A store that was set aside while these writes waited takes no more of them: they must not be answered.
            if let error = store.endingError("write") { throw error }
            try store.write(batch, sync: sync, syncLater: syncLater)
            defer { units = 0 }
            batch.clear()
            self.store = nil
            sync = false
            syncLater = false
            return units
        }
    }
}
