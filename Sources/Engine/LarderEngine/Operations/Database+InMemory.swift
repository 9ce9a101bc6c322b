/// The most common commands, for event loops. They do not use the disk, and create no ``Key`` or ``Record``.
extension Database {
    /// The result of a lookup in memory.
    enum Looked {
        /// It is unknown whether there is an entry: LevelDB must be read.
        case unknown
        /// The files are not open.
        case unavailable
        case unreadable(RecordHeader.Defect)
        /// There is no fresh entry.
        case absent
        /// If the caller uses the entry, it must call ``use(_:_:_:)``.
        case fresh(RecordHeader, record: UnsafeRawBufferPointer, EntryPointer)
    }

    /// Looks up a key, and counts a miss. Called with the lock of its shard held.
    ///
    /// If the shard does not know the key and `memoryOnly` is true, asks LevelDB without using the disk. For most keys
    /// that were never stored, LevelDB is certain that it has no record. The shard then records the absence. This may
    /// evict entries that were found earlier.
    @inline(__always)
    func look(
        _ shard: Shard, _ key: UnsafeRawBufferPointer, _ hash: Int, _ now: Int64, _ access: Access,
        _ ticket: inout CommitTicket
    ) -> Looked {
        guard case .open = applied.presence else {
            guard case .absent = applied.presence else { return .unavailable }
            ticket = max(ticket, CommitTicket(sequence: applied.sequence))
            shard.counters.misses += 1
            return .absent
        }
        guard let entry = shard.table.find(key, hash: hash) else {
            guard access == .memoryOnly, isAbsentInLevelDB(shard, key, hash) else { return .unknown }
            ticket = max(ticket, CommitTicket(sequence: applied.sequence))
            shard.noteMiss(nil, hash, now: now)
            shard.keepAbsence(key, hash)
            shard.makeRoom()
            return .absent
        }
        let header: RecordHeader
        do throws(RecordHeader.Defect) {
            guard let record = entry.record else {
                depend(on: entry, &ticket)
                shard.noteMiss(nil, hash, now: now)
                return .absent
            }
            header = try RecordHeader(parsing: record, applied.rules.purges)
            let freshness = applied.rules.freshness(header, now: now)
            if freshness == .fresh { return .fresh(header, record: record, entry) }
            depend(on: entry, &ticket)
            if freshness == .gone { shard.foundExpired(entry) }
            shard.counters.noteMiss(header)
            return .absent
        } catch {
            return .unreadable(error)
        }
    }

    /// Counts a hit, and marks the entry as recently used. Called with the lock of its shard held.
    /// - Parameter ticket: raised to cover the commits that the reply has to wait for.
    @inline(__always)
    func use(_ entry: EntryPointer, _ shard: Shard, _ ticket: inout CommitTicket) {
        depend(on: entry, &ticket)
        shard.table.touch(entry)
        shard.counters.hits += 1
    }

    @inline(__always)
    private func depend(on entry: EntryPointer, _ ticket: inout CommitTicket) {
        ticket = max(ticket, CommitTicket(sequence: max(undecided(entry), applied.sequence)))
    }

    /// Passes the fresh entry of a key to `body`, if it is in memory.
    /// - Parameters:
    ///   - usesAttachment: whether `body` requires an attachment, and uses it.
    ///   - ticket: raised to cover the commits that the reply has to wait for, if `body` returns true.
    ///   - body: called at most once, with a shard's lock held: copy the data that you need, and do not call the
    ///     engine. Returns whether it used the entry. A used entry counts as a hit.
    /// - Returns: whether `body` was called and returned true. If not, nothing was done.
    package func readInMemory(
        _ key: UnsafeRawBufferPointer, now: Int64, usesAttachment: Bool = false, ticket: inout CommitTicket,
        _ body: (FreshEntry) -> Bool
    ) -> Bool {
        if ForkGuard.isForked { return false }
        let hash = Key.hash(key)
        return shards.withLocked(hash) { shard in
            guard case .open = applied.presence, let entry = shard.table.find(key, hash: hash),
                !usesAttachment || entry.head.pointee.attachment != nil, let record = entry.record,
                let header = try? RecordHeader(parsing: record, applied.rules.purges),
                applied.rules.freshness(header, now: now) == .fresh,
                body(
                    FreshEntry(
                        header: header, record: record, attachment: entry.head.pointee.attachment, hash: hash, now: now,
                        database: .passUnretained(self)))
            else { return false }
            use(entry, shard, &ticket)
            if usesAttachment { entry.head.pointee.attachment?._withUnsafeGuaranteedRef { $0.touch() } }
            return true
        }
    }

