/// What event loops call for commands that are more than one read or one blind write: they run if no disk is needed, and
/// otherwise say so without having done anything, so that the command goes to a thread that may block.
extension Database {
    /// As ``perform(_:loading:now:durability:fillCache:_:)`` if everything the command needs to see is in memory.
    /// - Returns: nil when a key must be read from the disk or files must be opened first; then nothing was done.
    package func performIfHot(
        _ keys: [Key], loading: Bool, now: Int64, durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        // An entry may be evicted between the look and the command, which then reads the disk after all. To be decided
        // under the locks of the command itself.
        if loading, !isHot(keys) { return nil }
        return try perform(keys, loading: loading, now: now, durability: durability, body)
    }

    /// As ``perform(_:loading:now:durability:fillCache:_:)`` for a body that looks at headers and never at payloads: no
    /// payload need be kept in memory while the others are read, however many and large the entries are. May block.
    package func performOnHeaders(
        _ keys: [Key], now: Int64, durability: Durability? = nil, _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket {
        // To be a load of headers, which the engine knows as `Loading.headers`; whole records for now.
        try perform(keys, loading: true, now: now, durability: durability, body)
    }

    /// Whether what is stored under all of `keys` is known without the disk at this moment.
    package func isHot(_ keys: [Key]) -> Bool {
        for key in keys {
            let shard = shard(shardIndex(key))
            let isKnown = shard.lock.withLock {
                switch applied.presence {
                case .absent, .deleted, .shut: true
                case .open: shard.overlay[key] != nil || shard.tier.peek(key) != nil
                case .closed, .failed: shard.overlay[key] != nil
                }
            }
            if !isKnown { return false }
        }
        return true
    }

    /// Reads several keys at one instant if that can be done without the disk.
    /// - Parameters:
    ///   - count: how many keys there are.
    ///   - key: the bytes of each, valid during the call; asked for more than once.
    ///   - ticket: raised to what the answer has to wait for.
    ///   - body: called once for each key in their order, with its fresh entry or nil, unless the result is cold. Locks
    ///     are held meanwhile: copy what is needed, call nothing of the engine.
    /// - Returns: `.cold`, and then `body` was not called, or `.hit`.
    package func readQuickly(
        count: Int, key: (Int) -> UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket,
        _ body: (Int, (header: RecordHeader, payload: UnsafeRawBufferPointer)?) -> Void
    ) throws(LarderError) -> QuickRead {
        try ForkGuard.check("get")
        var keys: [Key] = []
        keys.reserveCapacity(count)
        for index in 0..<count { keys.append(Key(key(index))) }
        let shards = keys.reduce(UInt32(0)) { $0 | 1 << UInt32(shardIndex($1)) }
        lock(shards)
        defer { unlock(shards) }
        var records: [Record?] = []
        records.reserveCapacity(count)
        let state = applied
        var sequence = state.sequence
        for key in keys {
            let shard = shard(shardIndex(key))
            if let pending = shard.overlay[key] {
                sequence = max(sequence, pending.sequence)
                records.append(pending.record)
            } else if case .absent = state.presence {
                records.append(nil)
            } else if case .open = state.presence, let kept = shard.tier.find(key) {
                records.append(kept)
            } else {
                return .cold
            }
        }
        ticket = max(ticket, CommitTicket(sequence: sequence))
        for (index, record) in records.enumerated() {
            guard let record, state.rules.freshness(record.header, now: now) == .fresh else {
                context.statistics.misses.add()
                body(index, nil)
                continue
            }
            context.statistics.hits.add()
            record.withPayload { body(index, (record.header, $0)) }
        }
        return .hit
    }

    private func lock(_ shards: UInt32) {
        var rest = shards
        while rest != 0 {
            shard(rest.trailingZeroBitCount).lock.lock()
            rest &= rest - 1
        }
    }

    private func unlock(_ shards: UInt32) {
        var rest = shards
        while rest != 0 {
            shard(rest.trailingZeroBitCount).lock.unlock()
            rest &= rest - 1
        }
    }
}

extension Engine {
    /// The engine's clock, for those who ask it so often that the way to it counts.
    package var clock: EngineTime { context.time }
}
