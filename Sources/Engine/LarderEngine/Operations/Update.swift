import LarderPlatform

/// The entries of some keys of a database at one instant, and changes of these entries that become one commit unit. A
/// command reads the present entries, and records each change as an operation that contains the resulting entry.
///
/// Valid only inside the closures that receive it. Reused, so that short commands allocate nothing. `@unchecked
/// Sendable`: used by one thread at a time. Accesses to its properties never overlap, so the exclusivity check is off.
package final class Update: @unchecked Sendable {
    /// A key, and what is stored under it. Invariant: the key's bytes are valid until ``end()``. A trivial type, like
    /// all types that each command creates, so that no references are counted.
    struct Slot {
        let key: UnsafeRawBufferPointer
        let hash: Int
        /// The shard of the key; nil until the database is known.
        var shard: Unmanaged<Shard>?
        /// The stored entry, expired or not, with the changes so far.
        var stored = Stored.absent
        /// Whether the stored entry is fresh.
        var isFresh = false
        /// The entry in the shard's memory, valid while the shard is locked; nil if the entry was not in memory.
        var entry: EntryPointer?
        /// The effect of the next operation on the key's lease.
        var lease = LeaseEffect.outdated
        /// The number of the command that changed the key last; 0 for none.
        var changedBy = 0
        /// The index of the last operation on the key; -1 for none.
        var operation = -1

        /// Runs `body` on the shard of the key, without counting references: shards live as long as their database.
        @inline(__always)
        func withShard<Result>(_ body: (Shard) -> Result) -> Result {
            guard let shard else { preconditionFailure("an update is used outside of its closure") }
            return shard._withUnsafeGuaranteedRef(body)
        }
    }

    /// What is stored under a key.
    struct Stored {
        enum Kind {
            case absent, record
            /// Only the header is known.
            case header
            case unreadable
        }

        let kind: Kind
        /// The record. Meaningful only if ``hasHeader``; without its tail if only the header is known. Points into
        /// memory of the update, or of a shard whose lock is held.
        let view: RecordView
        /// The length of the record as stored, in bytes.
        let byteCount: Int
        /// The index in ``Update/owners`` of the array that owns the record; -1 for none.
        var owner = -1

        private init(_ kind: Kind, _ header: RecordHeader = RecordHeader(storedAt: 0), byteCount: Int = 0) {
            (self.kind, self.byteCount) = (kind, byteCount)
            view = RecordView(header, tail: UnsafeRawBufferPointer(start: nil, count: 0))
        }

        init(_ view: RecordView) { (kind, self.view, byteCount) = (.record, view, view.byteCount) }

        static var absent: Stored { Stored(.absent) }
        static var unreadable: Stored { Stored(.unreadable) }

        static func header(_ header: RecordHeader, byteCount: Int) -> Stored {
            Stored(.header, header, byteCount: byteCount)
        }

        var header: RecordHeader { view.header }
        /// Whether there is a record with a readable header.
        var hasHeader: Bool { kind == .record || kind == .header }
    }

    /// A change of one key. It contains the resulting record, never a relative change such as "add one".
    struct Operation {
        let slot: Int
        /// The record to store, or ``Stored/absent`` to remove the key.
        let stored: Stored
        var note: ChangeNote

        var isRemoval: Bool { stored.kind == .absent }
    }

    /// The database, which the caller retains until ``end()``. Its references are not counted, because all event loops
    /// would change the same counter.
    @exclusivity(unchecked) private var target: Unmanaged<Database>?
    @exclusivity(unchecked) package private(set) var now: Int64 = 0
    @exclusivity(unchecked) package private(set) var rules = FreshnessRules(policy: .never)
    @exclusivity(unchecked) private(set) var generation: UInt32 = 0
    @exclusivity(unchecked) var slots = TrivialList<Slot>(capacity: keptMax)
    /// The keys that were added as ``Key``. They own the bytes of the slots' keys. Empty if only bytes were added.
    @exclusivity(unchecked) private(set) var keys: [Key] = []
    /// The slot of each key of the running command; nil if each key's slot has the index of the key.
    @exclusivity(unchecked) var positions: [Int]?
    /// The parts of the present entries that are loaded.
    @exclusivity(unchecked) private(set) var loading = Loading.none
    /// The number of slots, from the first, whose entries are loaded. The other keys are written without being read.
    @exclusivity(unchecked) private(set) var loadedCount = 0
    /// Whether the blocks that are read stay in the block cache.
    @exclusivity(unchecked) private(set) var fillCache = true
    /// Whether all shards of the database are locked, not only those of the keys.
    @exclusivity(unchecked) var locksAllShards = false
    /// The shards whose locks are held, one bit for each.
    @exclusivity(unchecked) var locked: UInt32 = 0
    /// Whether the absence of a key was recorded in a shard, so that ``unlock()`` has to evict entries for space.
    @exclusivity(unchecked) var hasRecordedAbsences = false
    /// The entries that were read from LevelDB, one for each loaded slot; empty if nothing was read.
    @exclusivity(unchecked) var cold: [ColdRead] = []
    @exclusivity(unchecked) var coldStore: EpochStore?
    /// The number of record bytes that may still be read from LevelDB.
    @exclusivity(unchecked) var coldRoom = Int.max
    @exclusivity(unchecked) var operations = TrivialList<Operation>(capacity: keptMax)
    /// The records that are not in the memory of a shard or in ``arena``.
    @exclusivity(unchecked) private var owners: [[UInt8]] = []
    /// The value that the only operation stores, if it is long and was staged on the disk.
    @exclusivity(unchecked) var large: LargeValue?
    /// The origin of the following operations.
    @exclusivity(unchecked) package var origin = WriteOrigin()
    /// The place of the following operations in a transaction.
    @exclusivity(unchecked) var step = 0
    /// Whether the update first waited for the commit of earlier changes of its keys: see
    /// ``Database/perform(_:_:_:now:durability:fillCache:needsFiles:observing:_:)``.
    @exclusivity(unchecked) var observes = false
    /// Whether the update runs tentatively, without locks. Its changes are never applied.
    @exclusivity(unchecked) private(set) var isSpeculative = false
    /// Whether an operation replaces an earlier one on the same key. False if listeners must be notified of both.
    @exclusivity(unchecked) private(set) var merges = false
    /// The previous contents of slots that the running command of a transaction has changed; nil outside of a command.
    @exclusivity(unchecked) var undo: [(index: Int, slot: Slot)]?
    /// The number of commands of the transaction so far.
    @exclusivity(unchecked) var commandCount = 0
    /// The hits and misses that were counted.
    @exclusivity(unchecked) private var reads = (hits: 0, misses: 0)
    /// The total length in bytes of the values that the command built, in contrast to received values.
    @exclusivity(unchecked) package internal(set) var builtBytes = 0
    /// The memory for the records of short values. Never moved, so that pointers into it stay valid.
    @exclusivity(unchecked) var arena: UnsafeMutableRawPointer?
    @exclusivity(unchecked) var arenaCount = 0
    static let arenaBytes = 64 << 10

    package init() {}

    deinit {
        free(arena)
        slots.free()
        operations.free()
    }
}

