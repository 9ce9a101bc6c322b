/// One of several fresh entries in memory. Valid while the locks are held.
package struct EntryInMemory {
    package let header: RecordHeader
    package let payload: UnsafeRawBufferPointer
    /// The attached object. Call ``Attachment/touch()`` when you use it.
    package let attachment: Attachment?
    /// The version for attaching an object.
    package let version: UInt64
}

/// Reads of several keys at one instant from memory. If the disk is needed, they do nothing and return `.cold`; the
/// command must then run on a thread that may block.
extension Database {
    /// Reads several keys.
    /// - Parameters:
    ///   - count: the number of keys, at least one.
    ///   - key: returns the bytes of each key, valid during the call; called more than once.
    ///   - bytesMax: the maximum total length of the entries. If they are longer, the result is `.cold`.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - body: called once for each key in order, with its fresh entry or nil, unless the result is `.cold`. Called
    ///     with locks held: copy the data that you need, and do not call the engine.
    /// - Returns: `.hit`, or `.cold` without any call of `body`.
    package func readManyInMemory(
        count: Int, key: (Int) -> UnsafeRawBufferPointer, now: Int64, below bytesMax: Int, ticket: inout CommitTicket,
        _ body: (Int, EntryInMemory?) -> Void
    ) throws(LarderError) -> MemoryRead {
        try ForkGuard.check("get")
        return readTogether(count, now, below: bytesMax, &ticket) {
            Key.hash(key($0))
        } find: { shard, index, hash in
            shard.table.find(key(index), hash: hash)
        } isAbsent: { shard, index, hash in
            isAbsentBelow(shard, key(index), hash)
        } handOver: {
            body($0, $1)
        }
    }

    /// Like ``readManyInMemory(count:key:now:below:ticket:_:)``, without a limit on the length of the entries.
    package func readManyInMemory(
        _ keys: [Key], now: Int64, ticket: inout CommitTicket, _ body: (Int, EntryInMemory?) -> Void
    ) throws(LarderError) -> MemoryRead {
        try ForkGuard.check("get")
        return readTogether(keys.count, now, below: .max, &ticket) {
            keys[$0].hash
        } find: { shard, index, _ in
            fetchAhead(keys, index)
            return shard.find(keys[index])
        } isAbsent: { shard, index, hash in
            keys[index].withBytes { isAbsentBelow(shard, $0, hash) }
        } handOver: {
            body($0, $1)
        }
    }

    /// The result of looking up one key. Valid while the locks are held.
    private struct Found {
        let hash: Int
        var entry: EntryPointer?
        /// nil for an entry that is not fresh.
        var header: RecordHeader?

        init(hash: Int) { self.hash = hash }
    }

    @inline(__always)
    private func readTogether(
        _ count: Int, _ now: Int64, below bytesMax: Int, _ ticket: inout CommitTicket, hash: (Int) -> Int,
        find: (Shard, Int, Int) -> EntryPointer?, isAbsent: (Shard, Int, Int) -> Bool,
        handOver: (Int, EntryInMemory?) -> Void
    ) -> MemoryRead {
        withUnsafeTemporaryAllocation(of: Found.self, capacity: count) { found in
            var locked: UInt32 = count == 0 ? 1 : 0
            for index in 0..<count {
                let hash = hash(index)
                locked |= DatabaseShards.bit(hash)
                found.initializeElement(at: index, to: Found(hash: hash))
            }
            shards.lock(locked)
            defer { shards.unlock(locked) }
            var sequence = applied.sequence
            switch applied.presence {
            case .absent: break
            case .open:
                var room = bytesMax
                for index in 0..<count {
                    let isKnown = shards.with(found[index].hash) { shard in
                        guard let entry = find(shard, index, found[index].hash) else {
                            return isAbsent(shard, index, found[index].hash)
                        }
                        return take(entry, now, &found[index], shard, &sequence, &room)
                    }
                    if !isKnown { return .cold }
                }
            case .closed, .failed, .deleted, .shut: return .cold
            }
            ticket = max(ticket, CommitTicket(sequence: sequence))
            for index in 0..<count { handOver(index, entry(found[index])) }
            return .hit
        }
    }

    /// Completes the lookup of a key. Called with all shard locks held.
    /// - Returns: false if the entries are too long together, or if this one cannot be read, which the slow path
    ///   reports.
    private func take(
        _ entry: EntryPointer, _ now: Int64, _ found: inout Found, _ shard: Shard, _ sequence: inout UInt64,
        _ room: inout Int
    ) -> Bool {
        sequence = max(sequence, undecided(entry))
        guard let record = entry.record else { return true }
        guard let header = try? RecordHeader(parsing: record, applied.rules.purges) else { return false }
        let freshness = applied.rules.freshness(header, now: now)
        guard freshness == .fresh else {
            if freshness == .gone { shard.foundExpired(entry) }
            return true
        }
        room -= record.count
        if room < 0 { return false }
        found.entry = entry
        found.header = header
        return true
    }

    private func entry(_ found: Found) -> EntryInMemory? {
        shards.with(found.hash) { shard in
            guard let entry = found.entry, let header = found.header, let record = entry.record else {
                shard.counters.misses += 1
                return nil
            }
            shard.table.touch(entry)
            shard.counters.hits += 1
            return EntryInMemory(
                header: header, payload: UnsafeRawBufferPointer(rebasing: record[header.byteCount...]),
                attachment: entry.head.pointee.attachment?.takeUnretainedValue(), version: entry.head.pointee.version)
        }
    }
}
