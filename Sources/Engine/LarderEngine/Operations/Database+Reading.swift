import LarderLevelDB

/// How a read of one entry has ended.
package enum ReadOutcome: Sendable {
    /// There is a fresh entry, which was passed to `body`.
    case hit
    /// There is no fresh entry.
    case miss
    /// The disk is needed, or the entry is long, but the access was `memoryOnly`: a thread that may block must read it.
    case cold
}

extension Database {
    /// Returns the fresh entry of a key, and waits until it is committed. For callers that may block.
    /// - Parameter now: the time of the read; nil for the engine's present time.
    package func get(_ key: Key, now: Int64? = nil, fillCache: Bool = true) throws(LarderError) -> Record? {
        var ticket = CommitTicket.none
        var found: Record?
        _ = try key.withBytes { (bytes) throws(LarderError) in
            try read(bytes, now: now, .mayBlock, fillCache: fillCache, ticket: &ticket) { record, _ in
                found = Record(record)
            }
        }
        try pipeline.wait(for: ticket)
        return found
    }

    /// Reads the fresh entry of a key. Creates no ``Key`` or ``Record``.
    /// - Parameters:
    ///   - now: the time of the read; nil for the engine's present time.
    ///   - access: whether the read may use the disk. No shard's lock is held while the disk is read.
    ///   - bytesMax: without access to the disk, records of this many bytes or more are not read, because copying them
    ///     would block an event loop for too long.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - holding: called before the disk is read; its result is kept alive until the read is done.
    ///   - body: called once on a hit, with the record, and the entry's version for attaching an object. The version is
    ///     0 if no object can be attached. A shard's lock may be held: copy the data that you need, and do not call the
    ///     engine.
    package func read(
        _ key: UnsafeRawBufferPointer, now: Int64? = nil, _ access: Access, below bytesMax: Int = .max,
        fillCache: Bool = true, ticket: inout CommitTicket, holding: () throws(LarderError) -> AnyObject? = { nil },
        _ body: (RecordView, _ version: UInt64) -> Void
    ) throws(LarderError) -> ReadOutcome {
        try ForkGuard.check("get")
        let hash = Key.hash(key)
        // With many entries, the key's table slot is rarely in the CPU's caches. Prefetch it while reading the clock.
        shards.with(hash) { $0.table.prefetchSlot(hash) }
        let now = now ?? self.now()
        while true {
            let begun = shards.withLocked(hash) { shard -> Begun in
                let isInMemory = access == .memoryOnly
                switch look(shard, key, hash, now, access, &ticket) {
                case .fresh(let record, let entry):
                    // The thread that reads the entry counts the hit.
                    if isInMemory, record.byteCount >= bytesMax { return .ended(.cold) }
                    use(entry, shard, &ticket)
                    let version = shard.table.version(of: entry)
                    if record.byteCount >= context.options.pinnedBytesMin, entry.pin() {
                        return .pinned(entry, record, version: version)
                    }
                    body(record, version)
                    return .ended(.hit)
                case .absent: return .ended(.miss)
                case .unreadable where isInMemory, .unavailable where isInMemory, .unknown where isInMemory:
                    return .ended(.cold)
                case .unreadable(let defect): return .unreadable(defect)
                case .unavailable: return .unavailable
                case .unknown:
                    guard case .open(let store) = applied.presence else { return .unavailable }
                    if fillCache { shard.noteDiskRead(hash) }
                    let place = fillCache && shard.keepsRecords ? shard.beginRead(hash) : nil
                    if place == nil { shard.counters.hits += 1 }
                    return .cold(
                        ColdRead(store: store, rules: applied.rules, sequence: applied.sequence, place: place))
                }
            }
            switch consume begun {
            case .ended(let outcome): return outcome
            case .pinned(let entry, let record, let version):
                defer { shards.withLocked(hash) { _ in entry.unpin() } }
                body(record, version)
                return .hit
            case .unreadable(let defect): throw Self.defect(defect, database: name, key: Key(key))
            case .unavailable:
                // Open the files, which contain the policy, and look again.
                _ = try readableStore(appliedState, "get")
            case .cold(let cold):
                do throws(LarderError) {
                    return try finishRead(cold, key, hash, now, fillCache: fillCache, &ticket, holding, body)
                } catch {
                    // The store was replaced between the lookup and the read: look again.
                    guard cold.store.ending != .none, appliedState.store !== cold.store else { throw error }
                }
            }
        }
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
                !usesAttachment || entry.attachment != nil, let record = try? entry.record(applied.rules.purges),
                applied.rules.freshness(record.header, now: now) == .fresh,
                body(
                    FreshEntry(
                        record: record, attachment: entry.attachment, hash: hash, now: now,
                        database: .passUnretained(self)))
            else { return false }
            use(entry, shard, &ticket)
            if usesAttachment { entry.attachment?._withUnsafeGuaranteedRef { $0.touch() } }
            return true
        }
    }

    /// A read that needs LevelDB.
    private struct ColdRead {
        let store: EpochStore
        // The rules and the last sequence of the database at the time of the lookup in memory.
        let rules: FreshnessRules
        let sequence: UInt64
        /// The shard's placeholder for this read; nil if the result is not kept in memory. In that case the read is
        /// already counted as a hit, and the shard is locked again only after a miss, to correct the count.
        let place: Int?
    }

    private enum Begun {
        /// The lookup was enough. A fresh entry was passed to `body`.
        case ended(ReadOutcome)
        /// There is a long fresh entry, which was pinned in memory.
        case pinned(EntryPointer, RecordView, version: UInt64)
        case unreadable(RecordHeader.Defect)
        case unavailable
        case cold(ColdRead)
    }

    /// Reads a record without the lock. If there is a placeholder, and the key was not changed in the meantime, keeps
    /// the record or its absence in memory.
    private func finishRead(
        _ cold: ColdRead, _ key: UnsafeRawBufferPointer, _ hash: Int, _ now: Int64, fillCache: Bool,
        _ ticket: inout CommitTicket, _ holding: () throws(LarderError) -> AnyObject?,
        _ body: (RecordView, UInt64) -> Void
    ) throws(LarderError) -> ReadOutcome {
        let stored: UnsafeRawBufferPointer?
        let record: RecordView?
        do throws(LarderError) {
            let held = try holding()
            defer { withExtendedLifetime(held) {} }
            stored = try cold.store.take(key, fillCache: fillCache)
            do throws(RecordHeader.Defect) {
                record = try stored.map { (bytes) throws(RecordHeader.Defect) in
                    try RecordView(parsing: bytes, cold.rules.purges)
                }
            } catch {
                EpochStore.release(stored)
                throw Self.defect(error, database: name, key: Key(key))
            }
        } catch {
            shards.withLocked(hash) { shard in
                if let place = cold.place { shard.endRead(place) } else { shard.counters.hits -= 1 }
            }
            throw error
        }
        defer { EpochStore.release(stored) }
        let freshness = record.map { cold.rules.freshness($0.header, now: now) }
        let isFresh = freshness == .fresh
        if let place = cold.place {
            shards.withLocked(hash) { shard in
                shard.endRead(place, key, hash, keeping: stored)
                if isFresh { shard.counters.hits += 1 } else { shard.noteMiss(record?.header, hash, now: now) }
                // Count the expired entry now if it is in memory. Otherwise it is counted when it is removed.
                if freshness == .gone, let entry = shard.table.find(key, hash: hash), !entry.isDirty {
                    shard.foundExpired(entry)
                }
            }
        } else if !isFresh {
            shards.withLocked(hash) { shard in
                shard.counters.hits -= 1
                shard.noteMiss(record?.header, hash, now: now)
            }
        }
        ticket = max(ticket, CommitTicket(sequence: cold.sequence))
        if isFresh, let record { body(record, 0) }
        return isFresh ? .hit : .miss
    }

    /// The sequence number of the commit unit that wrote an entry, or 0 if the entry is committed. Also not 0 after a
    /// failed commit, until the rollback removes the entry. Called with the lock of the entry's shard held.
    func undecided(_ entry: EntryPointer, _ shard: Shard) -> UInt64 {
        // Usually, all writes of the shard are committed.
        if pipeline.isDecided(CommitTicket(sequence: shard.table.newestSequence)) { return 0 }
        let sequence = shard.table.sequence(of: entry)
        return pipeline.isDecided(CommitTicket(sequence: sequence)) ? 0 : sequence
    }

    /// Returns the store to read, after opening the files if necessary; nil if the database has no files.
    func readableStore(_ state: DatabaseState, _ operation: String) throws(LarderError) -> EpochStore? {
        switch state.presence {
        case .open(let store): return store
        case .absent: return nil
        case .failed, .closed:
            try prepare(forWriting: false)
            return try readableStore(appliedState, operation)
        case .shut(let error): throw error
        case .deleted: throw deletedError(operation)
        }
    }

    /// Reads a record from the store, expired or not.
    func load(
        _ key: Key, from store: EpochStore, _ purges: TagPurges?, fillCache: Bool = true,
        snapshot: LarderLevelDB.Snapshot? = nil
    ) throws(LarderError) -> Record? {
        guard let stored = try store.get(key, fillCache: fillCache, snapshot: snapshot) else { return nil }
        do throws(RecordHeader.Defect) {
            return try Record(parsing: stored, purges)
        } catch {
            throw Self.defect(error, database: name, key: key)
        }
    }

    static func defect(_ defect: RecordHeader.Defect, database: String, key: Key) -> LarderError {
        switch defect {
        case .newerVersion(let version):
            LarderError(
                .newerFormat, "the entry has record version \(version), but this Larder reads \(RecordHeader.version)",
                operation: "get", database: database, key: key.description, underlying: defect)
        case .truncated, .unknownFlags:
            LarderError(
                .damaged, "the entry's header cannot be read (\(defect))", operation: "get", database: database,
                key: key.description, underlying: defect)
        }
    }
}
