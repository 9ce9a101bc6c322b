import LevelDB

/// What a read found, and what its answer has to wait for.
package struct ReadResult: Sendable {
    /// The fresh entry, if there is one.
    package let record: Record?
    package let ticket: CommitTicket
}

extension Database {
    /// The fresh entry of a key. May read from the disk; a shard's lock is held only to look into memory.
    package func read(_ key: Key, now: Int64, fillCache: Bool = true) throws(LarderError) -> ReadResult {
        try ForkGuard.check("get")
        while true {
            let shard = shard(shardIndex(key))
            shard.lock.lock()
            let state = applied
            var mark: Shard.Mark?
            if case .open = state.presence {
                if let entry = shard.find(key) {
                    defer { shard.lock.unlock() }
                    return try found(entry, key, state, now, shard)
                }
                if fillCache, shard.keepsRecords { mark = shard.beginColdRead(key) }
            }
            shard.lock.unlock()
            switch state.presence {
            case .absent: return found(nil, state, now, shard)
            case .open(let store):
                do throws(LarderError) {
                    let record = try loadKeeping(key, mark, from: store, shard, fillCache: fillCache)
                    return found(record, state, now, shard)
                } catch {
                    // The store was replaced between the look into memory and the read: look again.
                    guard store.ending != .none, appliedState.store !== store else { throw error }
                }
            case .closed, .failed, .deleted, .shut:
                // What the files say of the policy is known only when they are open: look again.
                _ = try readableStore(state, "get")
            }
        }
    }

    /// The commit unit that wrote an entry, while it is not decided; else 0. Called with the lock of its shard held: what a
    /// failed unit wrote is taken back before the unit is decided, so that what is here and decided is committed.
    func undecided(_ entry: EntryPointer) -> UInt64 {
        pipeline.isDecided(CommitTicket(sequence: entry.sequence)) ? 0 : entry.sequence
    }

    /// What an entry in memory comes to for a reader. Called with the lock of its shard held.
    private func found(
        _ entry: EntryPointer, _ key: Key, _ state: State, _ now: Int64, _ shard: Shard
    ) throws(LarderError) -> ReadResult {
        let ticket = CommitTicket(sequence: max(undecided(entry), state.sequence))
        guard let bytes = entry.record else {
            shard.counters.misses += 1
            return ReadResult(record: nil, ticket: ticket)
        }
        let record: Record
        do throws(RecordHeader.Defect) {
            record = try Record(parsing: [UInt8](bytes))
        } catch {
            throw Self.defect(error, database: name, key: key)
        }
        shard.table.touch(entry)
        let freshness = state.rules.freshness(record.header, now: now)
        if freshness == .expired { shard.dropIfClean(entry) }
        guard freshness == .fresh else {
            shard.counters.misses += 1
            return ReadResult(record: nil, ticket: ticket)
        }
        shard.counters.hits += 1
        return ReadResult(record: record, ticket: ticket)
    }

    /// Reads a record without the lock, and keeps what was found, a record or none, in memory unless the key changed since
    /// `mark` was made.
    private func loadKeeping(_ key: Key, _ mark: Shard.Mark?, from store: EpochStore, _ shard: Shard, fillCache: Bool)
        throws(LarderError) -> Record?
    {
        guard let mark else { return try load(key, from: store, fillCache: fillCache) }
        do throws(LarderError) {
            let record = try load(key, from: store, fillCache: fillCache)
            shard.lock.withLock { shard.endColdRead(key, mark, keeping: record) }
            return record
        } catch {
            shard.lock.withLock { shard.endColdRead(key) }
            throw error
        }
    }

    private func found(_ record: Record?, _ state: State, _ now: Int64, _ shard: Shard) -> ReadResult {
        let fresh = record.flatMap { state.rules.freshness($0.header, now: now) == .fresh ? $0 : nil }
        shard.lock.withLock {
            if fresh != nil { shard.counters.hits += 1 } else { shard.counters.misses += 1 }
        }
        return ReadResult(record: fresh, ticket: CommitTicket(sequence: state.sequence))
    }

    /// The store to read; nil when there are no files.
    func readableStore(_ state: State, _ operation: String) throws(LarderError) -> EpochStore? {
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

    /// A record from the store, expired or not.
    func load(
        _ key: Key, from store: EpochStore, fillCache: Bool = true, snapshot: LevelDB.Snapshot? = nil
    ) throws(LarderError) -> Record? {
        guard let stored = try store.get(key, fillCache: fillCache, snapshot: snapshot) else { return nil }
        do throws(RecordHeader.Defect) {
            return try Record(parsing: stored)
        } catch {
            throw Self.defect(error, database: name, key: key)
        }
    }

    static func defect(_ defect: RecordHeader.Defect, database: String, key: Key) -> LarderError {
        switch defect {
        case .newerVersion(let version):
            LarderError(
                .newerFormat, "the entry has record version \(version), this Larder reads \(RecordHeader.version)",
                operation: "get", database: database, key: key.description, underlying: defect)
        case .truncated, .unknownFlags:
            LarderError(
                .damaged, "the entry's header cannot be read (\(defect))", operation: "get", database: database,
                key: key.description, underlying: defect)
        }
    }
}
