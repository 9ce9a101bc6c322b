import LarderPlatform

/// Reads and changes the entries of a few keys in memory, for one short script. Creates no ``Key`` or ``Record``, and
/// allocates no memory per key.
///
/// Created once and reused, by one thread at a time. Its entries are valid only inside the closure of
/// ``Database/withBatch(_:now:ticket:_:)``. `@unchecked Sendable`: it is handed from one thread to the next.
package final class BatchScope: @unchecked Sendable {
    /// The most keys.
    package static let countMax = 8
    /// The most bytes of all stored values.
    private static let arenaBytes = 64 << 10

    private enum Change {
        case none, put, remove
        /// Stores nothing, but outdates a running fetch of the key.
        case outdate
    }

    /// A key and its entry. The pointers are valid while the locks are held.
    private struct Slot {
        var key: UnsafeRawBufferPointer
        var hash: Int
        /// Set once the database is known.
        var shard: Unmanaged<Shard>?
        /// The fresh entry, with the changes so far.
        var header: RecordHeader?
        var payload: UnsafeRawBufferPointer
        var entry: EntryPointer?
        /// Whether there was a fresh entry before the changes.
        var wasThere: Bool
        /// The entry if it is no longer fresh. Needed to count the miss.
        var previous: RecordHeader?
        var change: Change
    }

    private let slots = UnsafeMutablePointer<Slot>.allocate(capacity: countMax)
    package private(set) var count = 0
    /// The stored payloads. Never moved, so that pointers into it stay valid.
    private let arena = UnsafeMutableRawPointer.allocate(byteCount: arenaBytes, alignment: 8)
    private var arenaCount = 0
    private var now: Int64 = 0
    private var generation: UInt32 = 0
    private var rules: FreshnessRules?
    private(set) var isChanged = false
    /// Whether the absence of a key was recorded in memory, so that memory may have to be freed.
    private var hasLearned = false
    /// Whether keys without an entry were removed.
    private var hasOutdated = false

    package init() {}

    deinit {
        // Slots are trivial.
        slots.deallocate()
        arena.deallocate()
    }

    // MARK: Keys

    /// Forgets the previous keys.
    package func begin() {
        count = 0
        arenaCount = 0
        isChanged = false
        hasLearned = false
        hasOutdated = false
    }

    /// Adds a key. Its bytes must stay valid until the scope has been used.
    /// - Returns: false if there are too many keys, the key is too long, or it was already added.
    package func add(_ key: UnsafeRawBufferPointer) -> Bool {
        guard count < Self.countMax, key.count <= Key.bytesMax, index(of: key) == nil else { return false }
        (slots + count).initialize(
            to: Slot(
                key: key, hash: Key.hash(key), shard: nil, header: nil, payload: Self.nothing, entry: nil,
                wasThere: false, previous: nil, change: .none))
        count += 1
        return true
    }

    private static var nothing: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    /// The index of an added key.
    @inline(__always)
    package func index(of key: UnsafeRawBufferPointer) -> Int? {
        for index in 0..<count {
            let known = slots[index].key
            guard known.count == key.count else { continue }
            if key.isEmpty { return index }
            if let left = known.baseAddress, let right = key.baseAddress, memcmp(left, right, key.count) == 0 {
                return index
            }
        }
        return nil
    }

    // MARK: Entries

    /// Returns the payload of a key's fresh entry and counts a read; nil if there is none.
    package func read(_ index: Int) -> UnsafeRawBufferPointer? {
        let slot = slots + index
        return slot.pointee.shard?._withUnsafeGuaranteedRef { shard in
            guard slot.pointee.header != nil else {
                shard.noteMiss(slot.pointee.previous, slot.pointee.hash, now: now)
                return nil
            }
            shard.counters.hits += 1
            if let entry = slot.pointee.entry { shard.table.touch(entry) }
            return slot.pointee.payload
        }
    }

    /// Returns the payload of a key's fresh entry without counting a read.
    package func current(_ index: Int) -> UnsafeRawBufferPointer? {
        slots[index].header == nil ? nil : slots[index].payload
    }

    /// Whether the fresh entry of a key has tags. A change made here would drop them.
    package func hasTags(_ index: Int) -> Bool { slots[index].header?.hasTags ?? false }

    /// The time when the fresh entry of a key expires; nil if it never expires, or there is no fresh entry.
    package func deadline(_ index: Int) -> Int64? { slots[index].header.flatMap { rules?.deadline($0) } }

    /// Stores a payload.
    /// - Parameter keepsLife: whether to keep the deadline rule, the grace and the codec of a fresh entry.
    /// - Returns: false, without an effect, if there is not enough space.
    package func put(
        _ index: Int, _ payload: UnsafeRawBufferPointer, rule: DeadlineRule = .governed, keepsLife: Bool = false
    ) -> Bool {
        guard let rules, let place = copy(payload) else { return false }
        let previous = keepsLife ? slots[index].header : nil
        let header = RecordHeader(
            storedAt: now, rule: rules.stored(previous?.rule ?? rule, now: now), codec: previous?.codec ?? .raw,
            generation: generation, grace: previous?.grace)
        change(index, header, place)
        return true
    }

    /// Sets the deadline of a key's fresh entry, which must exist. Its value and its storage time do not change.
    /// - Returns: false, without an effect, if there is not enough space.
    package func expire(_ index: Int, at deadline: Int64) -> Bool {
        guard var header = slots[index].header, let place = copy(slots[index].payload) else { return false }
        header.rule = .own(deadline)
        change(index, header, place)
        return true
    }

    /// Removes the entry of a key, even a stale one that FETCH might still serve. Always outdates a running fetch of
    /// the key.
    /// - Returns: whether there was a fresh entry.
    package func remove(_ index: Int) -> Bool {
        let slot = slots[index]
        guard slot.header != nil || slot.previous != nil || slot.change == .remove else {
            slots[index].change = .outdate
            hasOutdated = true
            return false
        }
        slots[index].header = nil
        slots[index].change = .remove
        isChanged = true
        return slot.header != nil
    }

    private func change(_ index: Int, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer) {
        slots[index].header = header
        slots[index].payload = payload
        slots[index].change = .put
        isChanged = true
    }

    private func copy(_ payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard payload.count <= Self.arenaBytes - arenaCount else { return nil }
        let place = UnsafeMutableRawBufferPointer(start: arena + arenaCount, count: payload.count)
        if !payload.isEmpty { place.copyMemory(from: payload) }
        arenaCount += payload.count
        return UnsafeRawBufferPointer(place)
    }

    // MARK: The database's part

    fileprivate func lock(_ shards: borrowing DatabaseShards) -> UInt32 {
        var locked: UInt32 = 0
        for index in 0..<count {
            let hash = slots[index].hash
            locked |= DatabaseShards.bit(hash)
            slots[index].shard = shards.unmanaged(hash)
        }
        if locked == 0 { locked = 1 }
        shards.lock(locked)
        return locked
    }

    /// Looks the keys up. Called with their locks held.
    /// - Parameter ticket: raised to cover the commits that the reply has to wait for.
    /// - Returns: false if memory cannot tell whether a key has an entry, or an entry cannot be read.
    fileprivate func load(_ database: Database, _ now: Int64, _ ticket: inout CommitTicket) -> Bool {
        let state = database.applied
        self.now = now
        rules = state.rules
        generation = state.generation
        var sequence = state.sequence
        for index in 0..<count {
            let slot = slots + index
            let isKnown = slot.pointee.shard?._withUnsafeGuaranteedRef { shard in
                guard let entry = shard.table.find(slot.pointee.key, hash: slot.pointee.hash) else {
                    guard database.isAbsentBelow(shard, slot.pointee.key, slot.pointee.hash) else { return false }
                    shard.keepAbsence(slot.pointee.key, slot.pointee.hash)
                    hasLearned = true
                    return true
                }
                sequence = max(sequence, database.undecided(entry))
                guard let record = entry.record else { return true }
                guard let header = try? RecordHeader(parsing: record, state.rules.purges) else { return false }
                switch state.rules.freshness(header, now: now) {
                case .fresh:
                    slot.pointee.header = header
                    slot.pointee.payload = UnsafeRawBufferPointer(rebasing: record[header.byteCount...])
                    slot.pointee.entry = entry
                    slot.pointee.wasThere = true
                case .stale: slot.pointee.previous = header
                case .gone:
                    slot.pointee.previous = header
                    shard.foundExpired(entry)
                }
                return true
            }
            guard isKnown == true else { return false }
        }
        ticket = max(ticket, CommitTicket(sequence: sequence))
        return true
    }

    /// Adds the changes to the batch of their commit unit.
    fileprivate func write(into batch: JournalBatch, _ sequence: UInt64) {
        for index in 0..<count {
            let slot = slots[index]
            switch slot.change {
            case .none, .outdate: break
            case .put:
                guard let header = slot.header else { break }
                batch.put(key: slot.key, header: header, payload: slot.payload, sequence: sequence)
            case .remove: batch.remove(key: slot.key, sequence: sequence)
            }
        }
    }

    /// Outdates running fetches of the removed keys that had no entry. Called with the locks held.
    fileprivate func outdate() {
        guard hasOutdated else { return }
        for index in 0..<count where slots[index].change == .outdate {
            slots[index].shard?._withUnsafeGuaranteedRef {
                $0.leases?.changed(slots[index].key, .outdated, isRemoval: true)
            }
        }
    }

    /// Frees memory for recorded absences. Called with the locks held, after the last use of an entry.
    fileprivate func makeRoom() {
        guard hasLearned else { return }
        for index in 0..<count { slots[index].shard?._withUnsafeGuaranteedRef { $0.makeRoom() } }
    }

    /// Applies the changes to the entries in memory. Called with the locks held.
    fileprivate func apply(_ sequence: UInt64) {
        for index in 0..<count {
            let slot = slots[index]
            guard slot.change == .put || slot.change == .remove else { continue }
            slot.shard?._withUnsafeGuaranteedRef { shard in
                if slot.change == .put, let header = slot.header {
                    _ = shard.put(slot.key, slot.hash, header, slot.payload, sequence: sequence)
                } else {
                    if !slot.wasThere { shard.counters.vainRemovals += 1 }
                    shard.remove(slot.key, slot.hash, sequence: sequence)
                }
            }
        }
        // Releases references to the database.
        rules = nil
    }
}

