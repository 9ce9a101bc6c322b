import CLarderPrefetch
import LarderPlatform
import Synchronization

/// The entries of one shard in memory: all entries that LevelDB does not have yet, and as many others as fit into the
/// memory budget.
///
/// - One table contains both kinds. So a read takes one lookup, and a written entry stays in place when it becomes
///   clean.
/// - *Dirty* entries are in the journal but not yet in LevelDB. They are never evicted from memory. See
///   `EntryTable+Dirty`.
/// - *Clean* entries are in LevelDB too. S3-FIFO evicts them. See `EntryTable+Eviction`. A clean entry without a record
///   means that LevelDB has no record of the key. So repeated reads of a missing key do not go to the disk.
/// - Entries may be expired; readers check that.
///
/// An open-addressing hash table with linear probing (Knuth, TAOCP vol. 3, 6.4, algorithms L and R), in manually
/// allocated memory: a lookup neither allocates nor counts references. The shard's lock guards the table and everything
/// that it points to. Swift's run-time check for overlapping accesses to properties is turned off, because it would
/// make storing an entry a tenth slower. So the code must not access a property during another access to the same
/// property.
final class EntryTable {
    private struct Slot {
        var hash: Int
        var entry: EntryPointer?
    }

    private var slots: UnsafeMutablePointer<Slot> {
        didSet { address.store(UInt(bitPattern: slots), ordering: .relaxed) }
    }
    private var capacity: Int {
        didSet { mask.store(capacity - 1, ordering: .relaxed) }
    }
    /// The address of the slots. Only for prefetching without the lock; must not be dereferenced.
    private let address = Atomic<UInt>(0)
    private let mask = Atomic<Int>(0)
    @exclusivity(unchecked) private(set) var count = 0
    /// The size of all entries, clean and dirty, in bytes.
    @exclusivity(unchecked) var byteCount = 0
    private var loads: UInt64 = 0
    /// The attachments of all entries, clean and dirty.
    @exclusivity(unchecked) private var attachments = AttachmentList()
    /// Receives attachments that entries drop.
    private let released: ReleaseQueue

    // The lists of clean entries; see EntryTable+Eviction.
    @exclusivity(unchecked) var small = EntryList()
    @exclusivity(unchecked) var main = EntryList()
    @exclusivity(unchecked) var ghosts = GhostTable()
    /// The approximate number of recent reads of keys from LevelDB; empty if they are not recorded.
    @exclusivity(unchecked) var diskReads = ReadSketch()
    // The lists of dirty entries; see EntryTable+Dirty.
    @exclusivity(unchecked) var active = EntryList()
    @exclusivity(unchecked) var written = EntryList()
    /// The number of entries that the running checkpoint has yet to take. They are the oldest in ``active``.
    var frozenCount = 0

    private static let capacityMin = 16
    /// The number of low bits of a hash that select the shard. They are the same for all keys of the table, so slots
    /// are selected by higher bits.
    private static let shardBits = 4

    init(released: ReleaseQueue = ReleaseQueue()) {
        self.released = released
        capacity = Self.capacityMin
        slots = Self.makeSlots(Self.capacityMin)
        address.store(UInt(bitPattern: slots), ordering: .relaxed)
        mask.store(capacity - 1, ordering: .relaxed)
    }

    deinit {
        freeEntries()
        slots.deallocate()
    }

