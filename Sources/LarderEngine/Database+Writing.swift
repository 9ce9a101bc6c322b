/// What one command does to the keys it named: it sees the entries as they are and leaves absolute results.
///
/// Valid only inside the closure of ``Database/update(_:loading:now:durability:_:)``.
package struct Update {
    package let keys: [Key]
    package let now: Int64
    package let rules: FreshnessRules
    let generation: UInt32
    /// What is stored, expired or not, in the order of `keys`. Empty when the update does not load.
    private var loaded: [Record?]
    /// Where the record of each key stands in `loaded`, if a key is named twice: with its first mention.
    private let slots: [Int]?
    fileprivate(set) var operations: [CommitOperation] = []

    init(keys: [Key], now: Int64, rules: FreshnessRules, generation: UInt32, loaded: [Record?]) {
        self.keys = keys
        self.now = now
        self.rules = rules
        self.generation = generation
        self.loaded = loaded
        slots = loaded.count > 1 ? Self.slotsOfRepeatedKeys(keys) : nil
    }

    /// nil where no key is named twice.
    private static func slotsOfRepeatedKeys(_ keys: [Key]) -> [Int]? {
        var first: [Key: Int] = [:]
        first.reserveCapacity(keys.count)
        let slots = keys.indices.map { index in
            if let earlier = first[keys[index]] { return earlier }
            first[keys[index]] = index
            return index
        }
        return first.count == keys.count ? nil : slots
    }

    private func slot(_ index: Int) -> Int { slots?[index] ?? index }

    /// The fresh entry of the key at `index`, as left by what this update did so far.
    package func current(_ index: Int) -> Record? {
        loaded[slot(index)].flatMap { rules.freshness($0.header, now: now) == .fresh ? $0 : nil }
    }

    /// What is stored under the key at `index`, expired or not.
    func stored(_ index: Int) -> Record? { loaded[slot(index)] }

    /// Whether anything is stored under the key at `index`, expired or not.
    package func isStored(_ index: Int) -> Bool { loaded[slot(index)] != nil }

    /// Stores a record under the key at `index`.
    package mutating func put(_ index: Int, _ record: Record) {
        let key = keys[index]
        operations.append(
            .put(key, record, index: ExpiryIndex.key(for: key, record.header, policy: rules.policy)))
        note(index, record)
    }

    /// Stores a payload under the key at `index`, stamped with this update's time.
    package mutating func put(
        _ index: Int, payload: UnsafeRawBufferPointer, rule: DeadlineRule = .governed, codec: Codec = .raw
    ) {
        let header = RecordHeader(storedAt: now, rule: rule, codec: codec, generation: generation)
        put(index, Record(header, payload: payload))
    }

    /// Removes the key at `index`, whatever is stored there.
    package mutating func remove(_ index: Int) {
        operations.append(.remove(keys[index]))
        note(index, nil)
    }

    /// Removes a record of the expiry index.
    mutating func dropIndex(_ key: [UInt8]) { operations.append(.dropIndex(key)) }

    /// Two indices may name the same key: what one wrote the other sees.
    private mutating func note(_ index: Int, _ record: Record?) {
        if !loaded.isEmpty { loaded[slot(index)] = record }
    }
}

