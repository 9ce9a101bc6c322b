/// What event loops call for commands that are more than one read or one blind write: they run if no disk is needed, and
/// otherwise say so without having done anything, so that the command goes to a thread that may block.
extension Database {
    /// As ``perform(_:loading:now:durability:fillCache:_:)`` if everything the command needs to see is in memory.
    /// - Returns: nil when a key must be read from the disk or files must be opened first; then nothing was done.
    package func performIfHot(
        _ keys: [Key], loading: Bool, now: Int64, durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        var request = Request(
            keys: keys, loading: loading ? .records : .none, now: now, durability: durability, needsFiles: false)
        request.onlyIfHot = true
        return try run(request, body)
    }

    /// As ``perform(_:loading:now:durability:fillCache:_:)`` for a body that looks at headers and never at payloads: no
    /// payload need be kept in memory while the others are read, however many and large the entries are. May block.
    package func performOnHeaders(
        _ keys: [Key], now: Int64, durability: Durability? = nil, _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket {
        var isReadable = true
        let request = Request(keys: keys, loading: .headers, now: now, durability: durability, needsFiles: false)
        let ticket = try run(request) { (update) throws(LarderError) in
            isReadable = update.unreadable.isEmpty
            if isReadable { try body(&update) }
        }
        if isReadable, let ticket { return ticket }
        // Says what cannot be read, as a load of records does.
        return try perform(keys, loading: true, now: now, durability: durability, body)
    }

    /// Whether what is stored under all of `keys` is known without the disk at this moment.
    package func isHot(_ keys: [Key]) -> Bool {
        for key in keys {
            let shard = shard(shardIndex(key))
            let isKnown = shard.lock.withLock {
                switch applied.presence {
                case .absent, .deleted, .shut: true
                case .open: shard.find(key) != nil
                case .closed, .failed: false
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
        var result = QuickRead.hit
        withUnsafeTemporaryAllocation(of: Int.self, capacity: max(1, count)) { hashes in
            var shards: UInt32 = count == 0 ? 1 : 0
            for index in 0..<count {
                hashes[index] = Key.hash(key(index))
                shards |= 1 << UInt32(Shard.index(hashes[index]))
            }
            lock(shards)
            defer { unlock(shards) }
            result = readLocked(hashes, count, key, now, &ticket, body)
        }
        return result
    }

    /// Called with the locks held of all shards that `hashes` are of.
    private func readLocked(
        _ hashes: UnsafeMutableBufferPointer<Int>, _ count: Int, _ key: (Int) -> UnsafeRawBufferPointer, _ now: Int64,
        _ ticket: inout CommitTicket, _ body: (Int, (header: RecordHeader, payload: UnsafeRawBufferPointer)?) -> Void
    ) -> QuickRead {
        var sequence = applied.sequence
        if case .absent = applied.presence {
            for index in 0..<count {
                shard(Shard.index(hashes[index])).counters.misses += 1
                body(index, nil)
            }
            ticket = max(ticket, CommitTicket(sequence: sequence))
            return .hit
        }
        guard case .open = applied.presence else { return .cold }
        // All of them first: a cold one must leave no trace of the others.
        for index in 0..<count {
            let table = shard(Shard.index(hashes[index])).table
            guard let entry = table.find(key(index), hash: hashes[index]) else { return .cold }
            if let record = entry.record, (try? RecordHeader(parsing: record)) == nil { return .cold }
            sequence = max(sequence, undecided(entry))
        }
        ticket = max(ticket, CommitTicket(sequence: sequence))
        for index in 0..<count {
            let shard = shard(Shard.index(hashes[index]))
            guard let entry = shard.table.find(key(index), hash: hashes[index]), let record = entry.record,
                let header = try? RecordHeader(parsing: record),
                applied.rules.freshness(header, now: now) == .fresh
            else {
                shard.counters.misses += 1
                body(index, nil)
                continue
            }
            shard.table.touch(entry)
            shard.counters.hits += 1
            body(index, (header, UnsafeRawBufferPointer(rebasing: record.dropFirst(header.byteCount))))
        }
        return .hit
    }
}

extension Engine {
    /// The engine's clock, for those who ask it so often that the way to it counts.
    package var clock: EngineTime { context.time }
}
