import LarderPlatform

/// A part of a database's keys, with the lock that orders all operations on them.
///
/// `@unchecked Sendable`: everything except `lock` is guarded by `lock`.
package final class Shard: @unchecked Sendable {
    let lock = Lock()
    /// The known state of the keys. If a key is not known here, LevelDB must be read.
    let table: EntryTable
    private let budget: MemoryBudget
    private let disk: DiskBudget?
    /// The keys that were written since an enumeration of all keys started to record them; nil if there is none.
    var notedKeys: Set<Key>?
    @exclusivity(unchecked) var reads = InFlightReads()
    @exclusivity(unchecked) var evictedKeys = EvictedKeys()
    /// Nil until a lease is granted.
    @exclusivity(unchecked) var leases: LeaseTable?
    /// The size of the table as known to the budget, see ``EntryTable/budgetedByteCount``.
    @exclusivity(unchecked) private var publishedBytes = 0
    @exclusivity(unchecked) private var publishedDirtyBytes = 0
    @exclusivity(unchecked) private var publishedAttachedBytes = 0
    /// Counts since they were last taken; under this lock they cost nothing. See ``Statistics``. Only ever changed in
    /// passing, so a check for overlapping accesses at run time would find none.
    @exclusivity(unchecked) var counters = Counters()
    /// Counts from before that.
    private(set) var formerCounters = Counters()

    /// Counts of operations on keys.
    package struct Counters: Sendable {
        package var hits = 0
        package var misses = 0
        /// Misses of entries that are not fresh, because of their time or of a purge.
        package var missesExpired = 0
        package var missesPurged = 0
        /// The least number of misses of entries that were evicted for a disk limit.
        package var missesEvicted = 0
        package var writes = 0
        package var removals = 0
        package var expired = 0
        /// Writes that only gave an entry another lifetime.
        package var renewals = 0
        /// Removals that found no fresh entry.
        package var vainRemovals = 0
        /// Entries evicted to keep a disk limit.
        package var evicted = 0
        /// How often the whole database was purged.
        package var purges = 0

        /// Counts a read without a fresh entry.
        /// - Parameter header: of the entry that it found, which is not fresh.
        mutating func noteMiss(_ header: RecordHeader?) {
            misses += 1
            guard let header else { return }
            if header.tagsEnd == .max { missesExpired += 1 } else { missesPurged += 1 }
        }

        mutating func add(_ other: Counters) {
            renewals += other.renewals
            vainRemovals += other.vainRemovals
            purges += other.purges
            evicted += other.evicted
            hits += other.hits
            misses += other.misses
            missesExpired += other.missesExpired
            missesPurged += other.missesPurged
            missesEvicted += other.missesEvicted

            writes += other.writes
            removals += other.removals
            expired += other.expired
        }
    }

    /// Returns the counts since the last call, and resets them to 0.
    func takeCounters() -> Counters {
        let taken = counters
        formerCounters.add(taken)
        counters = Counters()
        return taken
    }

    init(budget: MemoryBudget, disk: DiskBudget? = nil) {
        self.budget = budget
        self.disk = disk
        table = EntryTable(released: budget.released)
    }

    deinit {
        budget.changed(by: -publishedBytes, dirty: -publishedDirtyBytes, attached: -publishedAttachedBytes)
    }

    /// Counts a read without a fresh entry.
    /// - Parameter header: of the entry that it found, which is not fresh.
    func noteMiss(_ header: RecordHeader?, _ hash: Int, now: Int64) {
        counters.noteMiss(header)
        if header == nil, evictedKeys.has(hash, now: now) { counters.missesEvicted += 1 }
    }

    // MARK: Entries

    /// Returns the entry of a key; nil if LevelDB must be read.
    func find(_ key: Key) -> EntryPointer? {
        key.stored.withUnsafeBytes { table.find(UnsafeRawBufferPointer(rebasing: $0.dropFirst()), hash: key.hash) }
    }

    /// Stores a record, dirty.
    func put(
        _ key: UnsafeRawBufferPointer, _ hash: Int, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer,
        sequence: UInt64
    )
        -> EntryPointer
    {
        let headerCount = header.byteCount
        let entry = table.put(key, hash: hash, count: headerCount + payload.count, version: sequence) { place in
            header.write(to: place)
            if let start = payload.baseAddress {
                (place + headerCount).copyMemory(from: start, byteCount: payload.count)
            }
        }
        counters.writes += 1
        changed(key, hash)
        return entry
    }

    /// Stores an encoded record, dirty.
    func put(
        _ key: UnsafeRawBufferPointer, _ hash: Int, stored: UnsafeRawBufferPointer, sequence: UInt64,
        lease: LeaseEffect = .outdated
    ) {
        _ = table.put(key, hash: hash, count: stored.count, version: sequence) { place in
            if let start = stored.baseAddress { place.copyMemory(from: start, byteCount: stored.count) }
        }
        counters.writes += 1
        changed(key, hash, lease)
    }

    /// Stores an entry with its record, dirty. The table takes ownership.
    func put(_ entry: EntryPointer, sequence: UInt64, lease: LeaseEffect = .outdated) {
        entry.head.pointee.version = sequence
        table.put(entry)
        counters.writes += 1
        changed(entry.key, entry.head.pointee.hash, lease)
    }

    /// Removes a key, dirty.
    func remove(
        _ key: UnsafeRawBufferPointer, _ hash: Int, sequence: UInt64, lease: LeaseEffect = .outdated
    ) {
        removeInPlace(key, hash, sequence: sequence, lease: lease)
        makeRoom()
    }

    /// Like ``remove(_:_:sequence:)``, but evicts nothing, so that entries of other keys that were found before stay.
    /// The caller calls ``makeRoom()`` afterwards.
    func removeInPlace(
        _ key: UnsafeRawBufferPointer, _ hash: Int, sequence: UInt64, lease: LeaseEffect = .outdated
    ) {
        table.remove(key, hash: hash, version: sequence)
        counters.removals += 1
        tellReaders(key, hash, lease, isRemoval: true)
    }

    private func changed(_ key: UnsafeRawBufferPointer, _ hash: Int, _ lease: LeaseEffect = .outdated) {
        tellReaders(key, hash, lease, isRemoval: false)
        makeRoom()
    }

    private func tellReaders(
        _ key: UnsafeRawBufferPointer, _ hash: Int, _ lease: LeaseEffect, isRemoval: Bool
    ) {
        reads.changed(key, hash)
        evictedKeys.remove(hash)
        if leases != nil { leases?.changed(key, lease, isRemoval: isRemoval) }
        if notedKeys != nil { notedKeys?.insert(Key(key)) }
    }

    /// Forgets everything, and informs running reads that everything has changed.
    func clear() {
        table.removeAll()
        reads.changedAll()
        evictedKeys.removeAll()
        leases?.changedAll()
        publish()
    }

    /// Forgets the known content of LevelDB, and informs running reads that it may have changed.
    func forgetStored() {
        table.forgetClean()
        reads.changedAll()
        publish()
    }

    /// Forgets a clean entry, because LevelDB will delete it. A dirty one is left to the checkpoint.
    func dropIfClean(_ entry: EntryPointer) {
        table.forget(entry)
        publish()
    }

    /// Handles an expired entry found by a read, and counts it once: the entry stays, marked, until it is removed from
    /// LevelDB, or evicted, for which it comes first. Its attachment is dropped.
    @inline(never)
    func foundExpired(_ entry: EntryPointer) {
        guard !entry.head.pointee.isFoundExpired else { return }
        entry.head.pointee.isFoundExpired = true
        counters.expired += 1
        table.detach(entry)
        table.demote(entry)
        publish()
    }

    // MARK: Attachments

    /// Attaches an object to an entry that still has this version.
    func attach(_ object: Attachment, to entry: EntryPointer, version: UInt64) {
        guard budget.isOn, entry.head.pointee.version == version, entry.head.pointee.recordCount > 0,
            budget.admits(object.byteCount)
        else { return }
        table.attach(object, to: entry)
        publish()
        budget.makeRoomForAttachments(self)
        makeRoomNow()
    }

    // MARK: Memory

    /// Whether clean entries are kept at all.
    var keepsRecords: Bool { budget.isOn }

    /// Whether an entry that LevelDB has now stays in memory.
    func keeps(_ entry: EntryPointer) -> Bool { budget.isOn && budget.admits(entry.record?.count ?? 0) }

    /// Keeps LevelDB's record of a key, or nil, if memory is on and nothing newer is known.
    private func keep(_ key: UnsafeRawBufferPointer, _ hash: Int, _ record: UnsafeRawBufferPointer?) {
        guard budget.isOn, budget.admits(record?.count ?? 0) else { return }
        table.keep(key, hash: hash, record)
        makeRoom()
    }

    /// Records that LevelDB has no record of an unknown key, if memory is on. Evicts nothing, so that entries of other
    /// keys that were found before stay: the caller calls ``makeRoom()`` afterwards.
    func keepAbsence(_ key: UnsafeRawBufferPointer, _ hash: Int) {
        if budget.isOn { table.keep(key, hash: hash, nil) }
    }

    /// Reports the table's growth to the budget, and evicts any excess.
    func makeRoom() {
        let change = table.budgetedByteCount - publishedBytes
        guard abs(change) >= budget.stepBytes || abs(table.dirtyByteCount - publishedDirtyBytes) >= budget.stepBytes
        else { return }
        publish()
        if change > 0 { budget.makeRoom(self) }
    }

    /// Reports everything to the budget, and evicts any excess: after entries became clean, and for attachments, which
    /// may be large.
    func makeRoomNow() {
        publish()
        budget.makeRoom(self)
    }

    /// Reports to the budget how the table grew or shrank.
    func publish() {
        let dirty = table.dirtyByteCount
        let bytes = table.budgetedByteCount
        let attached = table.attachedByteCount
        budget.changed(
            by: bytes - publishedBytes, dirty: dirty - publishedDirtyBytes, attached: attached - publishedAttachedBytes)
        publishedBytes = bytes
        publishedDirtyBytes = dirty
        publishedAttachedBytes = attached
    }

    // MARK: Cold reads

    /// Counts a read of a key from LevelDB, for the choice of entries to evict from there.
    func noteDiskRead(_ hash: Int) { if disk?.notesReads ?? false { table.diskReads.add(hash) } }

    /// Leaves a placeholder for a key that will be read from LevelDB without the lock. One of the two calls that end it
    /// must follow.
    func beginRead(_ hash: Int) -> Int { reads.begin(hash) }

    /// Keeps the result of a read of LevelDB without the lock, unless the key was changed since the placeholder was
    /// created.
    func endRead(_ number: Int, _ key: UnsafeRawBufferPointer, _ hash: Int, keeping record: UnsafeRawBufferPointer?) {
        if reads.end(number) { keep(key, hash, record) }
    }

    /// Ends a read that failed.
    func endRead(_ number: Int) { _ = reads.end(number) }

    /// The number of shards of a database. A power of two, 32 at most: sets of them are the bits of a UInt32.
    static let count = 16

    /// The index of the shard for a key with this hash, from 0 to ``count`` - 1.
    static func index(_ hash: Int) -> Int { hash & (count - 1) }
}

extension Statistics {
    /// Adds the counts of a shard.
    func take(_ counters: Shard.Counters) {
        hits.add(counters.hits)
        misses.add(counters.misses)
        missesExpired.add(counters.missesExpired)
        missesPurged.add(counters.missesPurged)
        missesEvicted.add(counters.missesEvicted)
        writes.add(counters.writes)
        removals.add(counters.removals)
        expired.add(counters.expired)
    }
}
