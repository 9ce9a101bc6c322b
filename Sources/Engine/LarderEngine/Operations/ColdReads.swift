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
        case absent
        case record(Record)
        /// The header, and the record's length.
        case header(RecordHeader, byteCount: Int)
        /// A record whose header this version cannot read.
        case unreadable

        var record: Record? {
            if case .record(let record) = self { record } else { nil }
        }
    }

    fileprivate var store: EpochStore?
    /// One for each key; empty as long as nothing was read.
    private var slots: [Slot] = []
    private let count: Int

    /// Whether the blocks that are read stay in the block cache.
    fileprivate let fillCache: Bool

    /// The number of record bytes that may still be read.
    fileprivate var room: Int

    init(count: Int, fillCache: Bool, bytesMax: Int = .max) {
        self.count = count
        self.fillCache = fillCache
        room = bytesMax
    }

    fileprivate subscript(position: Int) -> Slot {
        get { slots.isEmpty ? Slot() : slots[position] }
        set {
            if slots.isEmpty { slots = Array(repeating: Slot(), count: count) }
            slots[position] = newValue
        }
    }

    fileprivate var isEmpty: Bool { slots.isEmpty }
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
        defer { forget(keys, &cold) }
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
        for (position, key) in keys.enumerated() where cold[position].value == nil {
            let shard = shards[key]
            let isKnown = shard.lock.withLock {
                if shard.find(key) != nil { return true }
                let isBegun = cold[position].mark != nil
                cold[position].mark = isBegun ? shard.reads.mark(key) : shard.reads.begin(key)
                if !isBegun, cold.fillCache { shard.noteDiskRead(key.hash) }
                return false
            }
            if isKnown { continue }
            do throws(LarderError) {
                let value = try value(key, loading, in: store, purges, cold.fillCache)
                cold[position].value = value
                if let record = value.record { cold.room = max(-1, cold.room - record.stored.count) }
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
    private func stored(
        _ entry: EntryPointer, _ loading: Loading, _ key: Key
    ) throws(LarderError) -> Update.Stored {
        guard let bytes = entry.record else { return .absent }
        do throws(RecordHeader.Defect) {
            let header = try RecordHeader(parsing: bytes, applied.rules.purges)
            if loading == .headers { return .header(header, byteCount: bytes.count) }
            return .view(header, bytes)
        } catch {
            if loading == .headers { return .unreadable }
            throw Self.defect(error, database: name, key: key)
        }
    }

    private func value(
        _ key: Key, _ loading: Loading, in store: EpochStore, _ purges: TagPurges?, _ fillCache: Bool
    ) throws(LarderError) -> ColdReads.Value {
        guard loading == .headers else {
            return try load(key, from: store, purges, fillCache: fillCache).map { .record($0) } ?? .absent
        }
        guard let (parsed, byteCount) = try store.header(of: key, purges) else { return .absent }
        switch parsed {
        case .success(let header): return .header(header, byteCount: byteCount)
        case .failure: return .unreadable
        }
    }

    /// Finds the entries stored under some consecutive keys of an update. Called with all their shard locks held.
    /// - Parameters:
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - first: the index of the first key.
    /// - Returns: false if too many of the cold entries have changed since they were read.
    func gather(
        _ keys: [Key], _ loading: Loading, _ cold: inout ColdReads, attempt: Int, ticket: inout UInt64,
        into update: Update, from first: Int = 0
    ) throws(LarderError) -> Bool {
        var position = first - 1
        return try collect(keys, loading, &cold, attempt: attempt, ticket: &ticket) {
            (shard, entry, key) throws(LarderError) in
            position += 1
            var stored = try self.stored(entry, loading, key)
            if update.isSpeculative, stored.kind == .record {
                stored = update.own(Record(stored.header, stored: stored.bytes))
            }
            if stored.hasHeader, update.rules.freshness(stored.header, now: update.now) == .gone {
                shard.foundExpired(entry)
            }
            update.take(stored, at: position)
        } elsewhere: {
            position += 1
            let stored: Update.Stored =
                switch $0 {
                case .absent: .absent
                case .record(let record): update.own(record)
                case .header(let header, let byteCount): .header(header, byteCount: byteCount)
                case .unreadable: .unreadable
                }
            update.take(stored, at: position)
        }
    }

    /// Finds the entry stored under a key. Called with its shard lock held.
    /// - Parameter ticket: raised to cover the commits that the reply has to wait for.
    /// - Returns: nil if the entry has changed since it was read.
    func find(
        _ key: Key, _ cold: inout ColdReads, attempt: Int, now: Int64, ticket: inout UInt64
    ) throws(LarderError) -> Record?? {
        var found: Record?
        let isComplete = try collect([key], .records, &cold, attempt: attempt, ticket: &ticket) {
            (shard, entry, key) throws(LarderError) in
            let stored = try stored(entry, .records, key)
            if stored.kind == .record { found = Record(stored.header, stored: stored.bytes) }
            if let header = found?.header, applied.rules.freshness(header, now: now) == .gone {
                shard.foundExpired(entry)
            }
        } elsewhere: {
            found = $0.record
        }
        return isComplete ? .some(found) : nil
    }

    /// Passes on each entry stored under `keys`, in their order. Called with all their shard locks held.
    /// - Parameters:
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - inMemory: receives an entry in memory.
    ///   - elsewhere: receives an entry that was read from LevelDB.
    /// - Returns: false if too many of the cold entries have changed since they were read; some were passed on then.
    private func collect(
        _ keys: [Key], _ loading: Loading, _ cold: inout ColdReads, attempt: Int, ticket: inout UInt64,
        inMemory: (Shard, EntryPointer, Key) throws(LarderError) -> Void, elsewhere: (ColdReads.Value) -> Void
    ) throws(LarderError) -> Bool {
        var store: EpochStore?
        switch applied.presence {
        case .open(let open): store = open
        case .absent: break
        case .closed, .failed: return false
        case .deleted: throw deletedError("update")
        case .shut(let error): throw error
        }
        let isCurrent = cold.store === store
        var isComplete = true
        for (position, key) in keys.enumerated() {
            fetchAhead(keys, position)
            let shard = shards[key]
            if let entry = shard.find(key) {
                ticket = max(ticket, undecided(entry))
                try inMemory(shard, entry, key)
            } else if isCurrent, !cold.isEmpty, let value = cold[position].value,
                cold[position].mark == shard.reads.mark(key)
            {
                elsewhere(value)
            } else if store != nil, key.withBytes({ isAbsentBelow(shard, $0, key.hash) }) {
                // With a single key, an eviction here cannot remove an entry that was found for another key.
                if keys.count == 1 {
                    key.withBytes { shard.keepAbsence($0, key.hash) }
                    shard.makeRoom()
                }
                elsewhere(.absent)
            } else if let store, attempt >= Self.coldAttempts {
                elsewhere(try value(key, loading, in: store, applied.rules.purges, cold.fillCache))
            } else if store == nil {
                elsewhere(.absent)
            } else {
                if !cold.isEmpty { cold[position].value = nil }
                elsewhere(.absent)
                isComplete = false
            }
        }
        return isComplete
    }

    /// Removes from the shards the records that these keys are being read. Called without any lock.
    func forget(_ keys: [Key], _ cold: inout ColdReads) {
        if cold.isEmpty { return }
        for (position, key) in keys.enumerated() where cold[position].mark != nil {
            let shard = shards[key]
            shard.lock.withLock { shard.reads.end(key) }
            cold[position] = ColdReads.Slot()
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
            var items: [HeldEntries.Item] = []
            items.reserveCapacity(keys.count)
            var isComplete = false
            defer { if !isComplete { for item in items { item.unpin() } } }
            isComplete = try collect(keys, .records, &cold, attempt: attempt, ticket: &sequence) {
                (shard, entry, key) throws(LarderError) in
                items.append(try hold(entry, shard, key, rules, now))
            } elsewhere: { stored in
                guard let record = stored.record, rules.freshness(record.header, now: now) == .fresh else {
                    return items.append(.none)
                }
                items.append(.record(record))
            }
            guard isComplete else { return nil }
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
