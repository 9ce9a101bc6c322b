extension Engine {
    /// Runs commands on keys of several databases as a transaction: all reads and writes happen at one instant, and the
    /// writes are one commit unit.
    ///
    /// The counterpart of ``Database/perform(_:_:_:now:durability:fillCache:needsFiles:observing:_:)`` for several
    /// databases.
    /// - Parameters:
    ///   - parts: the keys, one part for each database. Databases that the transaction writes to must be ready for
    ///     writing.
    ///   - now: the time of all commands.
    ///   - bytesMax: the maximum total length of the records that are read from the disk, in bytes.
    ///   - body: called at most once, with the locks held. Must not block, and must not call the engine. Returns
    ///     whether to apply its changes. If it throws, nothing is changed.
    package func transact(
        _ parts: [TransactionPart], now: Int64, bytesMax: Int, _ access: Access,
        _ body: (inout TransactionUpdate) throws(LarderError) -> Bool
    ) throws(LarderError) -> TransactionEnd {
        for part in parts { part.database.fillHintsBeforeWrite() }
        return try withEntries(parts, now: now, bytesMax: bytesMax, access, isSpeculative: false) {
            (update, loaded) throws(LarderError) in
            var ticket = loaded
            guard try body(&update) else {
                for part in update.updates { part.uncountReads() }
                return .dropped
            }
            if let sequence = try update.apply() { ticket = max(ticket, sequence) }
            return .applied(CommitTicket(sequence: ticket))
        } ?? .cold
    }

    /// Copies the entries of a transaction at one instant, for a trial run, or for commands that only read. The caller
    /// runs the commands on these entries without holding locks, so other callers may change the entries in the
    /// meantime. Changes of the copies are never applied. May wait for the disk.
    /// - Returns: also the ticket of the last commit that a reply has to wait for.
    package func speculate(
        _ parts: [TransactionPart], now: Int64, bytesMax: Int
    ) throws(LarderError) -> (update: TransactionUpdate, ticket: CommitTicket) {
        let copies = try withEntries(parts, now: now, bytesMax: bytesMax, .mayBlock, isSpeculative: true) {
            (update, sequence) throws(LarderError) in
            for part in update.updates { for index in part.slots.indices { part.touch(index) } }
            return (update, CommitTicket(sequence: sequence))
        }
        return copies ?? (TransactionUpdate([], []), CommitTicket.none)
    }

    /// Reads the entries of keys of several databases, as of one instant. Calls `body` with these entries, while the
    /// locks of the keys are held.
    /// - Parameter body: also receives the sequence of the last commit that the reply to the client has to wait for.
    /// - Returns: nil if an entry is only on the disk and `access` does not allow reading it.
    private func withEntries<Result>(
        _ parts: [TransactionPart], now: Int64, bytesMax: Int, _ access: Access, isSpeculative: Bool,
        _ body: (inout TransactionUpdate, UInt64) throws(LarderError) -> Result
    ) throws(LarderError) -> Result? {
        try ForkGuard.check("update")
        // Sort the databases by number, which is the order in which they must be locked.
        let parts = parts.sorted { $0.database.number < $1.database.number }
        let updates = parts.map { part in
            let update = Update()
            update.add(part.keys, areDistinct: true)
            update.prepare(
                part.database, now: now, .records, loadedCount: part.loadedCount, bytesMax: bytesMax,
                isSpeculative: isSpeculative)
            return update
        }
        return try Executor.run(updates.map { .passUnretained($0) }, access) { (sequence, _) throws(LarderError) in
            var update = TransactionUpdate(parts, updates)
            return try body(&update, sequence)
        }
    }

    /// Runs one command on keys of two databases, like ``transact(_:now:bytesMax:_:_:)``.
    /// - Returns: `dropped`, without changes, if the command would write to a database whose files are not open.
    package func transact(
        _ first: TransactionPart, and second: TransactionPart, now: Int64, _ access: Access,
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> TransactionEnd {
        try transact([first, second], now: now, bytesMax: .max, access) { (update) throws(LarderError) in
            let own = update.parts[0].database === first.database ? 0 : 1
            try update.update(
                part: own, positions: Array(first.keys.indices), and: 1 - own, Array(second.keys.indices), body)
            return update.withoutFiles.isEmpty
        }
    }
}

extension TransactionUpdate {
    /// Queues the operations as one commit unit, and applies them in memory. Called with the locks held.
    /// - Returns: nil if nothing was changed.
    func apply() throws(LarderError) -> UInt64? {
        var changes: [(update: Update, store: EpochStore)] = []
        // Do everything that may fail before the first change, so that an error changes nothing.
        for update in updates where update.hasChanges {
            let database = update.database
            let store = try database.writableStore(database.applied.presence, "update")
            try database.checkFits(update.storedByteCount, limit: database.applied.diskLimit)
            changes.append((update, store))
        }
        guard let first = changes.first?.update.database else { return nil }
        let context = first.context
        let sequence = first.pipeline.enqueue(context.options.durability) { batch, sequence in
            let noted = batch.changes.count
            for (update, store) in changes { update.write(update.database, into: batch, store, sequence) }
            if changes.count > 1, batch.changes.count > noted {
                batch.changes.order(from: noted, by: changes.flatMap(\.update.steps))
            }
        }
        for (update, _) in changes { update.note(sequence) }
        return sequence
    }
}
