import CLarderPrefetch

/// An item of the queues of dirty entries: what the table knows about an entry that LevelDB does not have yet.
struct DirtyEntry {
    var reference: EntryReference
    /// The sequence (number) of the commit unit that wrote the entry.
    var sequence: UInt64
    /// The index key that LevelDB is known to have for the entry; 0 for none.
    var indexed: ExpiryIndex.Slot = 0

    /// The memory of a dirty entry in addition to that of a clean one, in bytes.
    static let extraBytes = 20
    /// The size of an entry's operation in the journal in addition to its cell, in bytes: the lengths, the longer
    /// header, and a share of a frame.
    static let journalExtraBytes = 24
}

/// The entries that LevelDB does not have yet, and the steps that write them to it.
///
/// A checkpoint *freezes* the dirty entries (determines which ones it writes), *takes* them to write them to LevelDB,
/// and *finishes* when LevelDB has synced them. An entry that was written again in the meantime stays dirty for the
/// next checkpoint. Its newer state is in a later segment of the journal.
extension EntryTable {
    /// The size of the entries that LevelDB does not have yet, in bytes.
    var dirtyByteCount: Int {
        active.entryBytes + written.entryBytes + dirtyCount * (EntryPointer.overheadBytes + DirtyEntry.extraBytes)
    }
    /// The part of ``dirtyByteCount`` that belongs to entries of 1 MiB or more.
    var dirtyOutsizeByteCount: Int { active.outsizeBytes + written.outsizeBytes }
    /// The size of all entries and attachments, in bytes, without dirty entries of 1 MiB or more. These would otherwise
    /// displace all clean entries until the next checkpoint, a few seconds later.
    var budgetedByteCount: Int { byteCount + attachedByteCount - dirtyOutsizeByteCount }
    var dirtyCount: Int { active.count + written.count }

    /// The approximate size in the journal, in bytes, of the entries that LevelDB does not have yet.
    var journalBytesOfDirty: Int { active.entryBytes + written.entryBytes + dirtyCount * DirtyEntry.journalExtraBytes }

    /// Calls `body` with every dirty entry. `body` must not change the table.
    func forEachDirty(_ body: (EntryPointer) -> Void) {
        active.forEachItem { body(memory.entry($0.pointee.reference)) }
        written.forEachItem { body(memory.entry($0.pointee.reference)) }
    }

    /// Calls `body` with every clean entry. `body` must not change the table.
    func forEachClean(_ body: (EntryPointer) -> Void) {
        small.forEachItem { body(memory.entry($0.pointee)) }
        main.forEachItem { body(memory.entry($0.pointee)) }
    }

    func pushActive(_ item: DirtyEntry, _ entry: EntryPointer) {
        entry.position = active.append(item, of: entry)
        entry.place = .active
    }

    // MARK: Index keys

    /// The index key that LevelDB is known to have for a clean entry; 0 for none.
    func indexedSlot(_ entry: EntryPointer) -> ExpiryIndex.Slot {
        guard entry.isIndexed, let indexing, let header = entry.header(nil) else { return 0 }
        return indexing.slot(header)
    }

    /// Forgets which index key LevelDB has for an entry, so that the next checkpoint of the entry writes it again.
    func forgetIndexed(_ entry: EntryPointer) {
        switch entry.place {
        case .active: active[entry.position].pointee.indexed = 0
        case .written: written[entry.position].pointee.indexed = 0
        case .small, .main: entry.isIndexed = false
        case .nowhere, .free: break
        }
    }

    /// Forgets which index keys LevelDB has for the dirty entries, so that the next checkpoint writes their index keys
    /// again.
    func forgetIndexed() { forEachDirty { forgetIndexed($0) } }

    // MARK: Checkpoints

    /// Assigns all dirty entries to the checkpoint that begins. Takes constant time, unless the previous checkpoint
    /// failed.
    func freeze() {
        thaw()
        frozenCount = active.count
    }

    /// Like ``freeze()``, for a checkpoint that writes index keys by these rules. Looks at every clean entry if the
    /// rules have changed, because the index keys of clean entries are not stored, but follow from the rules.
    func freeze(_ rules: ExpiryIndex.Rules) {
        freeze()
        if indexing != rules {
            forEachClean { $0.isIndexed = false }
            indexing = rules
        }
    }