    /// Whether LevelDB certainly has no record of a key. False if that cannot be determined without using the disk. For
    /// keys that the shard does not know. Called with the shard's lock held.
    @inline(never)
    func isAbsentInLevelDB(_ shard: Shard, _ key: UnsafeRawBufferPointer, _ hash: Int) -> Bool {
        guard case .open(let store) = applied.presence else { return false }
        return store.lacks(key, hash: hash)
    }

    /// Reads the fresh entries of several keys in order, or stores a payload for each key, without using the disk.
    /// Stops at the first key that needs the disk, has a long value, or cannot be stored.
    ///
    /// First prefetches the memory of all keys, so that the CPU loads the entries concurrently.
    /// - Parameters:
    ///   - payloads: the payloads to store, one for each key; nil to read.
    ///   - rule: the deadline rule of the stored entries.
    ///   - body: called for each key in turn, with the key's index, the ticket that the reply has to wait for, and the
    ///     payload, if any. May be called with a shard's lock held. Returns whether to continue.
    /// - Returns: the number of keys for which `body` was called, and whether the next key needs the disk.
    package func run(
        _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>,
        storing payloads: UnsafeBufferPointer<UnsafeRawBufferPointer>? = nil, rule: DeadlineRule = .governed,
        now: Int64, origin: WriteOrigin = WriteOrigin(), _ body: (Int, CommitTicket, UnsafeRawBufferPointer?) -> Bool
    ) -> (count: Int, needsDisk: Bool) {
        if ForkGuard.isForked { return (0, false) }
        return withUnsafeTemporaryAllocation(of: Int.self, capacity: keys.count) { hashes in
            for index in keys.indices {
                let hash = Key.hash(keys[index])
                hashes[index] = hash
                shards.with(hash) { $0.table.prefetchSlot(hash) }
            }
            if keys.count > 1 {
                for index in keys.indices {
                    shards.withLocked(hashes[index]) { $0.table.prefetchEntry(hashes[index]) }
                }
            }
            var end = (count: keys.count, needsDisk: false)
            guard let payloads else {
                for index in keys.indices {
                    let continues = shards.withLocked(hashes[index]) { shard -> Bool in
                        var ticket = CommitTicket.none
                        var payload: UnsafeRawBufferPointer?
                        switch look(shard, keys[index], hashes[index], now, .memoryOnly, &ticket) {
                        case .unknown:
                            end = (index, true)
                            return false
                        case .fresh(let header, let record, let entry)
                        where record.count < context.options.pinnedBytesMin:
                            use(entry, shard, &ticket)
                            payload = header.payload(of: record)
                        case .absent: break
                        case .unavailable, .unreadable, .fresh:
                            end.count = index
                            return false
                        }
                        if body(index, ticket, payload) { return true }
                        end.count = index + 1
                        return false
                    }
                    if !continues { return end }
                }
                return end
            }
            for (index, payload) in payloads.enumerated() {
                let (key, hash) = (keys[index], hashes[index])
                guard key.count <= Key.bytesMax,
                    let stored = try? put(key, hash: hash, payload: payload, rule: rule, now: now, origin: origin)
                else { return (index, false) }
                if !body(index, stored, nil) { return (index + 1, false) }
            }
            return end
        }
    }

    /// Stores a payload without reading the present entry.
    /// - Parameters:
    ///   - key: a key of at most ``Key/bytesMax`` bytes.
    ///   - hash: the hash of the key.
    ///   - durability: the durability of this write; nil for the larder's durability.
    /// - Returns: the ticket that the reply has to wait for; nil, without an effect, if the files are not open.
    func put(
        _ key: UnsafeRawBufferPointer, hash: Int, payload: UnsafeRawBufferPointer,
        rule: DeadlineRule = .governed, grace: Int64? = nil, codec: Codec = .raw, now: Int64,
        durability: Durability? = nil, origin: WriteOrigin = WriteOrigin()
    ) throws(LarderError) -> CommitTicket? {
        try ForkGuard.check("update")
        let shard = shards[Shard.index(hash)]
        shard.lock.lock()
        defer { shard.lock.unlock() }
        if isWithoutFiles { return nil }
        let store = try writableStore(applied.presence, "update")
        let header = RecordHeader(
            storedAt: now, rule: applied.rules.stored(rule, now: now), codec: codec, generation: applied.generation,
            grace: grace)
        try checkFits(header.byteCount + payload.count, limit: applied.diskLimit)
        let sequence = pipeline.enqueue(durability ?? context.options.durability) { batch, sequence in
            batch.select(database: name, number: number, epoch: store.epoch)
            batch.put(key: key, header: header, payload: payload, sequence: sequence)
            if context.changes.isOn { batch.changes.add(stored(Array(key), header, .init(origin: origin)), sequence) }
        }
        _ = shard.put(key, hash, header, payload, sequence: sequence)
        return CommitTicket(sequence: max(sequence, applied.sequence))
    }
}
