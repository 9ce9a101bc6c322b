extension Engine {
    /// Exchanges the fresh entries of two databases in one commit unit. The databases keep their policies. Governed
    /// entries (entries whose deadline follows from the policy) follow the policy of their new database: see
    /// ``FreshnessRules/taking(_:)``. Stale entries are removed. Leases and remembered negative results of origins end,
    /// because otherwise they could be applied to the new entries. May block.
    ///
    /// The exchange reads and writes all entries of both databases, so it is limited to small databases. Other writers
    /// wait only during the last step, and cannot delay the exchange without limit.
    /// - Parameters:
    ///   - entriesMax: the maximum number of entries in both databases together.
    ///   - bytesMax: the maximum total length of the values in both databases, in bytes.
    /// - Throws: ``LarderError/Code/invalidArgument`` if a maximum is exceeded; ``LarderError/Code/conflict`` if entries
    ///   are evicted all the time. After any error, both databases are unchanged.
    package func exchange(_ first: Database, _ second: Database, entriesMax: Int, bytesMax: Int) throws(LarderError) {
        if first === second { return }
        let ticket = try context.exchanging.withLock { () throws(LarderError) -> CommitTicket in
            // If neither database has files, there is nothing to exchange, and no files have to be created.
            if !first.exists, !second.exists {
                for database in [first, second] { database.leases.end(prefix: []) }
                return .none
            }
            try first.prepareToWrite()
            try second.prepareToWrite()
            for _ in 0..<Exchange.attempts {
                for database in [first, second] { try database.dropEvictedFromJournal() }
                let exchange = Exchange(first, second, Exchange.Room(entries: entriesMax, bytes: bytesMax))
                if let ticket = try exchange.run(now: now()) { return ticket }
            }
            throw LarderError(
                .conflict, "entries were evicted during each of \(Exchange.attempts) attempts; try again later",
                operation: "exchange", database: first.name)
        }
        try pipeline.wait(for: ticket)
    }
}

/// One exchange of the entries of two databases. Collects the keys of both while other writers continue, and records
/// the keys that these writers change. The last step locks all shards (parts of a database with one lock each) of both
/// databases, and exchanges the collected and the recorded keys. Confined to one thread.
private final class Exchange {
    /// How often an exchange is tried.
    static let attempts = 10

    struct Room {
        var entries: Int
        var bytes: Int
    }

    private let first: Database
    private let second: Database
    private var room: Room

    init(_ first: Database, _ second: Database, _ room: Room) {
        (self.first, self.second, self.room) = (first, second, room)
    }

    /// - Returns: nil, without an exchange, if the journal may have evicted entries: a crash would restore them in their
    ///   previous database.
    func run(now: Int64) throws(LarderError) -> CommitTicket? {
        for database in [first, second] { database.recordKeys(true) }
        defer { for database in [first, second] { database.recordKeys(false) } }
        var found = try collect(first)
        found.formUnion(try collect(second))
        let keys = Array(found)
        let updates = [first, second].map { database in
            let update = Update()
            update.add(keys, areDistinct: true)
            update.prepare(database, now: now, .records, fillCache: false)
            update.locksAllShards = true
            return update
        }
        let inOrder = first.number < second.number ? updates : updates.reversed()
        let ticket = try Executor.run(inOrder.map { .passUnretained($0) }, .mayBlock) {
            (sequence, _) throws(LarderError) -> CommitTicket?? in
            if [first, second].contains(where: { $0.isEvictedInJournal.load(ordering: .relaxed) }) {
                return .some(nil)
            }
            return try exchange(updates[0], updates[1], found, sequence).map { .some($0) }
        }
        guard let ticket else { preconditionFailure("a blocking exchange did not finish") }
        return ticket
    }

    private func collect(_ database: Database) throws(LarderError) -> Set<Key> {
        var keys: Set<Key> = []
        while true {
            do throws(LarderError) {
                let options = EnumerationOptions(includeExpired: true)
                guard let cursor = try database.cursor(options) else { return keys }
                while try cursor.next() {
                    let rules = database.rules
                    if rules.freshness(try cursor.header(), now: database.now()) == .gone { continue }
                    keys.insert(try cursor.key())
                    try take(1, try cursor.payloadCount())
                }
                return keys
            } catch {
                // The database was purged or reopened in the meantime. Collect its present keys again.
                guard error.code == .purged || error.code == .invalidated else { throw error }
                room.entries += keys.count
                keys = []
            }
        }
    }

    private func take(_ entries: Int, _ bytes: Int) throws(LarderError) {
        room.entries -= entries
        room.bytes -= bytes
        guard room.entries >= 0, room.bytes >= 0 else {
            throw LarderError(
                .invalidArgument, "too many entries to exchange at once", operation: "exchange",
                database: first.name)
        }
    }

    /// Runs the last step of the exchange. Called with all shards of both databases locked.
    /// - Returns: nil if the files of a database must be opened first.
    private func exchange(
        _ update: Update, _ other: Update, _ known: Set<Key>, _ loaded: UInt64
    ) throws(LarderError) -> CommitTicket? {
        var ticket = loaded
        let late = Array(first.recordedKeys.union(second.recordedKeys).subtracting(known))
        for update in [update, other] {
            update.addLate(late)
            // The recorded keys were written just now, so their entries are in memory. The other database's entries
            // with these keys may have to be read from the disk, with the locks held.
            guard try update.findLate(from: known.count, &ticket) else { return nil }
        }
        for position in known.count..<(known.count + late.count) {
            for record in [update.current(position), other.current(position)].compactMap(\.self) {
                try take(1, record.payload.count)
            }
        }
        for position in 0..<(known.count + late.count) {
            let (mine, theirs) = (update.current(position), other.current(position))
            // Remove a stored entry (fresh or stale) that no entry of the other database replaces.
            if let theirs {
                update.place(position, theirs)
            } else if update.isStored(position) {
                update.remove(position)
            }
            if let mine { other.place(position, mine) } else if other.isStored(position) { other.remove(position) }
        }
        let parts = [first, second].map { TransactionPart(database: $0, keys: [], loadedCount: 0, watches: []) }
        let sequence = try TransactionUpdate(parts, [update, other]).apply()
        // End the leases of all keys, including keys that neither database has.
        for database in [first, second] { for shard in database.shards.all { shard.leases?.changed(prefix: []) } }
        return CommitTicket(sequence: max(ticket, sequence ?? 0))
    }
}

extension Database {
    /// Starts or stops recording the keys that writers change.
    fileprivate func recordKeys(_ isOn: Bool) {
        shards.withAllLocked { for shard in shards.all { shard.recordedKeys = isOn ? [] : nil } }
    }

    /// The keys that writers have changed since the recording began. Called with all shard locks held.
    fileprivate var recordedKeys: Set<Key> {
        shards.all.reduce(into: []) { $0.formUnion($1.recordedKeys ?? []) }
    }
}
