extension TransactionUpdate {
    /// One of the keys of a transaction.
    package struct Place {
        package let part: Int
        package let position: Int

        package init(part: Int, position: Int) {
            self.part = part
            self.position = position
        }
    }

    /// Moves or copies an entry to another key or another database. It stays stored when it was, under its deadline rule.
    /// - Parameters:
    ///   - removes: whether the entry is gone from where it was.
    ///   - replaces: whether a fresh entry may be overwritten.
    /// - Returns: whether there was a fresh entry and a place for it.
    package mutating func transfer(
        from source: Place, to target: Place, removes: Bool, replaces: Bool
    ) throws(LarderError) -> Bool {
        guard let record = current(part: source.part, position: source.position),
            replaces || current(part: target.part, position: target.position) == nil
        else { return false }
        if removes { try update(part: source.part, positions: [source.position]) { $0.remove(0) } }
        try update(part: target.part, positions: [target.position]) { $0.place(0, record) }
        return true
    }
}

extension Engine {
    /// Moves or copies the entry of a key to another database, as one commit unit: a crash leaves both as they were or both
    /// changed. The other database must be ready for writing, if there is a fresh entry.
    /// - Parameter bytesMax: how long the records together may be that are read from the disk.
    /// - Returns: whether it was done, and what the answer has to wait for; nil where the disk would have had to be asked
    ///   and must not.
    package func transfer(
        _ key: Key, of source: Database, to target: Database, as targetKey: Key, removes: Bool, replaces: Bool,
        now: Int64, bytesMax: Int, mayBlock: Bool
    ) throws(LarderError) -> (isDone: Bool, ticket: CommitTicket)? {
        precondition(source !== target, "an entry is transferred between two databases")
        let parts = [(source, key), (target, targetKey)].map { database, key in
            TransactionPart(database: database, keys: [key], loadedCount: 1, watches: [])
        }
        var isDone = false
        let end = try transact(parts, now: now, bytesMax: bytesMax, mayBlock: mayBlock) {
            (update) throws(LarderError) in
            // The engine has them in an order of its own.
            let isFirst = update.parts[0].database === source
            let places = [0, 1].map { TransactionUpdate.Place(part: $0, position: 0) }
            isDone = try update.transfer(
                from: places[isFirst ? 0 : 1], to: places[isFirst ? 1 : 0], removes: removes, replaces: replaces)
            return true
        }
        guard case .applied(let ticket) = end else { return nil }
        return (isDone, ticket)
    }
}