    /// Prefetches one of the next entries of a queue into the CPU's caches, because checkpoints hold the shard's lock while
    /// they read the entries.
    private func prefetch(in queue: EntryQueue<DirtyEntry>) {
        guard queue.count > Self.prefetchDistance else { return }
        let address = memory.entry(queue[queue.first &+ UInt32(Self.prefetchDistance)].pointee.reference).address
        larder_prefetch(address)
        larder_prefetch(address + 64)
    }

    private static let prefetchDistance = 8

    /// What a checkpoint writes to LevelDB for an entry.
    enum Taken {
        /// The record, and this index key (0 for none).
        case record(ExpiryIndex.Slot)
        /// A removal. The record, if any, is dropped.
        case removal
    }

    /// Passes up to `most` of the next frozen entries to `body`.
    /// - Parameters:
    ///   - sequence: the last commit unit of this checkpoint. Entries written by later units are left to the next
    ///     checkpoint.
    ///   - body: collects the entry for LevelDB, with the index key that LevelDB has. It must not change the table.
    ///   - left: called with each entry that is left to the next checkpoint, and its sequence.
    /// - Returns: whether there are more frozen entries.
    func takeFrozen(
        upTo sequence: UInt64, most: Int, _ body: (EntryPointer, ExpiryIndex.Slot) -> Taken,
        left: (EntryPointer, UInt64) -> Void
    ) -> Bool {
        for _ in 0..<most {
            guard frozenCount > 0 else { return false }
            prefetch(in: active)
            // Entries that became dirty after the freeze follow the frozen entries in the queue.
            frozenCount -= 1
            var item = active[active.first].pointee
            var entry = memory.entry(item.reference)
            if item.sequence <= sequence {
                switch body(entry, item.indexed) {
                case .record(let indexed):
                    item.indexed = indexed
                    entry.isAbsentInLevelDB = false
                case .removal:
                    item.indexed = 0
                    if entry.recordCount > 0 {
                        dropRecord(entry)
                        item.reference = active[active.first].pointee.reference
                        entry = memory.entry(item.reference)
                    }
                }
                active.removeFirst(of: entry)
                entry.position = written.append(item, of: entry)
                entry.place = .written
            } else {
                left(entry, item.sequence)
                active.removeFirst(of: entry)
                pushActive(item, entry)
            }
        }
        return frozenCount > 0
    }

    /// Passes up to `most` of the next frozen entries to `body`, but leaves them dirty for the next checkpoint. `body`
    /// must not change the table.
    /// - Returns: whether there are more frozen entries.
    func passFrozen(most: Int, _ body: (EntryPointer, _ sequence: UInt64) -> Void) -> Bool {
        for _ in 0..<most {
            guard frozenCount > 0 else { return false }
            frozenCount -= 1
            let item = active[active.first].pointee
            let entry = memory.entry(item.reference)
            body(entry, item.sequence)
            active.removeFirst(of: entry)
            pushActive(item, entry)
        }
        return frozenCount > 0
    }

    /// Makes the taken entries clean, except those that were written again. Called after LevelDB has synced them.
    /// - Parameters:
    ///   - most: the maximum number of entries to handle.
    ///   - keeps: returns whether the clean entry stays in memory.
    /// - Returns: whether there are more taken entries.
    func finishWritten(upTo sequence: UInt64, most: Int, keeps: (EntryPointer) -> Bool) -> Bool {
        cleanStates += 1
        for _ in 0..<most {
            guard written.count > 0 else { return false }
            prefetch(in: written)
            let item = written[written.first].pointee
            let entry = memory.entry(item.reference)
            written.removeFirst(of: entry)
            if item.sequence > sequence {
                pushActive(item, entry)
            } else if !memory.isNearlyFull, keeps(entry) {
                entry.isAbsentInLevelDB = entry.recordCount == 0
                admit(item.reference, entry, hash: nil, wasMain: entry.wasMain)
                entry.isIndexed = item.indexed != 0
            } else {
                discard(item.reference, entry)
            }
        }
        return written.count > 0
    }

    /// After a failed checkpoint, makes the taken entries wait for the next one, because it is unknown which of them
    /// LevelDB has.
    func thaw() {
        while written.count > 0 {
            var item = written[written.first].pointee
            let entry = memory.entry(item.reference)
            written.removeFirst(of: entry)
            item.indexed = 0
            entry.isAbsentInLevelDB = false
            pushActive(item, entry)
        }
        frozenCount = 0
    }
}
