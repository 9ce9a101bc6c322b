/// The entries that LevelDB does not have yet, and the steps that write them to it.
///
/// A checkpoint *freezes* the dirty entries, *takes* them one at a time to write them to LevelDB, and *finishes* when
/// LevelDB has them durably. An entry that was written again in the meantime stays dirty for the next checkpoint; its
/// newer state is in a newer segment of the journal.
extension EntryTable {
    /// The bytes of the entries that LevelDB does not have yet.
    var dirtyByteCount: Int { active.byteCount + written.byteCount }
    /// The bytes of all entries and attachments, except outsize entries that wait for LevelDB. If those counted, they
    /// would evict everything else for a few seconds.
    var budgetedByteCount: Int {
        byteCount + attachedByteCount - active.outsizeByteCount - written.outsizeByteCount
    }
    var dirtyCount: Int { active.count + written.count }

    /// Calls `body` with every dirty entry. `body` must not change the table.
    func forEachDirty(_ body: (EntryPointer) -> Void) { forEach(in: [active, written], body) }

    /// Calls `body` with every clean entry. `body` must not change the table.
    func forEachClean(_ body: (EntryPointer) -> Void) { forEach(in: [small, main], body) }

    private func forEach(in lists: [EntryList], _ body: (EntryPointer) -> Void) {
        for list in lists {
            var next = list.oldest
            while let entry = next {
                body(entry)
                next = entry.head.pointee.newer
            }
        }
    }

    /// Forgets which index keys LevelDB has for the dirty entries.
    func forgetIndexed() { forEachDirty { $0.head.pointee.indexed = 0 } }

    /// Assigns all dirty entries to the checkpoint that begins. Takes no time, unless the previous checkpoint failed.
    func freeze() {
        thaw()
        frozenCount = active.count
    }

    /// Passes up to `most` of the next frozen entries to `body`.
    /// - Parameters:
    ///   - sequence: entries written by later commit units are left to the next checkpoint.
    ///   - body: collects the entry for LevelDB. It must not change the table, but may turn an expired entry into a
    ///     removal.
    ///   - left: called with each entry that is left to the next checkpoint.
    /// - Returns: whether there are more.
    func takeFrozen(
        upTo sequence: UInt64, most: Int, _ body: (EntryPointer) -> Void, left: (EntryPointer) -> Void
    ) -> Bool {
        for _ in 0..<most {
            guard frozenCount > 0, let entry = active.oldest else { return false }
            // Entries that became dirty after the freeze follow the frozen entries in the list.
            frozenCount -= 1
            active.unlink(entry)
            if entry.sequence <= sequence {
                body(entry)
                written.push(entry, .written)
            } else {
                left(entry)
                active.push(entry, .active)
            }
        }
        return frozenCount > 0
    }

    /// Passes up to `most` of the next frozen entries to `body`, and leaves them dirty. `body` must not change the
    /// table.
    /// - Returns: whether there are more.
    func passFrozen(most: Int, _ body: (EntryPointer) -> Void) -> Bool {
        for _ in 0..<most {
            guard frozenCount > 0, let entry = active.oldest else { return false }
            frozenCount -= 1
            active.unlink(entry)
            body(entry)
            active.push(entry, .active)
        }
        return frozenCount > 0
    }

    /// Called when LevelDB has the taken entries. Entries that were not written again become clean.
    /// - Parameters:
    ///   - most: the maximum number of entries to handle.
    ///   - keeps: whether a clean entry stays in memory.
    /// - Returns: whether there are more.
    func finishWritten(upTo sequence: UInt64, most: Int, keeps: (EntryPointer) -> Bool) -> Bool {
        for _ in 0..<most {
            guard let entry = written.oldest else { return false }
            written.unlink(entry)
            if entry.sequence > sequence {
                active.push(entry, .active)
            } else if keeps(entry) {
                detachIfEmpty(entry)
                entry.head.pointee.isAbsentBelow = entry.head.pointee.recordCount == 0
                admit(entry)
            } else {
                discard(entry)
            }
        }
        return written.count > 0
    }

    /// Handles a failed checkpoint. It is unknown which of its entries LevelDB has, so the next checkpoint takes all of
    /// them again.
    func thaw() {
        while let entry = written.oldest {
            written.unlink(entry)
            entry.head.pointee.indexed = 0
            entry.head.pointee.isAbsentBelow = false
            active.push(entry, .active)
        }
        frozenCount = 0
    }
}
