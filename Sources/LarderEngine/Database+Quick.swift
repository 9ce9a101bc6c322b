/// How a read that may not touch the disk ended.
package enum QuickRead: Sendable {
    /// There is a fresh entry, and it was handed over.
    case hit
    /// There is no fresh entry.
    case miss
    /// Only the disk can tell: ask with ``Database/read(_:now:fillCache:)`` on a thread that may block.
    case cold
}

/// What an event loop calls for the commonest commands: without the disk, and without making a ``Key`` or a ``Record``
/// for the caller.
extension Database {
    /// Reads the fresh entry of a key if that can be done without the disk.
    /// - Parameters:
    ///   - ticket: raised to what the answer has to wait for.
    ///   - body: called once, on a hit, with the header and the payload. The shard's lock is held meanwhile: copy what is
    ///     needed, call nothing of the engine.
    package func readQuickly(
        _ key: UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket,
        _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(LarderError) -> QuickRead {
        try readQuickly(key, now: now, ticket: &ticket) { (header, payload, _) in body(header, payload) }
    }

    /// As ``readQuickly(_:now:ticket:_:)``, and tells `body` the version of the entry, by which an object can be attached
    /// to it; 0 where none can be.
    package func readQuickly(
        _ key: UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket,
        _ body: (RecordHeader, UnsafeRawBufferPointer, _ version: UInt64) -> Void
    ) throws(LarderError) -> QuickRead {
        try ForkGuard.check("get")
        let key = Key(key)
        let shard = shard(shardIndex(key))
        shard.lock.lock()
        defer { shard.lock.unlock() }
        let state = applied
        var sequence = state.sequence
        let record: Record?
        var version: UInt64 = 0
        if let pending = shard.overlay[key] {
            sequence = max(sequence, pending.sequence)
            record = pending.record
        } else if case .absent = state.presence {
            record = nil
        } else if case .open = state.presence, let kept = shard.tier.find(key) {
            record = kept
            version = shard.tier.version(key)
        } else {
            return .cold
        }
        ticket = max(ticket, CommitTicket(sequence: sequence))
        guard let record, state.rules.freshness(record.header, now: now) == .fresh else {
            context.statistics.misses.add()
            return .miss
        }
        context.statistics.hits.add()
        record.withPayload { body(record.header, $0, version) }
        return .hit
    }

    /// Stores a payload without looking at what is there. The database must be ready for writing.
    /// - Parameter durability: for this write, instead of the larder's.
    /// - Returns: what the answer has to wait for.
    package func setBlindly(
        _ key: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer, rule: DeadlineRule = .governed,
        codec: Codec = .raw, now: Int64, durability: Durability? = nil
    ) throws(LarderError) -> CommitTicket {
        try perform([Key(key)], loading: false, now: now, durability: durability) { update in
            update.put(0, payload: payload, rule: rule, codec: codec)
        }
    }
}