extension Update {
    /// A collection of only this update, for a run of ``Executor``.
    @inline(__always)
    var alone: CollectionOfOne<Unmanaged<Update>> { CollectionOfOne(.passUnretained(self)) }

    var database: Database { withDatabase { $0 } }

    /// Runs `body` on the database, without counting references.
    @inline(__always)
    func withDatabase<Result>(_ body: (Database) -> Result) -> Result {
        guard let target else { preconditionFailure("an update is used outside of its closure") }
        return target._withUnsafeGuaranteedRef(body)
    }

    // MARK: Life cycle

    /// Prepares the update for ``Executor``, after its keys were added. Needs no lock.
    /// - Parameters:
    ///   - loadedCount: the number of keys whose entries are loaded; nil for all.
    ///   - bytesMax: the maximum total length in bytes of the records that are read from LevelDB.
    func prepare(
        _ database: Database, now: Int64, _ loading: Loading, loadedCount: Int? = nil, fillCache: Bool = true,
        bytesMax: Int = .max, merges: Bool = false, isSpeculative: Bool = false
    ) {
        target = .passUnretained(database)
        self.now = now
        self.loading = loading
        self.loadedCount = loadedCount ?? slots.count
        self.fillCache = fillCache
        coldRoom = bytesMax
        self.merges = merges
        self.isSpeculative = isSpeculative
        for index in slots.indices { slots[index].pointee.shard = database.shards.unmanaged(slots[index].pointee.hash) }
    }

