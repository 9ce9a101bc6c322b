extension Engine {
    /// Runs commands on keys of several databases: all their reads and writes happen at one instant, and their writes
    /// are one commit unit.
    ///
    /// Like ``Database/perform(_:_:_:now:fillCache:_:)`` for several databases.
    /// - Parameters:
    ///   - parts: one for each database. Databases that are written must be ready for writing.
    ///   - now: the time of all commands.
    ///   - bytesMax: the maximum total length of the records that are read from the disk, in bytes.
    ///   - body: called at most once, with the locks held. Must not block, and must not call the engine. Returns
    ///     whether to apply its changes; an error undoes everything.
    package func transact(
        _ parts: [TransactionPart], now: Int64, bytesMax: Int, _ access: Access,
        _ body: (inout TransactionUpdate) throws(LarderError) -> Bool
    ) throws(LarderError) -> TransactionEnd {
        try withEntries(parts, now: now, bytesMax: bytesMax, access, isSpeculative: false) {
            (update, loaded) throws(LarderError) in
            var ticket = loaded
            guard try body(&update) else { return .dropped }
            if let sequence = try update.apply() { ticket = max(ticket, sequence) }
            return .applied(CommitTicket(sequence: ticket))
        } ?? .cold
    }

    /// Reads the entries of a transaction that is run tentatively without locks. Its commands run on these entries,
    /// which other callers may change in the meantime, and nothing is ever applied. May wait for the disk.
    package func speculate(
        _ parts: [TransactionPart], now: Int64, bytesMax: Int
    ) throws(LarderError) -> TransactionUpdate {
        let update = try withEntries(parts, now: now, bytesMax: bytesMax, .mayBlock, isSpeculative: true) {
            (update, _) throws(LarderError) in update
        }
        return update ?? TransactionUpdate([], [])
    }

    /// Calls `body` with the entries of the keys of several databases at one instant, and with the locks of the keys
    /// held.
    /// - Parameter body: also receives the sequence of the last commit that its reply has to wait for.
    /// - Returns: nil if the disk was needed but not allowed.
    private func withEntries<Result>(
        _ parts: [TransactionPart], now: Int64, bytesMax: Int, _ access: Access, isSpeculative: Bool,
        _ body: (inout TransactionUpdate, UInt64) throws(LarderError) -> Result
    ) throws(LarderError) -> Result? {
        try ForkGuard.check("update")
        // In the order of locks.
        let parts = parts.sorted { $0.database.number < $1.database.number }
        let updates = parts.map { part in
            let update = Update()
            update.add(part.keys, areDistinct: true)
            update.prepare(
                part.database, now: now, .records, loadedCount: part.loadedCount, bytesMax: bytesMax,
                isSpeculative: isSpeculative)
            return update
        }
        return try Executor.run(updates, access) { (sequence, _) throws(LarderError) in
            var update = TransactionUpdate(parts, updates)
            return try body(&update, sequence)
        }
    }

    /// Like ``transact(_:now:bytesMax:_:_:)``, for one command on keys of two databases.
    /// - Returns: `dropped`, without an effect, if the command would write to a database without open files.
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
    /// Queues the operations as one unit, and applies them. Called with the locks held.
    /// - Returns: nil if nothing was changed.
    func apply() throws(LarderError) -> UInt64? {
        var changes: [(update: Update, store: EpochStore)] = []
        // All steps that may fail come before the first change.
        for update in updates where update.hasChanges {
            let database = update.database
            let store = try database.writableStore(database.applied, "update")
            try database.checkFits(update.storedByteCount, limit: database.applied.diskLimit)
            changes.append((update, store))
        }
        guard let first = changes.first?.update.database else { return nil }
        let context = first.context
        let sequence = first.pipeline.enqueue(context.options.durability) { batch, sequence in
            let list = context.changes.isOn ? batch.changes : nil
            let noted = list?.count ?? 0
            for (update, store) in changes { update.write(update.database, into: batch, store, sequence) }
            if changes.count > 1 {
                list?.order(from: noted, by: changes.flatMap(\.update.steps))
            }
        }
        for (update, _) in changes { update.note(sequence) }
        return sequence
    }
}