    private static func makeSlots(_ count: Int) -> UnsafeMutablePointer<Slot> {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: count)
        slots.initialize(repeating: Slot(hash: 0, entry: nil), count: count)
        return slots
    }

    private func freeEntries() {
        for index in 0..<capacity {
            guard let entry = slots[index].entry else { continue }
            detach(entry)
            entry.free()
        }
    }

    // MARK: Lookup

    /// Returns the entry of a key; nil if the table has none.
    func find(_ key: UnsafeRawBufferPointer, hash: Int) -> EntryPointer? {
        let mask = capacity - 1
        var index = hash >> Self.shardBits & mask
        while let entry = slots[index].entry {
            if slots[index].hash == hash, entry.hasKey(key) { return entry }
            index = (index + 1) & mask
        }
        return nil
    }

    /// Prefetches the first slot for a hash into the CPU cache. Needs no lock.
    func prefetchSlot(_ hash: Int) {
        let index = hash >> Self.shardBits & mask.load(ordering: .relaxed)
        larder_prefetch(
            UnsafeRawPointer(
                bitPattern: address.load(ordering: .relaxed) &+ UInt(bitPattern: index &* MemoryLayout<Slot>.stride)))
    }

    /// Prefetches the entry in the first slot for a hash into the CPU cache. Called with the lock held.
    func prefetchEntry(_ hash: Int) {
        guard let entry = slots[hash >> Self.shardBits & (capacity - 1)].entry else { return }
        larder_prefetch(entry.head)
        larder_prefetch(entry.head + 1)
    }

    // MARK: Changes

    /// Stores a record of `count` bytes as a dirty entry.
    /// - Parameters:
    ///   - version: the sequence (number) of the commit unit.
    ///   - fill: writes the record to the given memory.
    func put(
        _ key: UnsafeRawBufferPointer, hash: Int, count: Int, version: UInt64,
        _ fill: (UnsafeMutableRawPointer) -> Void
    ) -> EntryPointer {
        let entry = dirtyEntry(key, hash, recordCount: count)
        entry.head.pointee.version = version
        fill(entry.reserve(count))
        return entry
    }

    /// Stores an existing entry, with its version and record, as a dirty entry.
    func put(_ entry: EntryPointer) {
        let hash = entry.head.pointee.hash
        guard let found = find(entry.key, hash: hash) else {
            insert(entry)
            return active.push(entry, .active)
        }
        detach(found)
        replace(found, entry)
        makeDirty(entry)
    }

    /// Removes a key. Stores a dirty entry without a record, because LevelDB may still have the key.
    func remove(_ key: UnsafeRawBufferPointer, hash: Int, version: UInt64) {
        let entry = dirtyEntry(key, hash, recordCount: 0)
        entry.head.pointee.version = version
        _ = entry.reserve(0)
    }

    /// Adds a clean entry with the record that LevelDB has for a key, or without a record if LevelDB has none. Does
    /// nothing if the table already has the key.
    func keep(_ key: UnsafeRawBufferPointer, hash: Int, _ record: UnsafeRawBufferPointer?) {
        guard find(key, hash: hash) == nil else { return }
        let count = record?.count ?? 0
        let entry = EntryPointer.make(key, hash: hash, recordCount: count)
        loads += 1
        entry.head.pointee.version = EntryHead.loadedBit | loads
        entry.head.pointee.isAbsentInLevelDB = record == nil
        let place = entry.reserve(count)
        if let start = record?.baseAddress { place.copyMemory(from: start, byteCount: count) }
        insert(entry)
        admit(entry)
    }

    /// Removes a clean entry from memory. A dirty entry stays.
    func forget(_ entry: EntryPointer) {
        guard !entry.isDirty else { return }
        unlink(entry)
        discard(entry)
    }

    /// Removes all clean entries from memory.
    func forgetClean() {
        while let entry = small.oldest { forget(entry) }
        while let entry = main.oldest { forget(entry) }
        ghosts = GhostTable()
    }

    /// Removes all entries, clean and dirty.
    func removeAll() {
        freeEntries()
        slots.deallocate()
        capacity = Self.capacityMin
        slots = Self.makeSlots(capacity)
        count = 0
        byteCount = 0
        (small, main, active, written) = (EntryList(), EntryList(), EntryList(), EntryList())
        frozenCount = 0
        ghosts = GhostTable()
    }

    // MARK: Attachments

    /// The size of all attachments, in bytes.
    var attachedByteCount: Int { attachments.byteCount }

    /// Attaches an object to an entry. The next change of the entry drops the object.
    func attach(_ attachment: Attachment, to entry: EntryPointer) {
        detach(entry)
        attachments.add(attachment, to: entry)
    }

    /// Detaches an entry's attachment. The ``ReleaseQueue`` releases it later, when no lock is held.
    func detach(_ entry: EntryPointer) {
        if entry.head.pointee.attachment == nil { return }
        if let attachment = attachments.take(from: entry) { released.add(attachment) }
    }

    /// Drops one attachment. Its entry stays.
    /// - Returns: false if there are no attachments.
    func dropAttachment() -> Bool {
        guard let entry = attachments.nextToLeave() else { return false }
        detach(entry)
        return true
    }

    /// Detaches the attachment of an entry without a record: a checkpoint may have removed the record because it has
    /// expired.
    func detachIfEmpty(_ entry: EntryPointer) {
        if entry.head.pointee.recordCount == 0 { detach(entry) }
    }

    // MARK: Memory

    /// Returns the entry of a key after making it dirty, dropping its attachment, and reserving space for a record of
    /// `recordCount` bytes. Creates the entry if it is missing.
    private func dirtyEntry(_ key: UnsafeRawBufferPointer, _ hash: Int, recordCount: Int) -> EntryPointer {
        guard let found = find(key, hash: hash) else {
            let entry = EntryPointer.make(key, hash: hash, recordCount: recordCount)
            insert(entry)
            active.push(entry, .active)
            return entry
        }
        detach(found)
        found.head.pointee.isFoundExpired = false
        var entry = found
        if !found.fits(recordCount) {
            entry = EntryPointer.make(found.key, hash: hash, recordCount: recordCount)
            entry.head.pointee.version = found.head.pointee.version
            replace(found, entry)
        }
        makeDirty(entry)
        return entry
    }

    /// Makes an entry dirty, because it is about to change.
    private func makeDirty(_ entry: EntryPointer) {
        switch entry.head.pointee.place {
        // Leave a dirty entry at its place. The checkpoint compares versions, and so detects that the entry has
        // changed.
        case .active, .written: break
        case .small, .main, .nowhere:
            entry.head.pointee.wasMain = entry.head.pointee.place == .main
            unlink(entry)
            active.push(entry, .active)
        }
    }

    /// Replaces `old` by `new`, which has different memory, at the same place of the same list. The caller sets the
    /// version and the record.
    private func replace(_ old: EntryPointer, _ new: EntryPointer) {
        new.head.pointee.indexed = old.head.pointee.indexed
        new.head.pointee.frequency = old.head.pointee.frequency
        new.head.pointee.wasMain = old.head.pointee.wasMain
        new.head.pointee.isAbsentInLevelDB = old.head.pointee.isAbsentInLevelDB
        switch old.head.pointee.place {
        case .small: small.replace(old, new)
        case .main: main.replace(old, new)
        case .active: active.replace(old, new)
        case .written: written.replace(old, new)
        case .nowhere: break
        }
        slots[slot(of: old)].entry = new
        byteCount += new.byteCount - old.byteCount
        old.free()
    }

    func unlink(_ entry: EntryPointer) {
        switch entry.head.pointee.place {
        case .small: small.unlink(entry)
        case .main: main.unlink(entry)
        case .active: active.unlink(entry)
        case .written: written.unlink(entry)
        case .nowhere: break
        }
    }

    /// Removes an entry from the table and frees it. The entry must have been removed from its list.
    func discard(_ entry: EntryPointer) {
        byteCount -= entry.byteCount
        detach(entry)
        takeOut(slot(of: entry))
        entry.free()
    }

    // MARK: Slots

    private func slot(of entry: EntryPointer) -> Int {
        let mask = capacity - 1
        var index = entry.head.pointee.hash >> Self.shardBits & mask
        while slots[index].entry != entry {
            precondition(slots[index].entry != nil, "an entry is not in its table")
            index = (index + 1) & mask
        }
        return index
    }

    private func insert(_ entry: EntryPointer) {
        if 4 * (count + 1) > 3 * capacity { resize(to: 2 * capacity) }
        place(Slot(hash: entry.head.pointee.hash, entry: entry))
        count += 1
        byteCount += entry.byteCount
    }

    private func place(_ slot: Slot) {
        let mask = capacity - 1
        var index = slot.hash >> Self.shardBits & mask
        while slots[index].entry != nil { index = (index + 1) & mask }
        slots[index] = slot
    }

    private func resize(to newCapacity: Int) {
        let old = slots
        let oldCapacity = capacity
        slots = Self.makeSlots(newCapacity)
        capacity = newCapacity
        for index in 0..<oldCapacity where old[index].entry != nil { place(old[index]) }
        old.deallocate()
    }

    /// Empties a slot. Moves entries of the following slots into the hole if a lookup could not find them otherwise.
    private func takeOut(_ slot: Int) {
        let mask = capacity - 1
        var hole = slot
        var index = (slot + 1) & mask
        while slots[index].entry != nil {
            let home = slots[index].hash >> Self.shardBits & mask
            // A lookup begins at the entry's home slot. So the entry may move to the hole, unless its home slot is
            // between the hole and `index`.
            if (index &- home) & mask >= (index &- hole) & mask {
                slots[hole] = slots[index]
                hole = index
            }
            index = (index + 1) & mask
        }
        slots[hole].entry = nil
        count -= 1
    }
}