    /// Begins an attempt: forgets the entries of an earlier attempt. Called with the shard locks of the keys held.
    /// - Parameter isFirst: whether there was no earlier attempt.
    func begin(isFirst: Bool = true) {
        (rules, generation) = withDatabase { ($0.applied.rules, $0.applied.generation) }
        guard !isFirst else { return }
        owners = []
        for index in slots.indices {
            slots[index].pointee = Slot(
                key: slots[index].pointee.key, hash: slots[index].pointee.hash, shard: slots[index].pointee.shard)
        }
    }

    /// Forgets the keys, the entries and the operations, but keeps a limited amount of memory for the next use.
    package func end() {
        target = nil
        rules.purges = nil
        locksAllShards = false
        slots.removeAll(keeping: Self.keptMax)
        operations.removeAll(keeping: Self.keptMax)
        if !keys.isEmpty { keys = [] }
        if positions != nil { positions = nil }
        if !owners.isEmpty { owners = [] }
        (large, undo) = (nil, nil)
        origin = WriteOrigin()
        step = 0
        reads = (0, 0)
        (observes, isSpeculative, commandCount, builtBytes, arenaCount) = (false, false, 0, 0, 0)
    }

    /// The maximum number of keys, and of operations, for which ``end()`` keeps the memory.
    private static let keptMax = 16

    // MARK: Keys

    /// The number of keys of the command.
    package var count: Int { positions?.count ?? slots.count }

    /// Adds a key before the update begins. Its bytes are not copied, and must stay valid until ``end()``.
    /// - Returns: false if the key is too long, or was already added.
    package func add(_ key: UnsafeRawBufferPointer) -> Bool {
        guard key.count <= Key.bytesMax, index(of: key) == nil else { return false }
        addUnchecked(key)
        return true
    }

    /// Like ``add(_:)``, without checks: the key must not be too long. Keys may be repeated if the update only reads.
    package func addUnchecked(_ key: UnsafeRawBufferPointer) { slots.append(Slot(key: key, hash: Key.hash(key))) }

    /// Adds keys before the update begins.
    /// - Parameter areDistinct: true if no key is repeated, or if the update reads nothing.
    package func add(_ keys: [Key], areDistinct: Bool = false) {
        self.keys = keys
        positions = areDistinct ? nil : Self.positionsOfRepeatedKeys(keys)
        slots.reserve(keys.count)
        for key in keys { slots.append(Slot(key: key.unsafeBytes, hash: key.hash)) }
    }

    /// Adds keys with the shard locks held. The caller must then call ``findLate(from:_:)`` to find their entries.
    func addLate(_ late: [Key]) {
        // Remove the late keys of an earlier attempt.
        slots.removeLast(slots.count - loadedCount)
        keys.removeLast(keys.count - loadedCount)
        keys += late
        for key in late { append(key) }
    }

    private func append(_ key: Key) {
        slots.append(Slot(key: key.unsafeBytes, hash: key.hash, shard: database.shards.unmanaged(key.hash)))
    }

    /// The index of a key; nil if it was not added. Compares the key with all added keys, so use it only for few keys.
    @inline(__always)
    package func index(of key: UnsafeRawBufferPointer) -> Int? {
        for index in slots.indices {
            let known = slots[index].pointee.key
            guard known.count == key.count else { continue }
            if key.isEmpty { return index }
            if let left = known.baseAddress, let right = key.baseAddress, memcmp(left, right, key.count) == 0 {
                return index
            }
        }
        return nil
    }

