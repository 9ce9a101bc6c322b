/// What event loops call for commands that are more than one read or one blind write: they run if no disk is needed, and
/// otherwise say so without having done anything, so that the command goes to a thread that may block.
extension Database {
    /// As ``perform(_:loading:now:durability:fillCache:_:)`` if everything the command needs to see is in memory.
    /// - Returns: nil when a key must be read from the disk or files must be opened first; then nothing was done.
    package func performInMemory(
        _ keys: [Key], loading: Bool, now: Int64, durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        var request = Request(
            keys: keys, loading: loading ? .records : .none, now: now, durability: durability, needsFiles: false)
        request.onlyInMemory = true
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

    /// Reads several keys at one instant if that can be done without the disk.
    /// - Parameters:
    ///   - count: how many keys there are, at least one.
    ///   - key: the bytes of each, valid during the call; asked for more than once.
    ///   - bytesMax: where the entries have more together, they are not read here.
    ///   - ticket: raised to what the answer has to wait for.
    ///   - body: called once for each key in their order, with its fresh entry or nil, unless the result is cold. Locks
    ///     are held meanwhile: copy what is needed, call nothing of the engine.
    /// - Returns: `.cold`, and then `body` was not called, or `.hit`.
    package func readInMemory(
        count: Int, key: (Int) -> UnsafeRawBufferPointer, now: Int64, below bytesMax: Int, ticket: inout CommitTicket,
        _ body: (Int, (header: RecordHeader, payload: UnsafeRawBufferPointer)?) -> Void
    ) throws(LarderError) -> MemoryRead {
        try ForkGuard.check("get")
        return withUnsafeTemporaryAllocation(of: Found.self, capacity: count) { found in
            var locked: UInt32 = 0
            for index in 0..<count {
                let hash = Key.hash(key(index))
                locked |= DatabaseShards.bit(hash)
                found.initializeElement(at: index, to: Found(hash: hash))
            }
            shards.lock(locked)
            defer { shards.unlock(locked) }
            var sequence = applied.sequence
            guard find(key, now, found, &sequence, below: bytesMax) else { return .cold }
            ticket = max(ticket, CommitTicket(sequence: sequence))
            for index in 0..<count { handOver(found[index], index, body) }
            return .hit
        }
    }

    /// What was found of one key. Valid while the locks are held.
    private struct Found {
        let hash: Int
        var entry: EntryPointer?
        /// Nil for an entry that is not fresh.
        var header: RecordHeader?

        init(hash: Int) { self.hash = hash }
    }

    /// Finds every key, with the locks held of all their shards.
    /// - Returns: false when only the disk can tell of one, they are too long, or one cannot be read, which the slow way
    ///   complains of.
    private func find(
        _ key: (Int) -> UnsafeRawBufferPointer, _ now: Int64, _ found: UnsafeMutableBufferPointer<Found>,
        _ sequence: inout UInt64, below bytesMax: Int
    ) -> Bool {
        switch applied.presence {
        case .absent: return true
        case .open: break
        case .closed, .failed, .deleted, .shut: return false
        }
        var room = bytesMax
        for index in found.indices {
            let hash = found[index].hash
            guard let entry = shards[Shard.index(hash)].table.find(key(index), hash: hash) else { return false }
            sequence = max(sequence, undecided(entry))
            guard let record = entry.record else { continue }
            guard let header = try? RecordHeader(parsing: record) else { return false }
            let freshness = applied.rules.freshness(header, now: now)
            guard freshness == .fresh else {
                if freshness == .expired { shards[Shard.index(hash)].foundExpired(entry) }
                continue
            }
            room -= record.count
            if room < 0 { return false }
            found[index].entry = entry
            found[index].header = header
        }
        return true
    }

    private func handOver(
        _ found: Found, _ index: Int, _ body: (Int, (header: RecordHeader, payload: UnsafeRawBufferPointer)?) -> Void
    ) {
        let shard = shards[Shard.index(found.hash)]
        guard let entry = found.entry, let header = found.header, let record = entry.record else {
            shard.counters.misses += 1
            return body(index, nil)
        }
        shard.table.touch(entry)
        shard.counters.hits += 1
        body(index, (header, UnsafeRawBufferPointer(rebasing: record.dropFirst(header.byteCount))))
    }
}
