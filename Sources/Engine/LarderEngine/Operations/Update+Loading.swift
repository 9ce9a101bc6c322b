/// Finds the entries of an update: in memory with the shard locks held, in LevelDB without them if possible.
extension Update {
    /// The entry of a slot as it was read from LevelDB.
    struct ColdRead {
        /// The key's state before it was read; nil if the shard does not watch the key for changes.
        var mark: InFlightReads.Mark?
        var value: Value?

        enum Value {
            case absent
            case record(Record)
            /// The header, and the length of the record in bytes.
            case header(RecordHeader, byteCount: Int)
            /// A record whose header this version cannot read.
            case unreadable
        }
    }

    /// The maximum number of times that an update reads a key from LevelDB without the locks. If the key was changed
    /// during each of these reads, it is read with the locks held.
    private static let coldAttempts = 2

    /// An update with more loaded keys than this does not record absent keys in the shards, to limit the memory used.
    private static let absencesMax = 64

    // MARK: Locks

    func lock() {
        locked = locksAllShards ? DatabaseShards.everything : shardSet
        withDatabase { $0.shards.lock(locked) }
    }

    func unlock() {
        if hasRecordedAbsences {
            hasRecordedAbsences = false
            // This may evict entries, so do it after the last use of the entries.
            withDatabase { $0.shards.forEach(in: locked) { $0.makeRoom() } }
        }
        withDatabase { $0.shards.unlock(locked) }
    }

    // MARK: In memory

    private enum Looked {
        case known
        case unknown
        case defective(RecordHeader.Defect)
    }

    /// Begins an attempt of the update, and finds the entries of its keys. Called with its shard locks held.
    /// - Parameters:
    ///   - attempt: the number of the attempt. 0 looks in memory only.
    ///   - sequence: raised to the last commit that the reply has to wait for.
    /// - Returns: false if entries must be read from LevelDB without the locks, or read again because they changed.
    @inline(__always)
    func look(attempt: Int, _ sequence: inout UInt64) throws(LarderError) -> Bool {
        begin(isFirst: attempt == 0)
        sequence = max(sequence, withDatabase { $0.applied.sequence })
        if loading == .none { return true }
        return try look(attempt: attempt, from: 0, to: loadedCount, &sequence)
    }

    /// Finds the entries of the keys that ``addLate(_:)`` added. May read the disk. Called with the shard locks held.
    /// - Returns: false if the files are not open.
    func findLate(from first: Int, _ sequence: inout UInt64) throws(LarderError) -> Bool {
        try look(attempt: Self.coldAttempts, from: first, to: slots.count, &sequence)
    }

    private func look(
        attempt: Int, from first: Int, to end: Int, _ sequence: inout UInt64
    ) throws(LarderError) -> Bool {
        guard withDatabase({ $0.applied.isOpen }) else {
            switch database.applied.presence {
            case .open, .absent: return true
            case .closed, .failed: return false
            case .deleted: throw database.deletedError("update")
            case .shut(let error): throw error
            }
        }
        var isComplete = true
        for slot in first..<end {
            withDatabase { $0.shards.prefetch(after: slot, of: end) { slots[$0].pointee.hash } }
            switch slots[slot].pointee.withShard({ look(slot, $0, &sequence) }) {
            case .known: continue
            case .defective(let defect):
                take(try unreadable(defect, slotKey(slot)), at: slot)
            case .unknown:
                if try findInLevelDB(slot, attempt) { continue }
                if attempt == 0 { return false }
                isComplete = false
            }
        }
        return isComplete
    }

    @inline(__always)
    private func look(_ slot: Int, _ shard: Shard, _ sequence: inout UInt64) -> Looked {
        let hash = slots[slot].pointee.hash
        guard let entry = shard.table.find(slots[slot].pointee.key, hash: hash) else { return .unknown }
        sequence = max(sequence, withDatabase { $0.undecided(entry, shard) })
        let record: RecordView
        do throws(RecordHeader.Defect) {
            guard let found = try entry.record(rules.purges) else { return .known }
            record = found
        } catch {
            return .defective(error)
        }
        let freshness = rules.freshness(record.header, now: now)
        if freshness == .gone { shard.foundExpired(entry) }
        let stored: Stored =
            if loading != .records {
                .header(record.header, byteCount: record.byteCount)
            } else if isSpeculative {
                own(Record(record))
            } else {
                Stored(record)
            }
        slots[slot].pointee.stored = stored
        slots[slot].pointee.isFresh = freshness == .fresh
        slots[slot].pointee.entry = entry
        return .known
    }