    /// Adds a key and its stored entry, between two commands of a transaction that is run tentatively without locks.
    /// - Returns: the key's index.
    func add(_ key: Key, _ record: Record?) -> Int {
        precondition(isSpeculative && undo == nil, "keys are only added while no locks are held")
        keys.append(key)
        append(key)
        take(record.map { own($0) } ?? .absent, at: slots.count - 1)
        return slots.count - 1
    }

    /// Returns the index of the first occurrence of each key; nil if no key is repeated. Call it without a lock: for a
    /// million keys it takes some tenths of a second.
    static func positionsOfRepeatedKeys(_ keys: [Key]) -> [Int]? {
        guard keys.count > 1 else { return nil }
        // A hash table of positions with linear probing, at most half full. It uses the keys' own hashes.
        var capacity = 4
        while capacity < 2 * keys.count { capacity *= 2 }
        var places = [Int32](repeating: -1, count: capacity)
        var positions: [Int]?
        for index in keys.indices {
            var place = keys[index].hash & (capacity - 1)
            while places[place] >= 0, keys[Int(places[place])] != keys[index] { place = (place + 1) & (capacity - 1) }
            if places[place] < 0 {
                places[place] = Int32(index)
            } else {
                if positions == nil { positions = Array(keys.indices) }
                positions?[index] = Int(places[place])
            }
        }
        return positions
    }

    @inline(__always)
    func slot(_ index: Int) -> Int { positions?[index] ?? index }

    package func key(_ index: Int) -> Key { slotKey(slot(index)) }

    func slotKey(_ slot: Int) -> Key { keys.isEmpty ? Key(slots[slot].pointee.key) : keys[slot] }

    // MARK: Entries

