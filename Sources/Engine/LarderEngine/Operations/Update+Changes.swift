import LarderPlatform
import LarderVocabulary

/// Operations that change the entries of an update.
extension Update {
    var hasChanges: Bool { operations.count > 0 }

    /// The total length in bytes of the records that the update stores.
    var storedByteCount: Int {
        operations.indices.reduce(large?.staged.byteCount ?? 0) { $0 + operations[$1].pointee.stored.byteCount }
    }

    /// The place of each operation in its transaction.
    var steps: [Int] { operations.indices.map { operations[$0].pointee.note.step } }

    /// Records an operation on the key at `index`.
    private func append(_ index: Int, _ stored: Stored, _ note: ChangeNote) {
        let slot = slot(index)
        if undo != nil { undo?.append((slot, slots[slot].pointee)) }
        slots[slot].pointee.lease = .outdated
        slots[slot].pointee.changedBy = commandCount
        if loading != .none { take(stored, at: slot) }
        let place = slots[slot].pointee.operation
        if merges, place >= 0 {
            var note = note
            note.previous = operations[place].pointee.note.previous
            note.previousHasExpired = operations[place].pointee.note.previousHasExpired
            operations[place].pointee = Operation(slot: slot, stored: stored, note: note)
        } else {
            slots[slot].pointee.operation = operations.count
            operations.append(Operation(slot: slot, stored: stored, note: note))
        }
    }

    private func changeNote(_ index: Int) -> ChangeNote {
        var note = ChangeNote(origin: origin, step: step)
        if note.origin.version.time == 0 { note.origin.version.time = now }
        note.lease = slots[slot(index)].pointee.lease
        guard loading != .none else { return note }
        if let header = header(index) {
            note.previous = .fresh(header.rule)
        } else {
            note.previous = .absent
            note.previousHasExpired = isStored(index)
        }
        return note
    }

    /// Copies a record's tail into ``arena``.
    /// - Returns: the copy; nil if the arena has no space for it.
    private func copy(_ tail: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard tail.count <= Self.arenaBytes - arenaCount else { return nil }
        if arena == nil { arena = malloc(Self.arenaBytes) }
        guard let place = arena.map({ $0 + arenaCount }) else { return nil }
        if let start = tail.baseAddress { place.copyMemory(from: start, byteCount: tail.count) }
        arenaCount += tail.count
        return UnsafeRawBufferPointer(start: place, count: tail.count)
    }

    /// Stores a payload as a record without tags.
    private func put(_ index: Int, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer) {
        let header = header.tagged(0)
        let note = changeNote(index)
        if let copy = copy(payload) {
            append(index, Stored(RecordView(header, tail: copy)), note)
        } else {
            append(index, own(Record(header, payload: payload)), note)
        }
    }

    /// Stores a record under the key at `index`.
    package func put(_ index: Int, _ record: Record) { append(index, own(record), changeNote(index)) }

    /// The sequence number that this update stores with tagged entries, so that later purges are detected: see
    /// ``Tags/section(stamp:)``.
    private var stamp: UInt64 { database.pipeline.everythingApplied.sequence }

    /// The tags section of a new record that keeps the tags of a previous one.
    private func tags(of previous: Record?) -> [UInt8] { previous?.tags?.section(stamp: stamp) ?? [] }

    private func header(_ rule: DeadlineRule, _ grace: Int64?, _ codec: Codec) -> RecordHeader {
        RecordHeader(
            storedAt: now, rule: rules.stored(rule, now: now), codec: codec, generation: generation, grace: grace)
    }

    /// Stores a payload under the key at `index`, with this update's time as its storage time.
    /// - Parameter long: if the payload is long, the staged payload on the disk. This must then be the update's only
    ///   operation, and the entry must not be read afterwards.
    package func put(
        _ index: Int, payload: UnsafeRawBufferPointer, long: LargeValue? = nil, rule: DeadlineRule = .governed,
        grace: Int64? = nil, codec: Codec = .raw, tags: Tags? = nil
    ) {
        put(index, header(rule, grace, codec), payload, long, tags)
    }

    private func put(
        _ index: Int, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer, _ long: LargeValue?, _ tags: Tags?
    ) {
        if let long, long.headerCount == header.byteCount, keys == [long.key], operations.count == 0, tags == nil {
            // A header is enough, because the entry is not read afterwards.
            append(index, .header(header, byteCount: 0), changeNote(index))
            large = long
        } else if let tags, !tags.isEmpty {
            put(index, Record(header, tags: tags.section(stamp: stamp), payload: payload))
        } else {
            put(index, header, payload)
        }
    }

    /// Replaces the value at `index`. A fresh entry keeps its deadline rule, its grace, its codec and its tags; a new
    /// entry is governed by the policy. The storage time becomes this update's time.
    package func replace(_ index: Int, payload: UnsafeRawBufferPointer) {
        let previous = header(index)
        let header = header(previous?.rule ?? .governed, previous?.grace, previous?.codec ?? .raw)
        builtBytes += payload.count
        guard previous?.hasTags ?? false else { return put(index, header, payload) }
        put(index, Record(header, tags: tags(of: current(index)), payload: payload))
    }

