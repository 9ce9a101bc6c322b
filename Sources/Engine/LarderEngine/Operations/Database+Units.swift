/// A read of one key, or a write that does not depend on the present entry. Its bytes must stay valid while it is used.
@usableFromInline package struct EntryUnit {
    @usableFromInline package let key: UnsafeRawBufferPointer
    /// The payload to store; meaningless for a read.
    @usableFromInline package let payload: UnsafeRawBufferPointer
    /// The deadline rule of the stored entry.
    @usableFromInline let rule: DeadlineRule
    @usableFromInline package let isWrite: Bool
    @usableFromInline var hash = 0

    @inlinable package init(reading key: UnsafeRawBufferPointer) {
        (self.key, payload, rule, isWrite) = (key, key, .governed, false)
    }

    @inlinable package init(
        storing payload: UnsafeRawBufferPointer, under key: UnsafeRawBufferPointer, _ rule: DeadlineRule
    ) {
        (self.key, self.payload, self.rule, isWrite) = (key, payload, rule, true)
    }
}

/// Lookups in memory, and runs of consecutive commands. Nothing here uses the disk, or creates a ``Key`` or ``Record``.
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
        /// A caller that uses the entry must call ``use(_:_:_:)``.
        case fresh(RecordView, EntryPointer)
    }

    /// Looks up a key, and counts a miss. Called with the lock of its shard held.
    ///
    /// If the shard does not know the key and `access` is `memoryOnly`, asks LevelDB without using the disk. For most
    /// keys that were never stored, LevelDB is certain that it has no record. The shard then records the absence. This
    /// may evict entries that were found earlier.
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
        do throws(RecordHeader.Defect) {
            guard let record = try entry.record(applied.rules.purges) else {
                depend(on: entry, shard, &ticket)
                shard.noteMiss(nil, hash, now: now)
                return .absent
            }
            let freshness = applied.rules.freshness(record.header, now: now)
            if freshness == .fresh { return .fresh(record, entry) }
            depend(on: entry, shard, &ticket)
            if freshness == .gone { shard.foundExpired(entry) }
            shard.counters.noteMiss(record.header)
            return .absent
        } catch {
            return .unreadable(error)
        }
    }

    /// Counts a hit, and marks the entry as recently used. Called with the lock of its shard held.
    /// - Parameter ticket: raised to cover the commits that the reply has to wait for.
    @inline(__always)
    func use(_ entry: EntryPointer, _ shard: Shard, _ ticket: inout CommitTicket) {
        depend(on: entry, shard, &ticket)
        shard.table.touch(entry)
        shard.counters.hits += 1
    }

    /// - Parameter ticket: raised to cover the commit of an entry. Called with the lock of its shard held.
    @inline(__always)
    func depend(on entry: EntryPointer, _ shard: Shard, _ ticket: inout CommitTicket) {
        ticket = max(ticket, CommitTicket(sequence: max(undecided(entry, shard), applied.sequence)))
    }

    /// Whether LevelDB certainly has no record of a key. False if that cannot be determined without using the disk. For
    /// keys that the shard does not know. Called with the shard's lock held.
    @inline(never)
    func isAbsentInLevelDB(_ shard: Shard, _ key: UnsafeRawBufferPointer, _ hash: Int) -> Bool {
        guard case .open(let store) = applied.presence else { return false }
        return store.lacks(key, hash: hash)
    }

    /// Executes units in order, without using the disk. Stops at the first unit that needs the disk, has a long value
    /// or a key that is too long, or cannot be stored.
    ///
    /// First prefetches the memory of all keys, so that the CPU loads the entries concurrently.
    /// - Parameters:
    ///   - origin: the origin of the writes.
    ///   - body: called for each unit in turn, with the unit's index, the ticket that the reply has to wait for, and
    ///     the payload that was read, if any. May be called with a shard's lock held. Returns whether to continue.
    /// - Returns: the number of units for which `body` was called, and whether the next unit is a read that needs the
    ///   disk.
    package func run(
        _ units: UnsafeMutableBufferPointer<EntryUnit>, now: Int64, origin: WriteOrigin,
        _ body: (Int, CommitTicket, UnsafeRawBufferPointer?) -> Bool
    ) -> (count: Int, needsDisk: Bool) {
        if ForkGuard.isForked { return (0, false) }
        guard let first = units.baseAddress else { return (0, false) }
        for unit in first..<first + units.count {
            unit.pointee.hash = Key.hash(unit.pointee.key)
            shards.with(unit.pointee.hash) { $0.table.prefetchSlot(unit.pointee.hash) }
        }
        if units.count > 1 {
            for unit in first..<first + units.count {
                shards.withLocked(unit.pointee.hash) { $0.table.prefetchEntry(unit.pointee.hash) }
            }
        }
        for index in units.indices {
            let unit = first + index
            guard unit.pointee.key.count <= Key.bytesMax else { return (index, false) }
            if unit.pointee.isWrite {
                guard let stored = try? put(unit.pointee, now: now, origin: origin) else { return (index, false) }
                if !body(index, stored, nil) { return (index + 1, false) }
                continue
            }
            let hash = unit.pointee.hash
            let end = shards.withLocked(hash) { shard -> (count: Int, needsDisk: Bool)? in
                var ticket = CommitTicket.none
                var payload: UnsafeRawBufferPointer?
                switch look(shard, unit.pointee.key, hash, now, .memoryOnly, &ticket) {
                case .unknown: return (index, true)
                case .fresh(let record, let entry) where record.byteCount < context.options.pinnedBytesMin:
                    use(entry, shard, &ticket)
                    payload = record.payload
                case .absent: break
                case .unavailable, .unreadable, .fresh: return (index, false)
                }
                return body(index, ticket, payload) ? nil : (index + 1, false)
            }
            if let end { return end }
        }
        return (units.count, false)
    }

    private func put(_ unit: EntryUnit, now: Int64, origin: WriteOrigin) throws(LarderError) -> CommitTicket? {
        try put(unit.key, hash: unit.hash, payload: unit.payload, rule: unit.rule, now: now, origin: origin)
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
        fillHintsBeforeWrite()
        // Counts no references to the shard or the store, because all event loops would change the same counters.
        let shard = shards.unmanaged(hash)
        shard._withUnsafeGuaranteedRef { $0.lock.lock() }
        defer { shard._withUnsafeGuaranteedRef { $0.lock.unlock() } }
        if isWithoutFiles { return nil }
        let epoch = try writableEpoch("update")
        let header = RecordHeader(
            storedAt: now, rule: applied.rules.stored(rule, now: now), codec: codec, generation: applied.generation,
            grace: grace)
        let record = RecordView(header, tail: payload)
        try checkFits(record.byteCount, limit: applied.diskLimit)
        let sequence = pipeline.enqueue(durability ?? context.options.durability) { batch, sequence in
            batch.select(database: name, number: number, epoch: epoch)
            batch.put(key: key, record, sequence: sequence)
            guard context.changes.isOn else { return }
            batch.changes.append(
                EntryChange(
                    database: self, key: Array(key), kind: .stored(header), origin: origin,
                    deadline: applied.rules.deadline(header), sequence: sequence))
        }
        shard._withUnsafeGuaranteedRef { $0.put(key, hash, record, sequence: sequence) }
        return CommitTicket(sequence: max(sequence, applied.sequence))
    }
}