    /// Retains a record until the update ends.
    func own(_ record: Record) -> Stored {
        owners.append(record.stored)
        // The pointer stays valid, because `owners` retains the array, which is never changed.
        let tail = record.stored.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: $0[record.header.fixedCount...]) }
        var stored = Stored(RecordView(record.header, tail: tail))
        stored.owner = owners.count - 1
        return stored
    }

    /// Sets the stored entry of a slot.
    func take(_ stored: Stored, at slot: Int) {
        slots[slot].pointee.stored = stored
        slots[slot].pointee.isFresh = stored.hasHeader && rules.freshness(stored.header, now: now) == .fresh
    }

    /// The payload of the entry stored under the key at `index`, expired or not.
    func storedPayload(_ index: Int) -> UnsafeRawBufferPointer? {
        let stored = slots[slot(index)].pointee.stored
        return stored.kind == .record ? stored.view.payload : nil
    }

    /// The hashes of the tags of the entry stored under the key at `index`.
    func tagHashes(_ index: Int) -> [UInt64] {
        let stored = slots[slot(index)].pointee.stored
        guard stored.kind == .record, stored.header.hasTags else { return [] }
        return Tags(section: stored.view.tagsSection)?.hashes ?? []
    }

    /// The total length in bytes of the fresh entries' payloads.
    package var payloadBytes: Int { (0..<count).reduce(0) { $0 + (payload($1)?.count ?? 0) } }

    /// The object attached to the entry of the key at `index`. Call ``Attachment/touch()`` when you use it.
    package func attachment(_ index: Int) -> Attachment? {
        slots[slot(index)].pointee.entry?.attachment?.takeUnretainedValue()
    }

    /// The version of the entry of the key at `index`, for attaching an object; 0 if the entry is not in memory.
    package func version(_ index: Int) -> UInt64 {
        let slot = slots[slot(index)].pointee
        return slot.entry.map { entry in slot.withShard { $0.table.version(of: entry) } } ?? 0
    }

    /// Whether there is a fresh entry under the key at `index`, after the update's changes so far.
    package func isFresh(_ index: Int) -> Bool { slots[slot(index)].pointee.isFresh }

    /// The header of the fresh entry of the key at `index`, after the update's changes so far.
    package func header(_ index: Int) -> RecordHeader? {
        let slot = slot(index)
        return slots[slot].pointee.isFresh ? slots[slot].pointee.stored.header : nil
    }

    /// The payload of the fresh entry of the key at `index`. Valid until the entry is changed.
    package func payload(_ index: Int) -> UnsafeRawBufferPointer? {
        let slot = slot(index)
        return slots[slot].pointee.isFresh && slots[slot].pointee.stored.kind == .record
            ? slots[slot].pointee.stored.view.payload : nil
    }

    /// The fresh entry of the key at `index`, after the update's changes so far.
    package func current(_ index: Int) -> Record? { isFresh(index) ? stored(index) : nil }

    /// The entry stored under the key at `index`, expired or not.
    func stored(_ index: Int) -> Record? {
        let stored = slots[slot(index)].pointee.stored
        return switch stored.kind {
        case .absent, .unreadable: nil
        case .header: Record(headerOnly: stored.header)
        case .record where stored.owner >= 0: Record(stored.header, owned: owners[stored.owner])
        case .record: Record(stored.view)
        }
    }

    /// The fresh or stale entry stored under the key at `index`.
    func freshOrStale(_ index: Int) -> Record? {
        stored(index).flatMap { rules.freshness($0.header, now: now) == .gone ? nil : $0 }
    }

    /// The header of the entry stored under the key at `index`, expired or not.
    func storedHeader(_ index: Int) -> RecordHeader? {
        let slot = slot(index)
        return slots[slot].pointee.stored.hasHeader ? slots[slot].pointee.stored.header : nil
    }

    /// Whether anything readable is stored under the key at `index`, expired or not.
    package func isStored(_ index: Int) -> Bool { slots[slot(index)].pointee.stored.hasHeader }

    /// Whether the record of the key at `index` cannot be read, in an update that loads ``Loading/anyHeaders``.
    func isUnreadable(_ index: Int) -> Bool { slots[slot(index)].pointee.stored.kind == .unreadable }

    /// The time when the fresh or stale entry at `index` was stored, in milliseconds since 1970; nil if there is none.
    package func storedAt(_ index: Int) -> Int64? {
        storedHeader(index).flatMap { rules.freshness($0, now: now) == .gone ? nil : $0.storedAt }
    }

    /// The time when the fresh entry at `index` expires, in milliseconds since 1970; nil if never, or without an entry.
    package func deadline(_ index: Int) -> Int64? { header(index).flatMap { rules.deadline($0) } }

    /// Whether every loaded entry is in the same state (fresh, stale or gone) at `time` as at this update's time.
    func isAsFresh(at time: Int64) -> Bool {
        slots.indices.allSatisfy { slot in
            guard slots[slot].pointee.stored.hasHeader else { return true }
            let header = slots[slot].pointee.stored.header
            return rules.freshness(header, now: now) == rules.freshness(header, now: time)
        }
    }

    /// The entry at `index` whose deadline rule, grace and tags a new value keeps; nil if there is none.
    /// - Parameter isRefresh: whether the new value was fetched with a lease. If so, the entry may be stale, because
    ///   its expiry caused the fetch. The lifetime of the entry then starts again with its previous length.
    package func kept(_ index: Int, isRefresh: Bool) -> Record? {
        isRefresh ? freshOrStale(index).map { $0.with(rule: renewed($0.header)) } : current(index)
    }

    /// The deadline rule of an entry whose lifetime starts again now, with its previous length.
    func renewed(_ header: RecordHeader) -> DeadlineRule {
        guard case .own(let deadline) = header.rule else { return header.rule }
        // Prevent overflows: deadlines stored by earlier versions of Larder may have any value.
        return .own(now.addingClamped(max(1, deadline.subtractingClamped(header.storedAt))))
    }

    // MARK: In memory

    /// The shards of the keys, one bit for each.
    var shardSet: UInt32 {
        var set: UInt32 = 0
        for index in slots.indices { set |= DatabaseShards.bit(slots[index].pointee.hash) }
        // Without keys, lock any shard: reading the database's state requires a shard lock.
        return set == 0 ? 1 : set
    }

    /// Whether there is a fresh entry under the key at `index`. Counts a hit or a miss.
    package func has(_ index: Int) -> Bool {
        let slot = slot(index)
        let isFresh = slots[slot].pointee.isFresh
        if isFresh { reads.hits += 1 } else { reads.misses += 1 }
        if isSpeculative { return isFresh }
        slots[slot].pointee.withShard { shard in
            guard isFresh else { return shard.noteMiss(storedHeader(index), slots[slot].pointee.hash, now: now) }
            shard.counters.hits += 1
            if let entry = slots[slot].pointee.entry { shard.table.touch(entry) }
        }
        return isFresh
    }

    /// Counts the hits and misses of commands that have run without locks.
    func countReads() { database.noteReads(hits: reads.hits, misses: reads.misses) }

    /// Subtracts the counted hits and misses, because the commands run again. Called with the shard locks held.
    func uncountReads() {
        guard reads != (0, 0) else { return }
        slots[0].pointee.withShard { shard in
            shard.counters.hits -= reads.hits
            shard.counters.misses -= reads.misses
        }
        reads = (0, 0)
    }

    /// Marks the entry of the key at `index` as recently used, for eviction.
    func touch(_ index: Int) {
        let slot = slots[slot(index)].pointee
        if let entry = slot.entry { slot.withShard { $0.table.touch(entry) } }
    }

    /// The payload of the fresh entry of the key at `index`. Counts a hit or a miss.
    package func read(_ index: Int) -> UnsafeRawBufferPointer? { has(index) ? payload(index) : nil }

    /// The fresh entry of the key at `index`. Counts a hit or a miss.
    package func readRecord(_ index: Int) -> Record? { has(index) ? stored(index) : nil }

    /// The updates that are not in use, kept for reuse.
    private static let idle = Locked<[Update]>([])

    /// Returns an empty update. The caller must call ``giveBack()`` after using it.
    package static func take() -> Update {
        idle.withLock { $0.popLast() } ?? Update()
    }

    /// Ends the update, and keeps it for reuse by any thread.
    package func giveBack() {
        end()
        Self.idle.withLock { $0.append(self) }
    }
}