    /// Changes the value at `index` in place: resizes it to `count` bytes, padded with zeros, and lets `edit` write
    /// into it. Otherwise like ``replace(_:payload:)``.
    package func change(_ index: Int, count: Int, _ edit: (UnsafeMutableRawBufferPointer) -> Void) {
        let previous = header(index)
        let header = header(previous?.rule ?? .governed, previous?.grace, previous?.codec ?? .raw)
        builtBytes += count
        let tags = previous?.hasTags ?? false ? tags(of: current(index)) : []
        put(index, Record(header, tags: tags, count: count, previous: payload(index), edit))
    }

    /// Adds the length of a value that was built for ``put(_:payload:long:rule:grace:codec:tags:)`` to ``builtBytes``.
    package func noteBuilt(_ count: Int) { builtBytes += count }

    /// Stores an entry from another larder. Keeps its storage time and its deadline rule if the rules of this database
    /// allow that: see ``FreshnessRules/taking(_:)``.
    /// - Parameter long: as for ``put(_:payload:long:rule:grace:codec:tags:)``.
    /// - Returns: false if the entry has expired and was therefore not stored.
    package func place(
        _ index: Int, _ header: RecordHeader, payload: UnsafeRawBufferPointer, long: LargeValue?, tags: Tags?
    ) -> Bool {
        var header = rules.taking(header)
        header.generation = generation
        guard rules.freshness(header, now: now) != .gone else { return false }
        put(index, header, payload, long, tags)
        return true
    }

    /// Stores a record from another key or database. Keeps its codec, and also its storage time and its deadline rule
    /// if the rules of this database allow that: see ``FreshnessRules/taking(_:)``.
    package func place(_ index: Int, _ record: Record) {
        var header = rules.taking(record.header)
        header.generation = generation
        if header == record.header, !header.hasTags { return put(index, record) }
        put(index, Record(header, tags: tags(of: record), payload: record.payload))
    }

    /// Sets the deadline rule of the fresh entry at `index`, if any. Keeps the entry's value and storage time.
    package func set(_ index: Int, _ rule: DeadlineRule) { set(index, rule, changeNote(index)) }

    /// Like ``set(_:_:)``, but not counted as a write in Larder's own statistics.
    package func renew(_ index: Int, _ rule: DeadlineRule) {
        var note = changeNote(index)
        note.isRenewal = true
        set(index, rule, note)
    }

    private func set(_ index: Int, _ rule: DeadlineRule, _ note: ChangeNote) {
        guard var header = header(index), slots[slot(index)].pointee.stored.kind == .record else { return }
        let record = slots[slot(index)].pointee.stored.view
        header.rule = rule
        if let copy = copy(record.tail) {
            append(index, Stored(RecordView(header, tail: copy)), note)
        } else {
            append(index, own(Record(RecordView(header, tail: record.tail))), note)
        }
    }

    /// Makes the fresh entry at `index` permanent, regardless of the database's policy.
    /// - Returns: whether the entry had a deadline. If not, readers see no difference.
    package func persist(_ index: Int) -> Bool {
        guard let header = header(index) else { return false }
        let hadDeadline = rules.deadline(header) != nil
        guard header.rule != .ownNever else { return false }
        var note = changeNote(index)
        note.isUnseen = !hadDeadline
        set(index, .ownNever, note)
        return hadDeadline
    }

    /// Restarts the lifetime of the fresh or stale entry at `index`, as if its value had been stored now.
    /// - Returns: false if there is no such entry.
    func renew(_ index: Int) -> Bool {
        guard let record = freshOrStale(index) else { return false }
        var header = record.header
        header.rule = renewed(header)
        header.storedAt = now
        put(index, Record(header, tags: tags(of: record), payload: record.payload))
        return true
    }

    /// Removes the key at `index`, even if its entry has expired or there is none.
    package func remove(_ index: Int) { append(index, .absent, changeNote(index)) }

    /// Removes the key at `index` without ending its lease. For an entry that readers could not see, or if the lease
    /// is newer than the call that removes the entry.
    func removeKeepingLease(_ index: Int) {
        slots[slot(index)].pointee.lease = .none
        remove(index)
    }

    /// Removes the key at `index` if it is stored. Always ends its lease: the value being fetched may be outdated.
    package func removeStored(_ index: Int) {
        if isStored(index) { return remove(index) }
        if !isSpeculative, !removeEvicted(index) { endLease(index) }
    }

    /// Commits the removal of the key at `index` if it is not stored, but was perhaps evicted, and the journal or a
    /// follower still has it. For removals that find no entry.
    /// - Returns: whether the removal is committed. If so, the key's lease ends.
    @discardableResult
    package func removeEvicted(_ index: Int) -> Bool {
        guard !isStored(index), !isSpeculative, isEvictedElsewhere else { return false }
        removeAbsent(index)
        return true
    }

