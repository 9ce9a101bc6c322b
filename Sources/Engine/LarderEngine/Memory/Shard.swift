import LarderPlatform

/// A part of a database's keys, selected by the hashes of the keys, with the lock for all operations on these keys.
///
/// `@unchecked Sendable`: `lock` guards everything else.
package final class Shard: @unchecked Sendable {
    let lock = Lock()
    /// The entries in memory. For a key that is not in the table, LevelDB must be read.
    let table: EntryTable
    private let budget: MemoryBudget
    private let disk: DiskBudget?
    /// The keys that were changed since an exchange of two databases began; nil while no exchange is running.
    @exclusivity(unchecked) var recordedKeys: Set<Key>?
    /// The keys whose terms have to be extracted; nil in a database without indexes.
    @exclusivity(unchecked) var changedKeys: ChangedKeys?
    @exclusivity(unchecked) var reads = InFlightReads()
    @exclusivity(unchecked) var evictedKeys = EvictedKeys()
    /// Nil until a lease is granted.
    @exclusivity(unchecked) var leases: LeaseTable?
    /// The size of the table that was last reported to the budget: see ``EntryTable/budgetedByteCount``.
    @exclusivity(unchecked) private var publishedBytes = 0
    @exclusivity(unchecked) private var publishedDirtyBytes = 0
    @exclusivity(unchecked) private var publishedAttachedBytes = 0
    /// The counts since the last ``takeCounters()``; see ``Statistics``. No atomics are needed, because the shard's
    /// lock is held anyway. Accesses are too short to overlap, so Swift's run-time check for overlaps is turned off.
    @exclusivity(unchecked) var counters = Counters()
    /// The sum of the counts that ``takeCounters()`` has returned.
    private(set) var previousCounters = Counters()

    /// The numbers of operations on keys.
    package struct Counters: Sendable {
        package var hits = 0
        package var misses = 0
        /// The number of misses because the entry is not fresh: `missesExpired` because it has expired, `missesPurged`
        /// because one of its tags was purged.
        package var missesExpired = 0
        package var missesPurged = 0
        /// Misses of entries that were evicted because of a disk limit. A lower bound.
        package var missesEvicted = 0
        package var writes = 0
        package var removals = 0
        package var expired = 0
        /// The number of writes that changed nothing but the lifetime of an entry.
        package var renewals = 0
        /// Removals that found no fresh entry.
        package var removalsWithoutEntry = 0
        /// Entries that were evicted because of a disk limit.
        package var evicted = 0
        /// The number of purges of the whole database.
        package var purges = 0

        /// Counts a read without a fresh entry.
        /// - Parameter header: the header of the outdated entry that the read found; nil if the read found no entry.
        mutating func noteMiss(_ header: RecordHeader?) {
            misses += 1
            guard let header else { return }
            if header.tagsEnd == .max { missesExpired += 1 } else { missesPurged += 1 }
        }

        mutating func add(_ other: Counters) {
            renewals += other.renewals
            removalsWithoutEntry += other.removalsWithoutEntry
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

    /// Returns the counts since the last call, and resets them.
    func takeCounters() -> Counters {
        let taken = counters
        previousCounters.add(taken)
        counters = Counters()
        return taken
    }

    /// - Parameter pinnedBytesMin: see ``EngineOptions/pinnedBytesMin``.
    init(budget: MemoryBudget, disk: DiskBudget? = nil, pinnedBytesMin: Int = EngineOptions().pinnedBytesMin) {
        self.budget = budget
        self.disk = disk
        table = EntryTable(released: budget.released, pinnedBytesMin: pinnedBytesMin)
    }

    deinit {
        budget.changed(by: -publishedBytes, dirty: -publishedDirtyBytes, attached: -publishedAttachedBytes)
    }

    /// Counts a read without a fresh entry.
    /// - Parameter header: the header of the outdated entry that the read found; nil if the read found no entry.
    func noteMiss(_ header: RecordHeader?, _ hash: Int, now: Int64) {
        counters.noteMiss(header)
        if header == nil, evictedKeys.has(hash, now: now) { counters.missesEvicted += 1 }
    }

    // MARK: Entries

    /// Returns the entry of a key; nil if LevelDB must be read.
    func find(_ key: Key) -> EntryPointer? {
        key.stored.withUnsafeBytes { table.find(UnsafeRawBufferPointer(rebasing: $0.dropFirst()), hash: key.hash) }
    }

    /// Stores a record as a dirty entry.
    func put(
        _ key: UnsafeRawBufferPointer, _ hash: Int, _ record: RecordView, sequence: UInt64,
        lease: LeaseEffect = .outdated
    ) {
        table.put(key, hash: hash, record, sequence: sequence)
        counters.writes += 1
        changed(key, hash, lease)
    }

    /// Stores an encoded record as a dirty entry.
    func put(_ key: UnsafeRawBufferPointer, _ hash: Int, stored: UnsafeRawBufferPointer, sequence: UInt64) {
        table.put(key, hash: hash, stored: stored, sequence: sequence)
        counters.writes += 1
        changed(key, hash)
    }

    /// Stores an entry with a block of its own as a dirty entry. The table takes ownership of it.
    func put(_ entry: EntryPointer, _ hash: Int, sequence: UInt64, lease: LeaseEffect = .outdated) {
        table.put(entry, hash: hash, sequence: sequence)
        counters.writes += 1
        changed(entry.key, hash, lease)
    }

    /// Removes a key, and stores the removal as a dirty entry.
    func remove(_ key: UnsafeRawBufferPointer, _ hash: Int, sequence: UInt64, lease: LeaseEffect = .outdated) {
        removeInPlace(key, hash, sequence: sequence, lease: lease)
        makeRoom()
    }

    /// Removes a key without evicting anything, so that the caller's pointers to other entries stay valid. The caller
    /// must call ``makeRoom()`` afterwards.
    func removeInPlace(_ key: UnsafeRawBufferPointer, _ hash: Int, sequence: UInt64, lease: LeaseEffect = .outdated) {
        table.remove(key, hash: hash, sequence: sequence)
        counters.removals += 1
        notifyReaders(key, hash, lease, isRemoval: true)
    }

    private func changed(_ key: UnsafeRawBufferPointer, _ hash: Int, _ lease: LeaseEffect = .outdated) {
        notifyReaders(key, hash, lease, isRemoval: false)
        makeRoom()
    }

    private func notifyReaders(_ key: UnsafeRawBufferPointer, _ hash: Int, _ lease: LeaseEffect, isRemoval: Bool) {
        reads.changed(key, hash)
        evictedKeys.remove(hash)
        if leases != nil { leases?.changed(key, lease, isRemoval: isRemoval) }
        if recordedKeys != nil { recordedKeys?.insert(Key(key)) }
        if changedKeys != nil, !isRemoval { changedKeys?.add(key) }
    }

    /// Removes all entries from memory, and marks reads in progress as outdated.
    func clear() {
        table.removeAll()
        reads.changedAll()
        evictedKeys.removeAll()
        leases?.changed(prefix: [])
        publish()
    }

    /// Removes the clean entries from memory, and marks reads in progress as outdated, because LevelDB's content may
    /// have changed.
    func forgetStored() {
        table.forgetClean()
        reads.changedAll()
        publish()
    }

    /// Removes a clean entry from memory, because it will be deleted from LevelDB. A dirty entry stays. May move other
    /// entries.
    func dropIfClean(_ entry: EntryPointer) {
        table.forget(entry)
        table.compact()
        publish()
    }

    /// Marks an expired entry that a read has found, and counts it once. Drops its attachment. The entry stays in
    /// memory until it is removed from LevelDB or evicted, but its queue evicts it next.
    @inline(never)
    func foundExpired(_ entry: EntryPointer) {
        guard !entry.isFoundExpired else { return }
        entry.isFoundExpired = true
        counters.expired += 1
        table.detach(entry)
        table.demote(entry)
        publish()
    }

    // MARK: Attachments

    /// Attaches an object to an entry if the entry still has this version.
    func attach(_ object: Attachment, to entry: EntryPointer, version: UInt64) {
        guard budget.isOn, table.version(of: entry) == version, entry.hasRecord,
            budget.admits(object.byteCount)
        else { return }
        table.attach(object, to: entry)
        publish()
        budget.makeRoomForAttachments(self)
        makeRoomNow()
    }

    // MARK: Memory

    /// Whether memory keeps clean entries at all.
    var keepsRecords: Bool { budget.isOn }

    /// Returns whether a dirty entry stays in memory after it has become clean.
    func keeps(_ entry: EntryPointer) -> Bool { budget.isOn && budget.admits(entry.recordCount) }

    /// Adds a clean entry with the record that LevelDB has for a key, or without a record if LevelDB has none. Does
    /// nothing if memory has an entry of the key, or does not keep entries of this size.
    private func keep(_ key: UnsafeRawBufferPointer, _ hash: Int, _ record: UnsafeRawBufferPointer?) {
        guard budget.isOn, budget.admits(record?.count ?? 0) else { return }
        table.keep(key, hash: hash, record)
        makeRoom()
    }

    /// Records in memory that LevelDB has no record of a key. Does nothing if memory has an entry of the key, or keeps
    /// no clean entries. Evicts nothing, so that the caller's pointers to other entries stay valid. The caller must
    /// call ``makeRoom()`` afterwards.
    func keepAbsence(_ key: UnsafeRawBufferPointer, _ hash: Int) {
        if budget.isOn { table.keep(key, hash: hash, nil) }
    }

    /// Reports a change of the table's size to the budget if the change is large enough, and evicts any excess.
    func makeRoom() {
        let change = table.budgetedByteCount - publishedBytes
        guard abs(change) >= budget.stepBytes || abs(table.dirtyByteCount - publishedDirtyBytes) >= budget.stepBytes
        else { return }
        publish()
        if change > 0 { budget.makeRoom(self) }
    }

    /// Reports any change of the table's size to the budget, and evicts any excess. Called after entries have become
    /// clean, and after attachments were added, because attachments may be large.
    func makeRoomNow() {
        table.compact()
        publish()
        budget.makeRoom(self)
    }

    /// Reports to the budget how much the table's size has changed since the last report.
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
    func noteDiskRead(_ hash: Int) { if disk?.countsReads ?? false { table.diskReads.add(hash) } }

    /// Adds a placeholder for a key that will be read from LevelDB without the lock. The caller must end the read with
    /// ``endRead(_:_:_:keeping:)`` or ``endRead(_:)``.
    func beginRead(_ hash: Int) -> Int { reads.begin(hash) }

    /// Ends a read of LevelDB without the lock. Adds the result to memory, unless the key was changed since the
    /// placeholder was added.
    func endRead(_ number: Int, _ key: UnsafeRawBufferPointer, _ hash: Int, keeping record: UnsafeRawBufferPointer?) {
        if reads.end(number) { keep(key, hash, record) }
    }

    /// Ends a read of LevelDB that failed.
    func endRead(_ number: Int) { _ = reads.end(number) }

    /// The number of shards of a database. It must be a power of two, and at most 32, because a set of shards is stored
    /// in the bits of a `UInt32`.
    static let count = 16

    /// Returns the index of the shard for a key with this hash, from 0 to ``count`` - 1.
    static func index(_ hash: Int) -> Int { hash & (count - 1) }
}

extension Statistics {
    /// Adds the counts that were taken from a shard.
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