    /// Finds an entry that is not in the shard. Called with the shard locks held.
    /// - Returns: false if LevelDB must first be read without the locks.
    @inline(never)
    private func findInLevelDB(_ slot: Int, _ attempt: Int) throws(LarderError) -> Bool {
        guard case .open(let store) = database.applied.presence else { return false }
        let (key, hash) = (slots[slot].pointee.key, slots[slot].pointee.hash)
        let shard = database.shards[Shard.index(hash)]
        if coldStore === store, slot < cold.count, let value = cold[slot].value,
            cold[slot].mark == shard.reads.mark(slotKey(slot))
        {
            take(value, slot)
            return true
        }
        if database.isAbsentInLevelDB(shard, key, hash) {
            if loadedCount <= Self.absencesMax {
                shard.keepAbsence(key, hash)
                hasRecordedAbsences = true
            }
            return true
        }
        if attempt >= Self.coldAttempts {
            take(try value(slotKey(slot), in: store, rules.purges), slot)
            return true
        }
        if slot < cold.count { cold[slot].value = nil }
        return false
    }

    private func take(_ value: ColdRead.Value, _ slot: Int) {
        let stored: Stored =
            switch value {
            case .absent: .absent
            case .record(let record): own(record)
            case .header(let header, let byteCount): .header(header, byteCount: byteCount)
            case .unreadable: .unreadable
            }
        take(stored, at: slot)
    }

    // MARK: In LevelDB

    /// Reads the entries from LevelDB that are not in memory and not read yet. May open files. Called without any lock.
    func load(attempt: Int) throws(LarderError) {
        if loading == .none { return }
        let store = try database.readableStore(database.appliedState, "update")
        let purges = database.appliedState.rules.purges
        if coldStore !== store {
            forgetReads()
            coldStore = store
        }
        guard let store, attempt <= Self.coldAttempts else { return }
        if cold.isEmpty { cold = Array(repeating: ColdRead(), count: loadedCount) }
        for slot in 0..<loadedCount where cold[slot].value == nil {
            let key = slotKey(slot)
            let shard = database.shards[key]
            let isKnown = shard.lock.withLock {
                if shard.find(key) != nil { return true }
                let isBegun = cold[slot].mark != nil
                cold[slot].mark = isBegun ? shard.reads.mark(key) : shard.reads.begin(key)
                if !isBegun, fillCache { shard.noteDiskRead(key.hash) }
                return false
            }
            if isKnown { continue }
            do throws(LarderError) {
                let value = try value(key, in: store, purges)
                cold[slot].value = value
                if case .record(let record) = value { coldRoom = max(-1, coldRoom - record.stored.count) }
            } catch {
                // If the store was replaced in the meantime, the next attempt reads the new one.
                guard store.ending != .none, database.appliedState.store !== store else { throw error }
            }
            if coldRoom < 0 {
                throw LarderError(
                    .invalidArgument, "the entries are too long to be read together", operation: "update",
                    database: database.name)
            }
        }
    }

    private func value(_ key: Key, in store: EpochStore, _ purges: TagPurges?) throws(LarderError) -> ColdRead.Value {
        if loading == .records {
            return try database.load(key, from: store, purges, fillCache: fillCache).map { .record($0) } ?? .absent
        }
        guard let (parsed, byteCount) = try store.header(of: key, purges) else { return .absent }
        switch parsed {
        case .success(let header): return .header(header, byteCount: byteCount)
        case .failure(let defect):
            _ = try unreadable(defect, key)
            return .unreadable
        }
    }

    /// Returns what is stored under a key with an unreadable header. Throws unless the command accepts such headers.
    private func unreadable(_ defect: RecordHeader.Defect, _ key: Key) throws(LarderError) -> Stored {
        if loading == .anyHeaders { return .unreadable }
        throw Database.defect(defect, database: database.name, key: key)
    }

    /// Forgets the entries read from LevelDB, and ends the shards' tracking of these reads. Called without any lock.
    func forgetReads() {
        if coldStore != nil { coldStore = nil }
        if cold.isEmpty { return }
        for slot in cold.indices where cold[slot].mark != nil {
            let key = slotKey(slot)
            database.shards.withLocked(key.hash) { $0.reads.end(key) }
        }
        cold = []
    }
}