    /// Whether entries that were evicted here may be in the journal, or in larders that follow this database.
    var isEvictedElsewhere: Bool {
        if isFollowed { return true }
        guard database.isEvictedInJournal.load(ordering: .relaxed) else { return false }
        if case .open = database.applied.presence { return true }
        return false
    }

    /// Whether other larders follow this database. They may still have entries that were evicted here.
    var isFollowed: Bool {
        guard database.context.changes.isOn, case .open = database.applied.presence else { return false }
        return database.context.changeLog.isFollowed(database)
    }

    /// Commits the removal of the key at `index`, which has no entry. Followers are notified of it.
    func removeAbsent(_ index: Int) {
        var note = changeNote(index)
        note.isUnseen = true
        append(index, .absent, note)
    }

    // MARK: Leases

    /// Whether a lease of the key at `index` is valid. If so, the next change of the key by this update completes the
    /// lease.
    /// - Parameter tags: the tags of the value. If a tag was purged since the lease was granted, the value may be
    ///   outdated.
    package func holdsLease(_ index: Int, _ token: UInt64, tags: Tags? = nil) -> Bool {
        let purged = tags.flatMap { rules.purges?.last(of: $0) } ?? 0
        guard !isChanged(index), isValid(key(index), token, purgedAt: purged) else { return false }
        slots[slot(index)].pointee.lease = .refreshed
        return true
    }

    private func isValid(_ key: Key, _ token: UInt64, purgedAt purged: UInt64) -> Bool {
        let shard = database.shards[key]
        if isSpeculative { shard.lock.lock() }
        defer { if isSpeculative { shard.lock.unlock() } }
        return shard.leases?.isValid(key, token, purgedAt: purged) ?? false
    }

    /// Whether an earlier command of the transaction has changed the key at `index`, and thereby ended its lease.
    private func isChanged(_ index: Int) -> Bool {
        let changedBy = slots[slot(index)].pointee.changedBy
        return changedBy > 0 && changedBy < commandCount
    }

    /// Whether a lease of the key at `index` is valid. If so, removing the key records that the origin has no value.
    func recordsAbsenceWithLease(_ index: Int, _ token: UInt64, milliseconds: Int64) -> Bool {
        let key = key(index)
        let until = database.context.time.monotonic() + milliseconds
        guard !isChanged(index), database.shards[key].leases?.isValidForAbsence(key, token) ?? false else {
            return false
        }
        slots[slot(index)].pointee.lease = .absent(until: until)
        return true
    }

    /// Ends a lease of the key at `index` without a change.
    /// - Returns: whether the lease was valid.
    package func release(_ index: Int, _ token: UInt64, _ release: FetchRelease) -> Bool {
        let key = key(index)
        return database.shards[key].leases?.release(key, token, release) ?? false
    }

    /// Releases a lease of the key at `index`, because its origin has no value, and removes the stored entry.
    /// - Returns: whether the lease was valid.
    package func releaseAbsent(_ index: Int, _ token: UInt64, milliseconds: Int64) -> Bool {
        guard isStored(index) || isEvictedElsewhere else {
            return release(index, token, .absent(milliseconds: milliseconds))
        }
        guard recordsAbsenceWithLease(index, token, milliseconds: milliseconds) else { return false }
        removeStored(index)
        return true
    }

    /// Releases a lease of the key at `index`, because its origin reports that the stored value is unchanged.
    package func releaseUnchanged(_ index: Int, _ token: UInt64) -> LeaseReleaseResult {
        guard holdsLease(index, token, tags: stored(index)?.tags) else { return .lost }
        if renew(index) { return .done }
        return release(index, token, .open) ? .nothingStored : .lost
    }

    /// Ends the lease of the key at `index`, because the value being fetched may be outdated.
    func endLease(_ index: Int) {
        let slot = slots[slot(index)].pointee
        slot.withShard { $0.leases?.changed(slot.key, .outdated, isRemoval: true) }
    }

    // MARK: Commands of a transaction

    /// Runs one command of a transaction on this update's keys at `positions`, which are distinct. If `body` throws,
    /// only that command's changes are undone.
    func narrowed(to positions: [Int], _ body: (inout Update) throws(LarderError) -> Void) throws(LarderError) {
        let (allPositions, count) = (self.positions, operations.count)
        self.positions = positions
        commandCount += 1
        undo = []
        defer {
            self.positions = allPositions
            undo = nil
            // Only the command that found a lease valid may complete it by a change. The next command must check again.
            for position in positions { slots[position].pointee.lease = .outdated }
        }
        var update = self
        do throws(LarderError) {
            try body(&update)
        } catch {
            operations.removeLast(operations.count - count)
            for change in (undo ?? []).reversed() { slots[change.index].pointee = change.slot }
            throw error
        }
    }
}
