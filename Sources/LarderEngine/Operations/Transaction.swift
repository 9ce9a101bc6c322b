/// What a transaction does in one database.
package struct TransactionPart {
    package let database: Database
    /// All different. The first ``loadedCount`` are read, the others are overwritten whatever is there.
    package let keys: [Key]
    package let loadedCount: Int
    package let watches: [KeyWatch]

    package init(database: Database, keys: [Key], loadedCount: Int, watches: [KeyWatch]) {
        precondition(loadedCount >= 0 && loadedCount <= keys.count, "a transaction cannot read more keys than it has")
        self.database = database
        self.keys = keys
        self.loadedCount = loadedCount
        self.watches = watches
    }
}

/// The entries of a transaction, in all databases it touches, at one instant.
///
/// Valid only inside the closure of ``Engine/transact(_:now:bytesMax:mayBlock:_:)``.
package struct TransactionUpdate {
    package let parts: [TransactionPart]
    private var updates: [Update]
    /// Commands so far, each counting as one for each of its databases.
    private var steps = 0

    fileprivate init(_ parts: [TransactionPart], _ updates: [Update]) {
        self.parts = parts
        self.updates = updates
    }

    /// Whether nothing happened to the watched keys. Which are among the keys that are read.
    package var watchesHold: Bool {
        for (part, update) in zip(parts, updates) where !part.watches.isEmpty {
            var positions: [Key: Int] = [:]
            for (position, key) in part.keys.enumerated() { positions[key] = position }
            for watch in part.watches {
                let isFresh = positions[watch.key].map { update.current($0) != nil } ?? false
                if !watch.holds(isFresh: isFresh) { return false }
            }
        }
        return true
    }

    /// By which the entries of a part are judged.
    package func rules(part: Int) -> FreshnessRules { updates[part].rules }

    /// The fresh entry of a key, as left by what the transaction did so far.
    package func current(part: Int, position: Int) -> Record? { updates[part].current(position) }

    /// Runs one command on some of a part's keys. What `body` throws undoes what that command did, and nothing else.
    package mutating func update(
        part: Int, positions: [Int], _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        begin(part)
        try updates[part].narrowed(to: positions, body)
    }

    private mutating func begin(_ part: Int) {
        steps += 1
        updates[part].step = steps
    }

    /// As ``update(part:positions:_:)`` for keys of two different parts.
    package mutating func update(
        part: Int, positions: [Int], and other: Int, _ otherPositions: [Int],
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        precondition(part != other, "two parts are needed")
        // What leaves one database is told of before it comes into the other.
        begin(part)
        begin(other)
        // Taken out, so that both can be changed at once.
        var otherUpdate = updates[other]
        defer { updates[other] = otherUpdate }
        try updates[part].narrowed(to: positions) { (update) throws(LarderError) in
            try otherUpdate.narrowed(to: otherPositions) { (narrowed) throws(LarderError) in
                try body(&update, &narrowed)
            }
        }
    }

    /// What is to be done, by part.
    fileprivate var operations: [[CommitOperation]] { updates.map(\.operations) }
}

/// How a transaction ended.
package enum TransactionEnd {
    /// What was done is applied, and is one commit unit.
    case applied(CommitTicket)
    /// The body said that nothing is to be done.
    case dropped
    /// The disk would have had to be asked and may not; the body was not called.
    case cold
}

extension Engine {
    /// Runs commands on keys of several databases: everything they read and write happens at one instant, and what they
    /// write is one commit unit.
    ///
    /// As ``Database/update(_:loading:now:durability:fillCache:_:)`` does it for one database.
    /// - Parameters:
    ///   - parts: one for each database. Those that are written must be ready for writing.
    ///   - now: the time of all commands.
    ///   - bytesMax: how long the records together may be that are read from the disk.
    ///   - mayBlock: whether the disk may be asked.
    ///   - body: called at most once, with the locks held. Must not block, must not call the engine. Says whether what it
    ///     did is to be applied; what it throws undoes everything.
    package func transact(
        _ parts: [TransactionPart], now: Int64, bytesMax: Int, mayBlock: Bool,
        _ body: (inout TransactionUpdate) throws(LarderError) -> Bool
    ) throws(LarderError) -> TransactionEnd {
        try ForkGuard.check("update")
        // The order of locks.
        let parts = parts.sorted { $0.database.number < $1.database.number }
        let shards = parts.map { $0.database.shardSet($0.keys) }
        let read = parts.map { Array($0.keys[..<$0.loadedCount]) }
        var cold = parts.map { ColdReads(count: $0.loadedCount, fillCache: true, bytesMax: bytesMax) }
        defer { for index in parts.indices { parts[index].database.forget(read[index], &cold[index]) } }
        var attempt = 0
        while true {
            attempt += 1
            if mayBlock {
                for (index, part) in parts.enumerated() {
                    try part.database.readCold(read[index], .records, &cold[index], attempt: attempt)
                }
            }
            for (index, part) in parts.enumerated() { part.database.lock(shards[index]) }
            defer { for (index, part) in parts.enumerated() { part.database.unlock(shards[index]) } }

            var ticket: UInt64 = 0
            var updates: [Update] = []
            for (index, part) in parts.enumerated() {
                let state = part.database.applied
                ticket = max(ticket, state.sequence)
                guard
                    let found = try part.database.gather(
                        read[index], .records, &cold[index], attempt: attempt, now: now, ticket: &ticket)
                else { break }
                let unread = Array(repeating: ColdReads.Value.record(nil), count: part.keys.count - part.loadedCount)
                updates.append(try Update(part.keys, slots: nil, now, state, .records, found + unread))
            }
            guard updates.count == parts.count else {
                if mayBlock { continue }
                return .cold
            }
            var update = TransactionUpdate(parts, updates)
            guard try body(&update) else { return .dropped }
            if let sequence = try apply(update) { ticket = max(ticket, sequence) }
            return .applied(CommitTicket(sequence: ticket))
        }
    }

    /// Queues what a transaction did as one unit, and applies it. Called with the locks held.
    /// - Returns: nil when it changed nothing.
    private func apply(_ update: TransactionUpdate) throws(LarderError) -> UInt64? {
        var changes: [(database: Database, store: EpochStore, operations: [CommitOperation])] = []
        // Everything that may be refused comes before anything is done.
        for (part, operations) in zip(update.parts, update.operations) where !operations.isEmpty {
            let store = try part.database.writableStore(part.database.applied, "update")
            changes.append((part.database, store, operations))
        }
        guard !changes.isEmpty else { return nil }
        let sequence = pipeline.enqueue(options.durability) { batch, sequence in
            let noted = batch.changes.count
            for change in changes { change.database.write(change.operations, into: batch, change.store, sequence) }
            if changes.count > 1 {
                batch.orderChanges(
                    from: noted, by: changes.flatMap { $0.operations.filter { !$0.note.isUnseen }.map(\.note.step) })
            }
        }
        for change in changes { change.database.note(change.operations, sequence) }
        return sequence
    }
}
