extension Database {
    /// Lets `body` read and change the entries of a few keys at one instant, in memory. Allocates nothing.
    /// - Parameters:
    ///   - update: with the keys, added by ``Update/add(_:)``.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - body: called at most once, with the locks of the keys held. Must not block, and must not call the engine.
    ///     Returns whether to apply its changes.
    /// - Returns: false if nothing was done: memory cannot tell whether a key has an entry, changes have listeners,
    ///   files are not open, or `body` returned false.
    package func withBatch(
        _ update: Update, now: Int64, ticket: inout CommitTicket, _ body: (Update) -> Bool
    ) -> Bool {
        guard !ForkGuard.isForked else { return false }
        let locked = update.shardSet
        shards.lock(locked)
        defer { shards.unlock(locked) }
        guard case .open = applied.presence, !context.changes.isOn, let store = try? writableStore(applied, "update")
        else { return false }
        update.begin(self, now: now, merges: true)
        var needed = applied.sequence
        var hasLearned = false
        // Frees memory for recorded absences, after the last use of an entry.
        defer { if hasLearned { shards.forEach(in: locked) { $0.makeRoom() } } }
        guard findInMemory(update, &needed, &hasLearned), body(update) else { return false }
        if update.hasChanges { needed = max(needed, update.apply(in: self, to: store, context.options.durability)) }
        ticket = max(ticket, CommitTicket(sequence: needed))
        return true
    }

    /// Finds the entries of an update in memory. Called with its shard locks held.
    /// - Parameters:
    ///   - sequence: raised to the last commit that the reply has to wait for.
    ///   - hasLearned: set if the absence of a key was recorded.
    /// - Returns: false if memory cannot tell whether a key has an entry, or an entry cannot be read.
    private func findInMemory(_ update: Update, _ sequence: inout UInt64, _ hasLearned: inout Bool) -> Bool {
        for index in update.slots.indices {
            let (key, hash) = (update.slots[index].pointee.key, update.slots[index].pointee.hash)
            let isKnown = shards.with(hash) { shard in
                guard let entry = shard.table.find(key, hash: hash) else {
                    guard isAbsentBelow(shard, key, hash) else { return false }
                    shard.keepAbsence(key, hash)
                    hasLearned = true
                    return true
                }
                sequence = max(sequence, undecided(entry))
                guard let record = entry.record else { return true }
                guard let header = try? RecordHeader(parsing: record, update.rules.purges) else { return false }
                if update.rules.freshness(header, now: update.now) == .gone { shard.foundExpired(entry) }
                update.take(.view(header, record), entry, at: index)
                return true
            }
            guard isKnown else { return false }
        }
        return true
    }
}