extension Database {
    /// Runs one command on `keys`: everything it reads and writes happens at one instant, and what it writes is one
    /// commit unit.
    ///
    /// Cold keys are read before the locks are taken; with the shard locks held (in index order) it is checked that
    /// nothing changed meanwhile, and read again otherwise.
    ///
    /// - Parameters:
    ///   - keys: every key the command reads or writes.
    ///   - loading: whether the command needs the entries that are there. Blind writes do without.
    ///   - now: the command's time.
    ///   - durability: for this write, instead of the larder's.
    ///   - body: called once with the locks held. Short, must not block, must not call the engine. What it throws
    ///     undoes everything.
    /// - Returns: what `body` returned, and what the answer has to wait for.
    package func update<Result>(
        _ keys: [Key], loading: Bool, now: Int64, durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> (Result, CommitTicket) {
        try ForkGuard.check("update")
        let indices = shardIndices(keys)
        var attempt = 0
        while true {
            attempt += 1
            // After two misses the keys are hot: read them under the locks.
            let cold = loading && attempt <= 2 ? try loadCold(keys) : nil
            for index in indices { shard(index).lock.lock() }
            defer { for index in indices.reversed() { shard(index).lock.unlock() } }

            let state = applied
            var ticket = state.sequence
            var loaded: [Record?] = []
            if loading {
                guard let found = try gather(keys, cold, state, &ticket) else { continue }
                loaded = found
            }
            var update = Update(
                keys: keys, now: now, rules: state.rules, generation: state.generation, loaded: loaded)
            let result = try body(&update)
            if !update.operations.isEmpty {
                ticket = max(ticket, try apply(update.operations, state, durability))
            }
            return (result, CommitTicket(sequence: ticket))
        }
    }

    private func shardIndices(_ keys: [Key]) -> [Int] {
        if keys.count == 1 { return [shardIndex(keys[0])] }
        var used: UInt32 = 0
        for key in keys { used |= 1 << UInt32(shardIndex(key)) }
        return (0..<Shard.count).filter { used & 1 << UInt32($0) != 0 }
    }

    /// What was read without the locks: valid only while the shard's version and the store are the same.
    private struct Cold {
        var store: EpochStore?
        var versions: [UInt64]
        var records: [Record?]
    }

    private func loadCold(_ keys: [Key]) throws(LarderError) -> Cold? {
        let state = appliedState
        let store = try readableStore(state, "update")
        var cold = Cold(store: store, versions: [], records: [])
        for key in keys {
            let shard = shard(shardIndex(key))
            shard.lock.lock()
            cold.versions.append(shard.version)
            let isPending = shard.overlay[key] != nil
            shard.lock.unlock()
            guard let store, !isPending else {
                cold.records.append(nil)
                continue
            }
            do throws(LarderError) {
                cold.records.append(try load(key, from: store))
            } catch {
                if error.code == .purged { return Cold(store: nil, versions: [], records: []) }
                throw error
            }
        }
        return cold
    }

    /// The records of `keys` as they are, with the locks held; nil when what was read cold is out of date.
    private func gather(_ keys: [Key], _ cold: Cold?, _ state: State, _ ticket: inout UInt64) throws(LarderError)
        -> [Record?]?
    {
        if case .deleted = state.presence { throw deletedError("update") }
        if let cold, cold.store !== state.store || cold.versions.count != keys.count { return nil }
        var result: [Record?] = []
        result.reserveCapacity(keys.count)
        for (position, key) in keys.enumerated() {
            let shard = shard(shardIndex(key))
            if let pending = shard.overlay[key] {
                ticket = max(ticket, pending.sequence)
                result.append(pending.record)
            } else if let cold {
                guard cold.versions[position] == shard.version else { return nil }
                result.append(cold.records[position])
            } else if let store = state.store {
                result.append(try load(key, from: store))
            } else {
                result.append(nil)
            }
        }
        return result
    }

    /// Puts operations into the overlay and the queue. Called with the locks held of every shard they touch.
    private func apply(_ operations: [CommitOperation], _ state: State, _ durability: Durability?) throws(LarderError)
        -> UInt64
    {
        let store: EpochStore
        switch state.presence {
        case .open(let open): store = open
        case .failed(let error), .shut(let error): throw error
        case .deleted: throw deletedError("update")
        case .absent, .closed:
            throw LarderError(.noSuchDatabase, "the database is not open", operation: "update", database: name)
        }
        if let error = store.suspension("update") { throw error }
        let sync = (durability ?? context.options.durability) == .always
        let sequence = pipeline.enqueue(CommitUnit(.write(self, store, operations), sync: sync))
        for operation in operations {
            switch operation {
            case .put(let key, let record, _):
                set(key, PendingEntry(sequence: sequence, record: record))
                context.statistics.writes.add()
            case .remove(let key):
                set(key, PendingEntry(sequence: sequence, record: nil))
                context.statistics.removals.add()
            case .dropIndex: break
            }
        }
        return sequence
    }

    private func set(_ key: Key, _ entry: PendingEntry) {
        let shard = shard(shardIndex(key))
        shard.overlay[key] = entry
        shard.version += 1
    }

    /// As ``update(_:loading:now:durability:_:)``, and waits until it is committed. Opens, creates or reopens the
    /// database first if that is needed. For callers that may block.
    package func commit<Result>(
        _ keys: [Key], loading: Bool, durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        if !isReady(forWriting: true) { try prepare(forWriting: true) }
        while pipeline.isCongested { pipeline.drain() }
        let (result, ticket) = try update(keys, loading: loading, now: now(), durability: durability, body)
        try pipeline.wait(for: ticket)
        return result
    }

    /// As ``read(_:now:fillCache:)``, and waits until what was read is committed. For callers that may block.
    package func get(_ key: Key, fillCache: Bool = true) throws(LarderError) -> Record? {
        let result = try read(key, now: now(), fillCache: fillCache)
        try pipeline.wait(for: result.ticket)
        return result.record
    }
}
