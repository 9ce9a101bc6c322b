/// The entries that LevelDB does not have yet, and the steps that write them to it.
///
/// A checkpoint *freezes* the dirty entries (determines which ones it writes), *takes* them to write them to LevelDB,
/// and *finishes* when LevelDB has synced them. An entry that was written again in the meantime stays dirty for the
/// next checkpoint. Its newer state is in a later segment of the journal.
extension EntryTable {
    /// The size of the entries that LevelDB does not have yet, in bytes.
    var dirtyByteCount: Int { active.byteCount + written.byteCount }
    /// The size of all entries and attachments, in bytes, without dirty entries of 1 MiB or more. These would otherwise
    /// displace all clean entries until the next checkpoint, a few seconds later.
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

    /// Forgets which index keys LevelDB has for the dirty entries, so that the next checkpoint writes their index keys
    /// again.
    func forgetIndexed() { forEachDirty { $0.head.pointee.indexed = 0 } }

    /// Assigns all dirty entries to the checkpoint that begins. Takes constant time, unless the previous checkpoint
    /// failed.
    func freeze() {
        thaw()
        frozenCount = active.count
    }

    /// Passes up to `most` of the next frozen entries to `body`.
    /// - Parameters:
    ///   - sequence: the last commit unit of this checkpoint. Entries written by later units are left to the next
    ///     checkpoint.
    ///   - body: collects the entry for LevelDB. It must not change the table, but may turn an expired entry into a
    ///     removal.
    ///   - left: called with each entry that is left to the next checkpoint.
    /// - Returns: whether there are more frozen entries.
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

    /// Passes up to `most` of the next frozen entries to `body`, but leaves them dirty for the next checkpoint. `body`
    /// must not change the table.
    /// - Returns: whether there are more frozen entries.
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

    /// Makes the taken entries clean, except those that were written again. Called after LevelDB has synced them.
    /// - Parameters:
    ///   - most: the maximum number of entries to handle.
    ///   - keeps: returns whether the clean entry stays in memory.
    /// - Returns: whether there are more taken entries.
    func finishWritten(upTo sequence: UInt64, most: Int, keeps: (EntryPointer) -> Bool) -> Bool {
        for _ in 0..<most {
            guard let entry = written.oldest else { return false }
            written.unlink(entry)
            if entry.sequence > sequence {
                active.push(entry, .active)
            } else if keeps(entry) {
                detachIfEmpty(entry)
                entry.head.pointee.isAbsentInLevelDB = entry.head.pointee.recordCount == 0
                admit(entry)
            } else {
                discard(entry)
            }
        }
        return written.count > 0
    }

    /// After a failed checkpoint, makes the taken entries wait for the next one, because it is unknown which of them
    /// LevelDB has.
    func thaw() {
        while let entry = written.oldest {
            written.unlink(entry)
            entry.head.pointee.indexed = 0
            entry.head.pointee.isAbsentInLevelDB = false
            active.push(entry, .active)
        }
        frozenCount = 0
    }
}
