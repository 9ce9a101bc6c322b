/// Where an operation may read entries.
package enum Access: Sendable {
    /// Read only memory, as event loops must. If the disk is needed, the operation does nothing.
    case memoryOnly
    /// Read memory and the disk. May open files.
    case mayBlock
}

/// The parts of entries that a command needs.
package enum Loading: Sendable {
    /// Nothing: it writes without reading.
    case none
    /// Only the headers. Payloads, which may be large, are not kept in memory.
    case headers
    case records
}

/// The entries that a command read from LevelDB before taking the shard locks of its keys.
struct ColdReads {
    /// One key of the command.
    fileprivate struct Slot {
        /// Not nil while the shard records that the key is being read.
        var mark: InFlightReads.Mark?
        var value: Value?
    }

    enum Value {
        case record(Record?)
        /// The header, and the record's length.
        case header(RecordHeader, byteCount: Int)
        /// A record whose header this version cannot read.
        case unreadable(LarderError)

        /// nil if there is no header, or it cannot be read.
        fileprivate var header: RecordHeader? {
            switch self {
            case .record(let record): record?.header
            case .header(let header, _): header
            case .unreadable: nil
            }
        }
    }

    fileprivate var store: EpochStore?
    fileprivate var slots: [Slot]

    /// Whether the blocks that are read stay in the block cache.
    fileprivate let fillCache: Bool

    /// The number of record bytes that may still be read.
    fileprivate var room: Int

    init(count: Int, fillCache: Bool, bytesMax: Int = .max) {
        slots = Array(repeating: Slot(), count: count)
        self.fillCache = fillCache
        room = bytesMax
    }
}

extension Database {
    /// The number of times that a command reads its keys without the locks. Keys that still change in the meantime are
    /// then read under the locks.
    static let coldAttempts = 2

    /// Passes the entries of keys at one instant to `body`. Reads cold entries without a lock, takes the shard locks of
    /// the keys, and calls `body`. Repeats this while `body` finds that too many of the entries have changed. All
    /// operations that need several entries of one database use it.
    /// - Parameters:
    ///   - drains: whether each further attempt first waits until all earlier changes are committed.
    ///   - body: receives the entries that were read and the number of the attempt. Returns nil for another attempt.
    /// - Returns: nil if the disk is needed and `access` forbids it.
    func withLoaded<Result>(
        _ keys: [Key], _ loading: Loading, _ access: Access, fillCache: Bool, bytesMax: Int = .max,
        drains: Bool = false, _ body: (inout ColdReads, Int) throws(LarderError) -> Result?
    ) throws(LarderError) -> Result? {
        let locked = DatabaseShards.set(of: keys)
        var cold = ColdReads(count: loading == .none ? 0 : keys.count, fillCache: fillCache, bytesMax: bytesMax)
        defer { if loading != .none { forget(keys, &cold) } }
        var attempt = 0
        while true {
            attempt += 1
            if drains, attempt > 1 { pipeline.drain() }
            if loading != .none, access == .mayBlock { try readCold(keys, loading, &cold, attempt: attempt) }
            shards.lock(locked)
            defer { shards.unlock(locked) }
            if let result = try body(&cold, attempt) { return result }
            if access == .memoryOnly { return nil }
        }
    }

    /// Reads the entries that are neither in memory nor read yet. Called without any lock.
    func readCold(_ keys: [Key], _ loading: Loading, _ cold: inout ColdReads, attempt: Int) throws(LarderError) {
        let store = try readableStore(appliedState, "update")
        let purges = appliedState.rules.purges
        if cold.store !== store {
            forget(keys, &cold)
            cold.store = store
        }
        guard let store, attempt <= Self.coldAttempts else { return }
        for (position, key) in keys.enumerated() where cold.slots[position].value == nil {
            let shard = shards[key]
            let isKnown = shard.lock.withLock {
                if shard.find(key) != nil { return true }
                let isBegun = cold.slots[position].mark != nil
                cold.slots[position].mark = isBegun ? shard.reads.mark(key) : shard.reads.begin(key)
                if !isBegun, cold.fillCache { shard.noteDiskRead(key.hash) }
                return false
            }
            if isKnown { continue }
            do throws(LarderError) {
                let value = try value(key, loading, in: store, purges, cold.fillCache)
                cold.slots[position].value = value
                if case .record(let record?) = value { cold.room = max(-1, cold.room - record.stored.count) }
            } catch {
                // The store was replaced in the meantime: the next attempt reads the new one.
                guard store.ending != .none, appliedState.store !== store else { throw error }
            }
            if cold.room < 0 {
                throw LarderError(
                    .invalidArgument, "the entries are too long to be read together", operation: "update",
                    database: name)
            }
        }
    }

