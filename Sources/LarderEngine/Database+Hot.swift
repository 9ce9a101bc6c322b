/// What event loops call for commands that are more than one read or one blind write, besides
/// ``Database/performIfHot(_:loading:now:durability:_:)``.
extension Database {
    /// Reads several keys at one instant if that can be done without the disk.
    /// - Parameters:
    ///   - count: how many keys there are, at least one.
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
        return withUnsafeTemporaryAllocation(of: Found.self, capacity: count) { found in
            var shards: UInt32 = 0
            for index in 0..<count {
                let hash = Key.hash(key(index))
                shards |= 1 << UInt32(Shard.index(hash))
                found.initializeElement(at: index, to: Found(hash: hash))
            }
            lock(shards)
            defer { unlock(shards) }
            var sequence = applied.sequence
            guard find(key, now, found, &sequence) else { return .cold }
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
    /// - Returns: false when only the disk can tell of one, or one cannot be read, which the slow way complains of.
    private func find(
        _ key: (Int) -> UnsafeRawBufferPointer, _ now: Int64, _ found: UnsafeMutableBufferPointer<Found>,
        _ sequence: inout UInt64
    ) -> Bool {
        switch applied.presence {
        case .absent: return true
        case .open: break
        case .closed, .failed, .deleted, .shut: return false
        }
        for index in found.indices {
            let hash = found[index].hash
            guard let entry = shard(Shard.index(hash)).table.find(key(index), hash: hash) else { return false }
            sequence = max(sequence, undecided(entry))
            guard let record = entry.record else { continue }
            guard let header = try? RecordHeader(parsing: record) else { return false }
            guard applied.rules.freshness(header, now: now) == .fresh else { continue }
            found[index].entry = entry
            found[index].header = header
        }
        return true
    }

    private func handOver(
        _ found: Found, _ index: Int, _ body: (Int, (header: RecordHeader, payload: UnsafeRawBufferPointer)?) -> Void
    ) {
        let shard = shard(Shard.index(found.hash))
        guard let entry = found.entry, let header = found.header, let record = entry.record else {
            shard.counters.misses += 1
            return body(index, nil)
        }
        shard.table.touch(entry)
        shard.counters.hits += 1
        body(index, (header, UnsafeRawBufferPointer(rebasing: record.dropFirst(header.byteCount))))
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