/// The outcome of ``Database/withBatch(_:now:ticket:_:)``.
package enum BatchEnd: Sendable {
    /// The changes are applied, as one commit unit.
    case applied
    /// Nothing was done: memory cannot tell whether a key has an entry, changes have listeners, files are not open, or
    /// the closure returned false.
    case left
}

extension Database {
    /// Lets `body` read and change the entries of a few keys at one instant, in memory.
    /// - Parameters:
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - body: called at most once, with the locks of the keys held. Must not block, and must not call the engine.
    ///     Returns whether to apply its changes.
    package func withBatch(
        _ entries: BatchScope, now: Int64, ticket: inout CommitTicket, _ body: (BatchScope) -> Bool
    ) -> BatchEnd {
        guard !ForkGuard.isForked else { return .left }
        let locked = entries.lock(shards)
        defer {
            entries.makeRoom()
            shards.unlock(locked)
        }
        guard case .open = applied.presence, !context.changes.isOn, let store = try? writableStore(applied, "update")
        else { return .left }
        var needed = ticket
        guard entries.load(self, now, &needed), body(entries) else { return .left }
        ticket = needed
        entries.outdate()
        guard entries.isChanged else { return .applied }
        let sequence = pipeline.enqueue(context.options.durability) { batch, sequence in
            batch.select(database: name, number: number, epoch: store.epoch)
            entries.write(into: batch, sequence)
        }
        entries.apply(sequence)
        ticket = max(ticket, CommitTicket(sequence: sequence))
        return .applied
    }
}