    /// Converts an entry in memory to the form that a command needs. Called with the lock of its shard held.
    private func value(_ entry: EntryPointer, _ loading: Loading, _ key: Key) throws(LarderError) -> ColdReads.Value {
        guard let bytes = entry.record else { return .record(nil) }
        let defect: RecordHeader.Defect
        do throws(RecordHeader.Defect) {
            guard loading == .headers else { return .record(try Record(parsing: [UInt8](bytes), applied.rules.purges)) }
            return .header(try RecordHeader(parsing: bytes, applied.rules.purges), byteCount: bytes.count)
        } catch let caught {
            defect = caught
        }
        let error = Self.defect(defect, database: name, key: key)
        guard loading == .headers else { throw error }
        return .unreadable(error)
    }

    private func value(
        _ key: Key, _ loading: Loading, in store: EpochStore, _ purges: TagPurges?, _ fillCache: Bool
    ) throws(LarderError) -> ColdReads.Value {
        guard loading == .headers else { return .record(try load(key, from: store, purges, fillCache: fillCache)) }
        guard let (parsed, byteCount) = try store.header(of: key, purges) else { return .record(nil) }
        switch parsed {
        case .success(let header): return .header(header, byteCount: byteCount)
        case .failure(let defect): return .unreadable(Self.defect(defect, database: name, key: key))
        }
    }

    /// Returns the entries stored under `keys`; nil if too many of the cold entries have changed since they were read.
    /// Called with all their shard locks held.
    /// - Parameter ticket: raised to cover the commits that the reply has to wait for.
    func gather(
        _ keys: [Key], _ loading: Loading, _ cold: inout ColdReads, attempt: Int, now: Int64, ticket: inout UInt64
    ) throws(LarderError) -> [ColdReads.Value]? {
        try collect(keys, loading, &cold, attempt: attempt, ticket: &ticket) {
            (shard, entry, key) throws(LarderError) in
            let value = try self.value(entry, loading, key)
            if let header = value.header, applied.rules.freshness(header, now: now) == .gone {
                shard.foundExpired(entry)
            }
            return value
        } elsewhere: {
            $0
        }
    }

    /// Makes an item from each entry stored under `keys`. Called with all their shard locks held.
    /// - Parameters:
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - inMemory: makes the item of an entry in memory.
    ///   - elsewhere: makes the item of an entry that was read from LevelDB.
    ///   - abandon: receives the items made so far, if a later one cannot be made or an error is thrown.
    /// - Returns: nil if too many of the cold entries have changed since they were read.
    private func collect<Item>(
        _ keys: [Key], _ loading: Loading, _ cold: inout ColdReads, attempt: Int, ticket: inout UInt64,
        inMemory: (Shard, EntryPointer, Key) throws(LarderError) -> Item, elsewhere: (ColdReads.Value) -> Item,
        abandon: ([Item]) -> Void = { _ in }
    ) throws(LarderError) -> [Item]? {
        var store: EpochStore?
        switch applied.presence {
        case .open(let open): store = open
        case .absent: break
        case .closed, .failed: return nil
        case .deleted: throw deletedError("update")
        case .shut(let error): throw error
        }
        let isCurrent = cold.store === store
        var result: [Item] = []
        result.reserveCapacity(keys.count)
        var isComplete = true
        do throws(LarderError) {
            for (position, key) in keys.enumerated() {
                fetchAhead(keys, position)
                let shard = shards[key]
                if let entry = shard.find(key) {
                    ticket = max(ticket, undecided(entry))
                    result.append(try inMemory(shard, entry, key))
                } else if let value = cold.slots[position].value, isCurrent,
                    cold.slots[position].mark == shard.reads.mark(key)
                {
                    result.append(elsewhere(value))
                } else if store != nil, key.withBytes({ isAbsentBelow(shard, $0, key.hash) }) {
                    // With a single key, an eviction here cannot remove an entry that was found for another key.
                    if keys.count == 1 {
                        key.withBytes { shard.keepAbsence($0, key.hash) }
                        shard.makeRoom()
                    }
                    result.append(elsewhere(.record(nil)))
                } else if let store, attempt >= Self.coldAttempts {
                    result.append(
                        elsewhere(try self.value(key, loading, in: store, applied.rules.purges, cold.fillCache)))
                } else if store == nil {
                    result.append(elsewhere(.record(nil)))
                } else {
                    cold.slots[position].value = nil
                    isComplete = false
                }
            }
        } catch {
            abandon(result)
            throw error
        }
        if isComplete { return result }
        abandon(result)
        return nil
    }

