extension Engine {
    /// So often an exchange begins anew because something was written meanwhile.
    private static let exchangeAttempts = 16

    /// Exchanges the entries of two databases, as one commit unit; their policies stay, and governed entries follow that
    /// of the database they come into. May block.
    ///
    /// All entries of both are read and written: it is for small databases, and refused for others.
    /// - Parameters:
    ///   - entriesMax: how many entries both may have together.
    ///   - bytesMax: how many bytes their values may have together.
    /// - Throws: ``LarderError/Code/invalidArgument`` when there are more, ``LarderError/Code/invalidated`` when others
    ///   kept writing.
    package func exchange(_ first: Database, _ second: Database, entriesMax: Int, bytesMax: Int) throws(LarderError) {
        if first === second { return }
        for _ in 0..<Self.exchangeAttempts {
            // Only what has entries gives the other one files.
            let hasFiles = (first: first.exists, second: second.exists)
            if !hasFiles.first, !hasFiles.second { return }
            try first.prepare(forWriting: true)
            try second.prepare(forWriting: true)
            let before = pipeline.everythingApplied
            var room = (entries: entriesMax, bytes: bytesMax)
            var keys = try Self.keys(of: first, &room)
            keys.formUnion(try Self.keys(of: second, &room))
            if let ticket = try exchange(keys, first, second, if: before) { return try pipeline.wait(for: ticket) }
        }
        throw LarderError(
            .invalidated, "other commands kept writing meanwhile; try again", operation: "exchange",
            database: first.name)
    }

    private static func keys(of database: Database, _ room: inout (entries: Int, bytes: Int)) throws(LarderError)
        -> Set<Key>
    {
        var keys: Set<Key> = []
        guard let cursor = try database.cursor() else { return keys }
        while try cursor.next() {
            keys.insert(try cursor.key())
            room.entries -= 1
            room.bytes -= try cursor.payloadCount()
            guard room.entries >= 0, room.bytes >= 0 else {
                throw LarderError(
                    .invalidArgument, "there are too many entries to be exchanged at once", operation: "exchange",
                    database: database.name)
            }
        }
        return keys
    }

    /// Exchanges what two databases have under the keys, if nothing was written since a moment: so there are no others.
    /// - Returns: nil when something was.
    private func exchange(_ keys: Set<Key>, _ first: Database, _ second: Database, if before: CommitTicket)
        throws(LarderError) -> CommitTicket?
    {
        let keys = Array(keys)
        let parts = [first, second].map {
            TransactionPart(database: $0, keys: keys, loadedCount: keys.count, watches: [])
        }
        let end = try transact(parts, now: clock.now(), bytesMax: .max, mayBlock: true) {
            (update) throws(LarderError) in
            // Whoever writes another key from here on comes after the exchange: nobody sees any of these keys before it
            // is done.
            guard pipeline.everythingApplied == before else { return false }
            for position in keys.indices {
                let records = [0, 1].map { update.current(part: $0, position: position) }
                for part in [0, 1] where records[0] != nil || records[1] != nil {
                    try update.update(part: part, positions: [position]) { one in
                        if let record = records[1 - part] { one.place(0, record) } else { one.remove(0) }
                    }
                }
            }
            return true
        }
        guard case .applied(let ticket) = end else { return nil }
        return ticket
    }
}
