/// The fresh entries of several keys at one instant. Long entries are pinned in memory while this object exists, so
/// that they can be read without a lock. For use by one thread at a time.
package final class HeldEntries {
    private enum Item {
        case none
        case record(Record)
        case pinned(Shard, EntryPointer, RecordView)

        /// Pins a long entry in memory, or copies a short one. Called with the lock of its shard held.
        init(_ update: Update, _ index: Int) {
            let slot = update.slots[update.slot(index)].pointee
            let database = update.database
            if slot.isFresh, let entry = slot.entry,
                slot.stored.byteCount >= database.context.options.pinnedBytesMin, entry.pin()
            {
                self = .pinned(database.shards[Shard.index(slot.hash)], entry, slot.stored.view)
            } else {
                self = update.current(index).map { .record($0) } ?? .none
            }
        }

        var header: RecordHeader? {
            switch self {
            case .none: nil
            case .record(let record): record.header
            case .pinned(_, _, let record): record.header
            }
        }

        var payloadCount: Int {
            switch self {
            case .none: 0
            case .record(let record): record.payloadCount
            case .pinned(_, _, let record): record.payload.count
            }
        }

        /// Called with the shard's lock held.
        func unpin() { if case .pinned(_, let entry, _) = self { entry.unpin() } }
    }

    private let items: [Item]
    /// The freshness rules of the database at the time of the lookup.
    package let rules: FreshnessRules

    /// Reads several keys at one instant. Their shards are locked only for the lookup: long entries in memory are not
    /// copied. Entries read from the disk are not kept in memory. Does not count hits and misses: the caller has
    /// counted them with ``Database/read(_:now:_:below:fillCache:ticket:holding:_:)`` for each key. May block.
    /// - Parameters:
    ///   - bytesMax: the maximum number of bytes to read from the disk.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    /// - Throws: `invalidArgument` if more than `bytesMax` bytes would have to be read from the disk.
    package init(
        _ keys: [Key], in database: Database, now: Int64, bytesMax: Int, ticket: inout CommitTicket
    ) throws(LarderError) {
        try ForkGuard.check("get")
        let update = Update.take()
        defer { update.giveBack() }
        update.add(keys)
        update.prepare(database, now: now, .records, bytesMax: bytesMax)
        let held = try Executor.run(update.alone, .mayBlock) {
            (sequence, _) throws(LarderError) -> ([Item], FreshnessRules)? in
            ticket = max(ticket, CommitTicket(sequence: sequence))
            return (keys.indices.map { Item(update, $0) }, update.rules)
        }
        guard let held else { preconditionFailure("a blocking read did not finish") }
        (items, rules) = held
    }

    deinit {
        for item in items {
            if case .pinned(let shard, _, _) = item { shard.lock.withLock { item.unpin() } }
        }
    }

    package var count: Int { items.count }

    /// The total length of the payloads in bytes.
    package var payloadBytes: Int { items.reduce(0) { $0 + $1.payloadCount } }

    /// The header of the fresh entry of the key at `index`; nil if there is none.
    package func header(_ index: Int) -> RecordHeader? { items[index].header }

    /// Passes the payload of a fresh entry, or nil if there is none, to `body`. The payload is valid during that call.
    package func withPayload(_ index: Int, _ body: (UnsafeRawBufferPointer?) -> Void) {
        switch items[index] {
        case .none: body(nil)
        case .record(let record): record.withPayload { body($0) }
        case .pinned(_, _, let record): body(record.payload)
        }
    }
}