    /// Removes from the shards the records that these keys are being read. Called without any lock.
    func forget(_ keys: [Key], _ cold: inout ColdReads) {
        for (position, key) in keys.enumerated() where cold.slots[position].mark != nil {
            let shard = shards[key]
            shard.lock.withLock { shard.reads.end(key) }
            cold.slots[position] = ColdReads.Slot()
        }
    }
}

// MARK: Many long entries

/// The fresh entries of several keys at one instant. Long entries are pinned in memory while this object exists, and
/// are read without a lock. For one thread at a time.
package final class HeldEntries {
    fileprivate enum Item {
        case none
        case record(Record)
        case pinned(Shard, EntryPointer, RecordHeader, UnsafeRawBufferPointer)

        var header: RecordHeader? {
            switch self {
            case .none: nil
            case .record(let record): record.header
            case .pinned(_, _, let header, _): header
            }
        }

        var payloadCount: Int {
            switch self {
            case .none: 0
            case .record(let record): record.payloadCount
            case .pinned(_, _, let header, let record): record.count - header.byteCount
            }
        }

        /// Called with the shard's lock held.
        func unpin() { if case .pinned(_, let entry, _, _) = self { entry.unpin() } }
    }

    private let items: [Item]
    /// The rules that were used to find the entries fresh.
    package let rules: FreshnessRules

    fileprivate init(_ items: [Item], _ rules: FreshnessRules) {
        self.items = items
        self.rules = rules
    }

    deinit {
        for item in items {
            if case .pinned(let shard, _, _, _) = item { shard.lock.withLock { item.unpin() } }
        }
    }

    package var count: Int { items.count }

    /// The length of all payloads in bytes.
    package var payloadBytes: Int { items.reduce(0) { $0 + $1.payloadCount } }

    /// nil if there is no fresh entry.
    package func header(_ index: Int) -> RecordHeader? { items[index].header }

    /// - Parameter body: receives the payload, valid during the call; nil if there is no fresh entry.
    package func withPayload(_ index: Int, _ body: (UnsafeRawBufferPointer?) -> Void) {
        switch items[index] {
        case .none: body(nil)
        case .record(let record): record.withPayload { body($0) }
        case .pinned(_, _, let header, let record):
            body(UnsafeRawBufferPointer(rebasing: record[header.byteCount...]))
        }
    }
}

extension Database {
    /// Reads several keys at one instant. Their locks are held only for the lookup: long entries are not copied.
    /// Entries read from the disk are not kept in memory. Hits and misses are not counted here, because
    /// ``read(_:now:fillCache:ticket:holding:_:)``, called before, counts them. May block.
    /// - Parameters:
    ///   - bytesMax: the maximum number of bytes to read from the disk.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    /// - Throws: `invalidArgument` if the entries on the disk are longer than `bytesMax`.
    package func readMany(
        _ keys: [Key], now: Int64, bytesMax: Int, ticket: inout CommitTicket
    ) throws(LarderError) -> HeldEntries {
        try ForkGuard.check("get")
        let held = try withLoaded(keys, .records, .mayBlock, fillCache: true, bytesMax: bytesMax) {
            (cold, attempt) throws(LarderError) -> HeldEntries? in
            let rules = applied.rules
            var sequence = applied.sequence
            let items = try collect(keys, .records, &cold, attempt: attempt, ticket: &sequence) {
                (shard, entry, key) throws(LarderError) in
                try hold(entry, shard, key, rules, now)
            } elsewhere: { value in
                guard case .record(let record?) = value, rules.freshness(record.header, now: now) == .fresh else {
                    return .none
                }
                return .record(record)
            } abandon: { items in
                for item in items { item.unpin() }
            }
            guard let items else { return nil }
            ticket = max(ticket, CommitTicket(sequence: sequence))
            return HeldEntries(items, rules)
        }
        guard let held else { preconditionFailure("a blocking read did not finish") }
        return held
    }

    /// Pins an entry in memory. Called with the lock of its shard held.
    private func hold(
        _ entry: EntryPointer, _ shard: Shard, _ key: Key, _ rules: FreshnessRules, _ now: Int64
    ) throws(LarderError) -> HeldEntries.Item {
        let header: RecordHeader?
        do throws(RecordHeader.Defect) {
            header = try entry.record.map { (bytes) throws(RecordHeader.Defect) in
                try RecordHeader(parsing: bytes, rules.purges)
            }
        } catch {
            throw Self.defect(error, database: name, key: key)
        }
        let freshness = header.map { rules.freshness($0, now: now) }
        guard freshness == .fresh, let header, let bytes = entry.record else {
            if freshness == .gone { shard.foundExpired(entry) }
            return .none
        }
        if bytes.count >= context.options.pinnedBytesMin, entry.pin() { return .pinned(shard, entry, header, bytes) }
        return .record(Record(header, stored: bytes))
    }
}
