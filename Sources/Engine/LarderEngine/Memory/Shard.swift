import LarderPlatform

/// A part of a database's keys, with the lock that orders all operations on them.
///
/// `@unchecked Sendable`: everything except `lock` is guarded by `lock`.
package final class Shard: @unchecked Sendable {
    let lock = Lock()
    /// The known state of keys. For a key that is not in the table, LevelDB must be read.
    let table: EntryTable
    private let budget: MemoryBudget
    private let disk: DiskBudget?
    /// The keys that were written since an enumeration of all keys started to record them; nil if none is running.
    var notedKeys: Set<Key>?
    @exclusivity(unchecked) var reads = InFlightReads()
    @exclusivity(unchecked) var evictedKeys = EvictedKeys()
    /// Nil until a lease is granted.
    @exclusivity(unchecked) var leases: LeaseTable?
    /// The size of the table as last reported to the budget, see ``EntryTable/budgetedByteCount``.
    @exclusivity(unchecked) private var publishedBytes = 0
    @exclusivity(unchecked) private var publishedDirtyBytes = 0
    @exclusivity(unchecked) private var publishedAttachedBytes = 0
    /// The counts since they were last taken. Counting costs nothing, because the shard's lock is held anyway. See
    /// ``Statistics``. Accesses are too short to overlap, so the run-time check is turned off.
    @exclusivity(unchecked) var counters = Counters()
    /// The sum of the counts that ``takeCounters()`` has returned.
    private(set) var previousCounters = Counters()

    /// Counts of operations on keys.
    package struct Counters: Sendable {
        package var hits = 0
        package var misses = 0
        /// Misses because the entry is not fresh: `missesExpired` because of its time, `missesPurged` because of a
        /// purge.
        package var missesExpired = 0
        package var missesPurged = 0
        /// Misses because the entry was evicted for a disk limit. A lower bound.
        package var missesEvicted = 0
        package var writes = 0
        package var removals = 0
        package var expired = 0
        /// Writes that only changed the lifetime of an entry.
        package var renewals = 0
        /// Removals that found no fresh entry.
        package var vainRemovals = 0
        /// Entries that were evicted to keep a disk limit.
        package var evicted = 0
        /// The number of purges of the whole database.
        package var purges = 0

        /// Counts a read without a fresh entry.
        /// - Parameter header: the header of the entry if the read found one, which is not fresh.
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
        previousCounters.add(taken)
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
    /// - Parameter header: the header of the entry if the read found one, which is not fresh.
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

    /// Stores an entry with its record as a dirty entry. The table takes ownership.
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

    /// Like ``remove(_:_:sequence:)``, but evicts nothing, so that entries of other keys that were already found stay
    /// valid. The caller must call ``makeRoom()`` afterwards.
    func removeInPlace(
        _ key: UnsafeRawBufferPointer, _ hash: Int, sequence: UInt64, lease: LeaseEffect = .outdated
    ) {
        table.remove(key, hash: hash, version: sequence)
        counters.removals += 1
        notifyReaders(key, hash, lease, isRemoval: true)
    }

    private func changed(_ key: UnsafeRawBufferPointer, _ hash: Int, _ lease: LeaseEffect = .outdated) {
        notifyReaders(key, hash, lease, isRemoval: false)
        makeRoom()
    }

    private func notifyReaders(
        _ key: UnsafeRawBufferPointer, _ hash: Int, _ lease: LeaseEffect, isRemoval: Bool
    ) {
        reads.changed(key, hash)
        evictedKeys.remove(hash)
        if leases != nil { leases?.changed(key, lease, isRemoval: isRemoval) }
        if notedKeys != nil { notedKeys?.insert(Key(key)) }
    }

    /// Forgets all keys, and informs reads in progress that all keys have changed.
    func clear() {
        table.removeAll()
        reads.changedAll()
        evictedKeys.removeAll()
        leases?.changedAll()
        publish()
    }

    /// Forgets the known content of LevelDB, and informs reads in progress that it may have changed.
    func forgetStored() {
        table.forgetClean()
        reads.changedAll()
        publish()
    }

    /// Forgets a clean entry, because LevelDB will delete it. A dirty entry is left to the checkpoint.
    func dropIfClean(_ entry: EntryPointer) {
        table.forget(entry)
        publish()
    }

    /// Handles an expired entry that a read has found, and counts it once. The entry is marked and stays until it is
    /// removed from LevelDB, or evicted, which happens before other entries. Its attachment is dropped.
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

    /// Attaches an object to an entry if the entry still has this version.
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

    /// Whether a dirty entry stays in memory when LevelDB has it.
    func keeps(_ entry: EntryPointer) -> Bool { budget.isOn && budget.admits(entry.record?.count ?? 0) }

    /// Keeps LevelDB's record of a key, or nil if it has none, if clean entries are kept and nothing newer is known.
    private func keep(_ key: UnsafeRawBufferPointer, _ hash: Int, _ record: UnsafeRawBufferPointer?) {
        guard budget.isOn, budget.admits(record?.count ?? 0) else { return }
        table.keep(key, hash: hash, record)
        makeRoom()
    }

    /// Records that LevelDB has no record of a key, if clean entries are kept and nothing is known about the key.
    /// Evicts nothing, so that entries of other keys that were already found stay valid. The caller must call
    /// ``makeRoom()`` afterwards.
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

    /// Reports all growth to the budget, and evicts any excess. Called after entries became clean, and for attachments,
    /// which may be large.
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

    /// Counts a read of a key from LevelDB. The disk eviction uses the counts to choose entries.
    func noteDiskRead(_ hash: Int) { if disk?.notesReads ?? false { table.diskReads.add(hash) } }

    /// Adds a placeholder for a key that will be read from LevelDB without the lock. One of the two calls that end the
    /// read must follow.
    func beginRead(_ hash: Int) -> Int { reads.begin(hash) }

    /// Keeps the result of a read of LevelDB without the lock, unless the key was changed since the placeholder was
    /// added.
    func endRead(_ number: Int, _ key: UnsafeRawBufferPointer, _ hash: Int, keeping record: UnsafeRawBufferPointer?) {
        if reads.end(number) { keep(key, hash, record) }
    }

    /// Ends a read that failed.
    func endRead(_ number: Int) { _ = reads.end(number) }

    /// The number of shards of a database. A power of two, 32 at most, because the bits of a `UInt32` represent sets of
    /// shards.
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
