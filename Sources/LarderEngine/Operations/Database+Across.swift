/// Commands that work on keys of two databases, such as MOVE.
extension Database {
    /// As ``perform(_:loading:now:durability:fillCache:_:)`` for keys of this database and of another one: everything is
    /// seen at one instant, and what is written to both is one commit unit. Both sides see whole records.
    ///
    /// - Parameters:
    ///   - keys: the keys of this database.
    ///   - other: another database of the same larder, which must be ready for writing if it is written to.
    ///   - otherKeys: the keys of that one.
    ///   - onlyInMemory: whether nothing is to be done when the disk would have to be asked.
    ///   - body: called once with the locks held of both databases' shards. Short, must not block, must not call the
    ///     engine.
    /// - Returns: what the answer has to wait for; nil when the disk would have to be asked and must not be.
    package func perform(
        _ keys: [Key], and other: Database, _ otherKeys: [Key], now: Int64, onlyInMemory: Bool,
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        precondition(other !== self && other.pipeline === pipeline, "two databases of one larder are needed")
        try ForkGuard.check("update")
        let locked = DatabaseShards.set(of: keys)
        let otherLocked = DatabaseShards.set(of: otherKeys)
        let (slots, otherSlots) = (Update.slotsOfRepeatedKeys(keys), Update.slotsOfRepeatedKeys(otherKeys))
        var cold = ColdReads(count: keys.count, fillCache: true)
        var otherCold = ColdReads(count: otherKeys.count, fillCache: true)
        defer {
            forget(keys, &cold)
            other.forget(otherKeys, &otherCold)
        }
        var attempt = 0
        while true {
            attempt += 1
            if !onlyInMemory {
                try readCold(keys, .records, &cold, attempt: attempt)
                try other.readCold(otherKeys, .records, &otherCold, attempt: attempt)
            }
            // In the order of the databases' numbers, as everybody does who locks several.
            let isFirst = number < other.number
            if isFirst { shards.lock(locked) }
            other.shards.lock(otherLocked)
            if !isFirst { shards.lock(locked) }
            defer {
                shards.unlock(locked)
                other.shards.unlock(otherLocked)
            }

            let (state, otherState) = (applied, other.applied)
            var ticket = max(state.sequence, otherState.sequence)
            let found = try gather(keys, .records, &cold, attempt: attempt, now: now, ticket: &ticket)
            let otherFound = try other.gather(
                otherKeys, .records, &otherCold, attempt: attempt, now: now, ticket: &ticket)
            guard let found, let otherFound else {
                if onlyInMemory { return nil }
                continue
            }
            var update = try Update(keys, slots: slots, now, state, .records, found)
            var otherUpdate = try Update(otherKeys, slots: otherSlots, now, otherState, .records, otherFound)
            try body(&update, &otherUpdate)
            if !update.operations.isEmpty || !otherUpdate.operations.isEmpty {
                let sequence = try apply(update.operations, state, and: other, otherUpdate.operations, otherState)
                ticket = max(ticket, sequence)
            }
            return CommitTicket(sequence: ticket)
        }
    }

    /// Queues the operations of both as one unit and applies them. Called with the locks held of every shard they touch.
    func apply(
        _ operations: [CommitOperation], _ state: DatabaseState, and other: Database,
        _ otherOperations: [CommitOperation],
        _ otherState: DatabaseState
    ) throws(LarderError) -> UInt64 {
        let store = operations.isEmpty ? nil : try writableStore(state, "update")
        let otherStore = otherOperations.isEmpty ? nil : try other.writableStore(otherState, "update")
        let sequence = pipeline.enqueue(context.options.durability) { batch, sequence in
            if let store { write(operations, into: batch, store, sequence) }
            if let otherStore { other.write(otherOperations, into: batch, otherStore, sequence) }
        }
        note(operations, sequence)
        other.note(otherOperations, sequence)
        return sequence
    }
}
