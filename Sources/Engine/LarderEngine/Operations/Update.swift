/// One command's changes to its keys. It reads the present entries and records operations with absolute results.
///
/// Valid only inside the closure of ``Database/update(_:loading:now:durability:fillCache:_:)``.
package struct Update {
    let database: Database
    package private(set) var keys: [Key]
    package let now: Int64
    package let rules: FreshnessRules
    let generation: UInt32
    /// The stored entries, expired or not, in the order of `keys`. Empty if the update does not load.
    private var loaded: [Record?]
    /// The keys with an unreadable record, in an update that loads only headers.
    private(set) var unreadable: Set<Int> = []
    /// The lengths of records whose headers alone were loaded, in the order of `keys`; empty if the update loads
    /// records.
    private var byteCounts: [Int] = []
    /// For each key, the index in `loaded` of its first occurrence. nil if no key is repeated.
    private var slots: [Int]?
    /// The changes of `loaded` by the running command of a transaction, for a rollback; nil outside of a command.
    private var undo: [(slot: Int, record: Record?)]?
    private(set) var operations: [CommitOperation] = []
    /// The origin of the following operations.
    package var origin = WriteOrigin()
    /// Their place in a transaction.
    var step = 0
    /// For each key, the effect of its next operation on its lease, if it is not the usual one.
    private var leaseEffects: [Key: LeaseEffect] = [:]
    /// Whether the update waited until earlier changes of its keys were committed: see ``Database/Request/observed``.
    var observes = false
    /// Whether the update runs tentatively, without locks. Its changes are never applied.
    private let isSpeculative: Bool
    /// Whether a command of a transaction is running.
    private var isNarrowed: Bool { undo != nil }
    /// The keys of the first ``changedCount`` operations, in a transaction that uses leases.
    private var changedKeys: Set<Key> = []
    private var changedCount = 0
    /// The total bytes of values that the command built, in contrast to received values.
    package private(set) var builtBytes = 0

    /// Creates an update with the stored entries in the order of `keys`; none for a command that does not load. Called
    /// with the shard locks of the keys held.
    /// - Parameter slots: from ``slotsOfRepeatedKeys(_:)``.
    /// - Throws: if the command needs a whole record that cannot be read.
    init(
        _ database: Database, _ keys: [Key], slots: [Int]?, _ now: Int64, _ loading: Loading,
        _ values: [ColdReads.Value], isSpeculative: Bool = false
    ) throws(LarderError) {
        self.database = database
        self.isSpeculative = isSpeculative
        let state = database.applied
        self.keys = keys
        self.slots = slots
        self.now = now
        rules = state.rules
        generation = state.generation
        loaded = []
        loaded.reserveCapacity(values.count)
        if loading == .headers { byteCounts = Array(repeating: 0, count: values.count) }
        for (index, value) in values.enumerated() {
            switch value {
            case .record(let record): loaded.append(record)
            case .header(let header, let byteCount):
                loaded.append(Record(headerOnly: header))
                byteCounts[index] = byteCount
            case .unreadable(let error):
                guard loading == .headers else { throw error }
                loaded.append(nil)
                unreadable.insert(index)
            }
        }
    }

    /// For each key, the index of its first occurrence; nil if no key is repeated. Call it without a lock: for a
    /// million keys it takes some tenths of a second.
    static func slotsOfRepeatedKeys(_ keys: [Key]) -> [Int]? {
        guard keys.count > 1 else { return nil }
        // A hash table of positions with linear probing, at most half full. It uses the keys' own hashes.
        var capacity = 4
        while capacity < 2 * keys.count { capacity *= 2 }
        var places = [Int32](repeating: -1, count: capacity)
        var slots: [Int]?
        for index in keys.indices {
            var place = keys[index].hash & (capacity - 1)
            while places[place] >= 0, keys[Int(places[place])] != keys[index] { place = (place + 1) & (capacity - 1) }
            if places[place] < 0 {
                places[place] = Int32(index)
            } else {
                if slots == nil { slots = Array(keys.indices) }
                slots?[index] = Int(places[place])
            }
        }
        return slots
    }

    private func slot(_ index: Int) -> Int { slots?[index] ?? index }

    /// Adds a key and its stored entry, between two commands of a transaction that is run tentatively without locks.
    /// - Returns: the key's index.
    mutating func add(_ key: Key, _ value: ColdReads.Value) throws(LarderError) -> Int {
        precondition(isSpeculative && !isNarrowed, "only what is tried without locks finds its keys while it runs")
        switch value {
        case .record(let record): loaded.append(record)
        case .header: preconditionFailure("a transaction loads records")
        case .unreadable(let error): throw error
        }
        keys.append(key)
        return keys.count - 1
    }

    /// Whether every loaded entry that is fresh at this update's time is also fresh at another time, and vice versa.
    func isAsFresh(at time: Int64) -> Bool {
        loaded.allSatisfy { record in
            guard let header = record?.header else { return true }
            return rules.freshness(header, now: now) == rules.freshness(header, now: time)
        }
    }

    /// The fresh entry of the key at `index`, after the update's changes so far.
    package func current(_ index: Int) -> Record? {
        loaded[slot(index)].flatMap { rules.freshness($0.header, now: now) == .fresh ? $0 : nil }
    }

    /// The entry at `index` whose rule, grace and tags its new value keeps; nil if there is none.
    /// - Parameter isRefresh: whether the value was fetched with a lease. In that case a stale entry is also returned,
    ///   and its lifetime restarts with the same length, because its expiry caused the fetch.
    package func kept(_ index: Int, isRefresh: Bool) -> Record? {
        guard isRefresh else { return current(index) }
        guard let record = stored(index), rules.freshness(record.header, now: now) != .gone else { return nil }
        return record.with(rule: renewed(record.header))
    }

    /// The rule of an entry whose lifetime restarts.
    private func renewed(_ header: RecordHeader) -> DeadlineRule {
        guard case .own(let deadline) = header.rule else { return header.rule }
        // Deadlines stored by earlier versions of Larder may have any value.
        return .own(now.addingClamped(max(1, deadline.subtractingClamped(header.storedAt))))
    }

    /// The entry stored under the key at `index`, expired or not.
    func stored(_ index: Int) -> Record? { loaded[slot(index)] }

    /// The length in bytes that the entry at `index` had in LevelDB when the update began.
    func byteCount(_ index: Int) -> Int {
        keys[index].stored.count + (byteCounts.isEmpty ? stored(index)?.stored.count ?? 0 : byteCounts[index])
    }

    /// Whether anything is stored under the key at `index`, expired or not.
    package func isStored(_ index: Int) -> Bool { loaded[slot(index)] != nil }

    /// Stores a record under the key at `index`.
    package mutating func put(_ index: Int, _ record: Record) {
        operations.append(.put(keys[index], record, changeNote(index)))
        note(index, record)
    }

    /// Makes the fresh entry at `index` permanent, regardless of the database's policy.
    /// - Returns: whether the entry had a deadline. If not, listeners are not notified.
    package mutating func persist(_ index: Int) -> Bool {
        guard let record = current(index) else { return false }
        let hadDeadline = rules.deadline(record.header) != nil
        guard record.header.rule != .ownNever else { return false }
        var note = changeNote(index)
        note.isUnseen = !hadDeadline
        let kept = record.with(rule: .ownNever)
        operations.append(.put(keys[index], kept, note))
        self.note(index, kept)
        return hadDeadline
    }

    /// Sets another rule for the fresh entry at `index`. Its value and its storage time do not change. Not counted as a
    /// write in Larder's own statistics.
    package mutating func renew(_ index: Int, _ rule: DeadlineRule) {
        guard let record = current(index)?.with(rule: rule) else { return }
        var note = changeNote(index)
        note.isRenewal = true
        operations.append(.put(keys[index], record, note))
        self.note(index, record)
    }

    /// Stores a payload under the key at `index`, stamped with this update's time.
    package mutating func put(
        _ index: Int, payload: UnsafeRawBufferPointer, rule: DeadlineRule = .governed, grace: Int64? = nil,
        codec: Codec = .raw, tags: Tags? = nil
    ) {
        let header = header(rule, grace, codec)
        guard let tags, !tags.isEmpty else { return put(index, Record(header, payload: payload)) }
        put(index, Record(header, tags: tags.section(stamp: stamp), payload: payload))
    }

    /// The stamp of tagged entries that this update stores: see ``Tags/section(stamp:)``.
    private var stamp: UInt64 { database.pipeline.everythingApplied.sequence }

    /// The tags section of a new record that keeps the tags of a previous one.
    private func tags(of previous: Record?) -> [UInt8] { previous?.tags?.section(stamp: stamp) ?? [] }

    private func header(_ rule: DeadlineRule, _ grace: Int64?, _ codec: Codec) -> RecordHeader {
        RecordHeader(
            storedAt: now, rule: rules.stored(rule, now: now), codec: codec, generation: generation, grace: grace)
    }

    /// Like ``put(_:payload:rule:grace:codec:)``, for a payload that may be staged. With a staged payload, this must be
    /// the update's only operation, and the entry must not be read afterwards.
    /// - Parameter long: the staged payload; nil if the payload was too short to be staged.
    package mutating func put(
        _ index: Int, payload: UnsafeRawBufferPointer, long: LargeValue?, rule: DeadlineRule = .governed,
        grace: Int64? = nil, codec: Codec = .raw, tags: Tags? = nil
    ) {
        put(index, header(rule, grace, codec), payload, long, tags)
    }

    private mutating func put(
        _ index: Int, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer, _ long: LargeValue?, _ tags: Tags?
    ) {
        if let long, long.headerCount == header.byteCount, keys == [long.key], operations.isEmpty, tags == nil {
            operations.append(.putLarge(long, header, changeNote(index)))
        } else {
            let section = tags.map { $0.isEmpty ? [] : $0.section(stamp: stamp) } ?? []
            put(index, Record(header, tags: section, payload: payload))
        }
    }

    /// The time when the fresh or stale entry at `index` was stored, in milliseconds since 1970; nil if there is none.
    package func storedAt(_ index: Int) -> Int64? {
        stored(index).flatMap { rules.freshness($0.header, now: now) == .gone ? nil : $0.header.storedAt }
    }

    /// Stores an entry of another larder. Keeps its storage time and its rule if the rules of this database allow
    /// (``FreshnessRules/taking(_:)``).
    /// - Parameter long: as for ``put(_:payload:long:rule:grace:codec:tags:)``.
    /// - Returns: false if the entry has expired and was therefore not stored.
    package mutating func place(
        _ index: Int, _ header: RecordHeader, payload: UnsafeRawBufferPointer, long: LargeValue?, tags: Tags?
    ) -> Bool {
        var header = rules.taking(header)
        header.generation = generation
        guard rules.freshness(header, now: now) != .gone else { return false }
        put(index, header, payload, long, tags)
        return true
    }

    /// Stores the record of another key or database. Keeps its codec, and also its storage time and its rule if the
    /// rules of this database allow (``FreshnessRules/taking(_:)``).
    package mutating func place(_ index: Int, _ record: Record) {
        var header = rules.taking(record.header)
        header.generation = generation
        if header == record.header, !header.hasTags { return put(index, record) }
        put(index, Record(header, tags: tags(of: record), payload: record.payload))
    }

    /// Changes the value at `index` in place: resizes it to `count` bytes, padded with zeros, and lets `edit` write
    /// into it. A fresh entry keeps its deadline rule and its codec; a new entry is governed by the policy. Both get
    /// this update's time.
    package mutating func change(_ index: Int, count: Int, _ edit: (UnsafeMutableRawBufferPointer) -> Void) {
        let previous = current(index)
        let header = header(previous?.header.rule ?? .governed, previous?.header.grace, previous?.header.codec ?? .raw)
        builtBytes += count
        put(index, Record(header, tags: tags(of: previous), count: count, previous: previous, edit))
    }

    /// Adds the length of a value that was built for ``put(_:payload:rule:grace:codec:)`` to ``builtBytes``.
    package mutating func noteBuilt(_ count: Int) { builtBytes += count }

    // MARK: Leases

    /// Whether a lease of the key at `index` is valid. If so, the next change of the key by this update completes the
    /// lease.
    /// - Parameter tags: the tags of the value. If one was purged since the lease was granted, the value may be
    ///   outdated.
    package mutating func holdsLease(_ index: Int, _ token: UInt64, tags: Tags? = nil) -> Bool {
        let key = keys[index]
        let purged = tags.flatMap { rules.purges?.last(of: $0) } ?? 0
        guard !isChanged(key), isValid(key, token, purgedAt: purged) else { return false }
        leaseEffects[key] = .refreshed
        return true
    }

    private func isValid(_ key: Key, _ token: UInt64, purgedAt purged: UInt64) -> Bool {
        let shard = database.shards[key]
        if isSpeculative { shard.lock.lock() }
        defer { if isSpeculative { shard.lock.unlock() } }
        return shard.leases?.isValid(key, token, purgedAt: purged) ?? false
    }

    /// Whether an earlier command of the transaction has changed a key, and thereby ended its lease.
    private mutating func isChanged(_ key: Key) -> Bool {
        guard isNarrowed else { return false }
        for operation in operations[changedCount...] { changedKeys.insert(operation.key) }
        changedCount = operations.count
        return changedKeys.contains(key)
    }

    /// If a lease of the key at `index` is valid, makes the removal that follows record that the origin has no value.
    mutating func restsWithLease(_ index: Int, _ token: UInt64, milliseconds: Int64) -> Bool {
        let key = keys[index]
        let until = database.context.time.monotonic() + milliseconds
        guard !isChanged(key), database.shards[key].leases?.isValidForAbsence(key, token) ?? false else { return false }
        leaseEffects[key] = .absent(until: until)
        return true
    }

    /// Ends a lease of the key at `index` without a change.
    /// - Returns: whether the lease was valid.
    package func release(_ index: Int, _ token: UInt64, _ release: LeaseRelease) -> Bool {
        let key = keys[index]
        return database.shards[key].leases?.release(key, token, release) ?? false
    }

    /// Restarts the lifetime of the fresh or stale entry at `index`, as if its value had been stored now.
    /// - Returns: false if there is no such entry.
    mutating func renew(_ index: Int) -> Bool {
        guard let record = stored(index), rules.freshness(record.header, now: now) != .gone else { return false }
        var header = record.header
        header.rule = renewed(header)
        header.storedAt = now
        put(index, Record(header, tags: tags(of: record), payload: record.payload))
        return true
    }

    /// Removes the key at `index`, even if its entry has expired or there is none.
    package mutating func remove(_ index: Int) {
        operations.append(.remove(keys[index], changeNote(index)))
        note(index, nil)
    }

    /// Removes the key at `index` without ending its lease. For an entry that was not visible, or a lease that is newer
    /// than the call that removes the entry.
    mutating func removeKeepingLease(_ index: Int) {
        leaseEffects[keys[index]] = LeaseEffect.none
        remove(index)
    }

    /// Removes the key at `index` if it is stored. Always outdates a running fetch of the key.
    package mutating func removeStored(_ index: Int) {
        guard !isStored(index) else { return remove(index) }
        if isSpeculative { return }
        if isFollowed { return removeAbsent(index) }
        endLease(index)
    }

    /// Outdates a running fetch of the key at `index`.
    func endLease(_ index: Int) {
        let key = keys[index]
        key.withBytes { database.shards[key].leases?.changed($0, .outdated, isRemoval: true) }
    }

    /// Whether other larders follow this database. They may still have entries that were evicted here.
    var isFollowed: Bool {
        guard database.context.changes.isOn, case .open = database.applied.presence else { return false }
        return database.context.changeLog.isFollowed(database)
    }

    /// Reports a removal of the key at `index`, which has no entry, to followers. Nothing else happens.
    mutating func removeAbsent(_ index: Int) {
        var note = changeNote(index)
        note.isUnseen = true
        operations.append(.remove(keys[index], note))
    }

    private mutating func changeNote(_ index: Int) -> ChangeNote {
        var note = ChangeNote(origin: origin, step: step)
        if note.origin.version.time == 0 { note.origin.version.time = now }
        if !leaseEffects.isEmpty { note.lease = leaseEffects.removeValue(forKey: keys[index]) ?? .outdated }
        if loaded.isEmpty { return note }
        note.previous = current(index).map { EntryChange.Previous.fresh($0.header.rule) } ?? .absent
        note.previousHasExpired = note.previous == .absent && isStored(index)
        return note
    }

    /// If two indices refer to the same key, each sees the other's changes.
    private mutating func note(_ index: Int, _ record: Record?) {
        guard !loaded.isEmpty else { return }
        let slot = slot(index)
        undo?.append((slot, loaded[slot]))
        loaded[slot] = record
    }

    /// Runs one command of a transaction on the keys at `positions` among this update's keys, all distinct. If `body`
    /// throws, only that command's changes are undone.
    mutating func narrowed(
        to positions: [Int], _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        let (allKeys, allSlots, count) = (keys, slots, operations.count)
        keys = positions.map { allKeys[$0] }
        slots = positions
        undo = []
        defer {
            keys = allKeys
            slots = allSlots
            undo = nil
        }
        do throws(LarderError) {
            try body(&self)
        } catch {
            operations.removeLast(operations.count - count)
            if changedCount > count { (changedKeys, changedCount) = ([], 0) }
            for change in (undo ?? []).reversed() { loaded[change.slot] = change.record }
            throw error
        }
    }
}