/// An array of trivial values. Unlike `Array`, it has no copy-on-write checks, which would cost more than a short
/// command. Its owner must call ``free()``.
struct TrivialList<Element> {
    private var start: UnsafeMutablePointer<Element>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        precondition(_isPOD(Element.self), "elements must need no reference counting")
        start = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    func free() { start.deallocate() }

    var indices: Range<Int> { 0..<count }

    /// A pointer to an element, valid until the list grows.
    @inline(__always)
    subscript(index: Int) -> UnsafeMutablePointer<Element> {
        precondition(index >= 0 && index < count, "there is no such element")
        return start + index
    }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count == capacity { reserve(2 * capacity) }
        (start + count).initialize(to: element)
        count += 1
    }

    @inline(never)
    mutating func reserve(_ newCapacity: Int) {
        guard newCapacity > capacity else { return }
        let grown = UnsafeMutablePointer<Element>.allocate(capacity: newCapacity)
        grown.initialize(from: start, count: count)
        start.deallocate()
        (start, capacity) = (grown, newCapacity)
    }

    mutating func removeLast(_ number: Int) { count -= min(number, count) }

    /// Removes all elements. If the list has memory for more than `most` elements, frees the excess.
    @inline(__always)
    mutating func removeAll(keeping most: Int) {
        count = 0
        if capacity > most { shrink(to: most) }
    }

    @inline(never)
    private mutating func shrink(to most: Int) {
        start.deallocate()
        (start, capacity) = (.allocate(capacity: most), most)
    }
}

/// What the stream of changes, the leases and the counters need to know about an operation.
struct ChangeNote {
    var origin = WriteOrigin()
    var previous = EntryChange.Previous.unknown
    /// Whether the previous entry exists and has expired.
    var previousHasExpired = false
    /// The operation's index in a transaction of several databases.
    var step = 0
    /// Whether readers of the entry see no difference. If so, watchers and most subscribers are not notified.
    var isUnseen = false
    /// Whether only the entry's lifetime changes.
    var isRenewal = false
    var lease = LeaseEffect.outdated
}
