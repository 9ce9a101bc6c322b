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
/// A hash table (``SlotTable``) finds the entries (``EntryMemory``); a lookup neither allocates nor counts references.
/// The shard's lock guards the table and everything that it points to. Swift's run-time check for overlapping accesses
/// to properties is turned off, because it would make storing an entry a tenth slower. So the code must not access a
/// property during another access to the same property.
final class EntryTable {
    @exclusivity(unchecked) private var slots = SlotTable()
    @exclusivity(unchecked) var memory: EntryMemory
    /// The array of the slots, only for prefetching without the lock: it may be outdated, and must not be dereferenced.
    private let homes = Atomic<UInt>(0)
    private let homeCount = Atomic<Int>(0)
    private let hash: (UnsafeRawBufferPointer) -> Int
    /// The attachments of all entries, clean and dirty.
    @exclusivity(unchecked) private var attachments = AttachmentList()
    /// Receives attachments that entries drop.
    private let released: ReleaseQueue
    /// The number of times that clean entries may have got other contents; a part of their versions.
    @exclusivity(unchecked) var cleanStates: UInt64 = 0
    /// No entry was written by a later commit unit.
    @exclusivity(unchecked) private(set) var newestSequence: UInt64 = 0

    // The queues of clean entries; see EntryTable+Eviction.
    @exclusivity(unchecked) var small = EntryQueue<EntryReference>()
    @exclusivity(unchecked) var main = EntryQueue<EntryReference>()
    @exclusivity(unchecked) var ghosts = GhostTable()
    /// The approximate number of recent reads of keys from LevelDB; empty if they are not recorded.
    @exclusivity(unchecked) var diskReads = ReadSketch()
    // The queues of dirty entries; see EntryTable+Dirty.
    @exclusivity(unchecked) var active = EntryQueue<DirtyEntry>()
    @exclusivity(unchecked) var written = EntryQueue<DirtyEntry>()
    /// The number of entries that the running checkpoint has yet to take. They are the oldest in ``active``.
    var frozenCount = 0
    /// The rules by which entries with ``EntryPointer/isIndexed`` were indexed.
    var indexing: ExpiryIndex.Rules?

    /// The bit of a version that is set if LevelDB has the entry.
    private static let cleanBit: UInt64 = 1 << 63

    /// - Parameters:
    ///   - pinnedBytesMin: the length of the shortest record that may be pinned.
    ///   - hash: returns the hash of a key.
    init(
        released: ReleaseQueue = ReleaseQueue(), pinnedBytesMin: Int = .max,
        hash: @escaping (UnsafeRawBufferPointer) -> Int = { Key.hash($0) }
    ) {
        self.released = released
        self.hash = hash
        memory = EntryMemory(blockBytesMin: pinnedBytesMin)
        publishSlots()
    }

    deinit {
        detachAll()
        memory.deallocate()
        slots.removeAll()
        small.deallocate()
        main.deallocate()
        active.deallocate()
        written.deallocate()
    }

    /// The number of entries, clean and dirty.
    var count: Int { slots.count }

    /// The memory of all entries, clean and dirty, in bytes: pages, slots and queues. Without attachments.
    var byteCount: Int {
        memory.byteCount + slots.byteCount + small.byteCount + main.byteCount + active.byteCount + written.byteCount
            + ghosts.byteCount
    }

    // MARK: Lookup

    /// Returns the entry of a key; nil if the table has none.
    @inline(__always)
    func find(_ key: UnsafeRawBufferPointer, hash: Int) -> EntryPointer? {
        findSlot(key, hash).map { memory.entry(SlotTable.reference($0.pointee)) }
    }

    @inline(__always)
    private func findSlot(_ key: UnsafeRawBufferPointer, _ hash: Int) -> SlotTable.Slot? {
        slots.find(SlotTable.tag(hash)) { memory.entry($0).hasKey(key) }
    }

    /// Prefetches the first slot for a hash into the CPU cache. Needs no lock.
    func prefetchSlot(_ hash: Int) {
        let tag = UInt64(SlotTable.tag(hash))
        let index = (tag &* UInt64(truncatingIfNeeded: homeCount.load(ordering: .relaxed))) >> 32
        larder_prefetch(UnsafeRawPointer(bitPattern: homes.load(ordering: .relaxed) &+ UInt(index) &* 8))
    }

    /// Prefetches the entry with a hash into the CPU cache. Called with the lock held.
    func prefetchEntry(_ hash: Int) {
        guard let slot = slots.find(SlotTable.tag(hash), { _ in true }) else { return }
        let entry = memory.entry(SlotTable.reference(slot.pointee))
        larder_prefetch(entry.address)
        larder_prefetch(entry.address + 64)
    }

    private func publishSlots() {
        let (start, count) = slots.homes
        if homes.load(ordering: .relaxed) != UInt(bitPattern: start) {
            homes.store(UInt(bitPattern: start), ordering: .relaxed)
            homeCount.store(count, ordering: .relaxed)
        }
    }

    /// Makes the table fast to fill, but larger than necessary until ``endFilling()``.
    func beginFilling() { slots.isFilling = true }

    func endFilling() {
        slots.isFilling = false
        slots.fit()
        publishSlots()
    }

    /// Identifies the state of an entry: no two states of a key have the same version. For a dirty entry the sequence
    /// (number) of its commit unit, for a clean one a number that changes whenever clean entries may have changed.
    func version(of entry: EntryPointer) -> UInt64 { entry.isDirty ? sequence(of: entry) : Self.cleanBit | cleanStates }

    /// The sequence of the commit unit that wrote a dirty entry; 0 if the entry is clean.
    func sequence(of entry: EntryPointer) -> UInt64 {
        switch entry.place {
        case .active: active[entry.position].pointee.sequence
        case .written: written[entry.position].pointee.sequence
        case .small, .main, .nowhere, .free: 0
        }
    }

    // MARK: Changes

    /// Stores a record as a dirty entry.
    /// - Parameter sequence: the sequence of the commit unit.
    func put(_ key: UnsafeRawBufferPointer, hash: Int, _ record: RecordView, sequence: UInt64) {
        put(key, hash, PackedRecord(record, storedFrom: memory.blockBytesMin), sequence)
    }

    /// Stores an encoded record as a dirty entry.
    func put(_ key: UnsafeRawBufferPointer, hash: Int, stored: UnsafeRawBufferPointer, sequence: UInt64) {
        put(key, hash, PackedRecord(stored: stored, storedFrom: memory.blockBytesMin), sequence)
    }

    private func put(_ key: UnsafeRawBufferPointer, _ hash: Int, _ record: PackedRecord, _ sequence: UInt64) {
        record.write(to: dirtyEntry(key, hash, recordCount: record.byteCount, sequence).recordPlace)
    }

    /// Stores an entry with a block of its own, which belongs to no table, as a dirty entry.
    func put(_ entry: EntryPointer, hash: Int, sequence: UInt64) {
        let reference = memory.adopt(entry)
        guard let slot = findSlot(entry.key, hash) else { return insertDirty(reference, entry, hash, sequence) }
        let found = memory.entry(SlotTable.reference(slot.pointee))
        detach(found)
        makeDirty(found, sequence)
        replace(found, at: slot, by: reference, entry)
        entry.isFoundExpired = false
    }

    /// Removes a key. Stores a dirty entry without a record, because LevelDB may still have the key.
    func remove(_ key: UnsafeRawBufferPointer, hash: Int, sequence: UInt64) {
        _ = dirtyEntry(key, hash, recordCount: 0, sequence)
    }

    /// Adds a clean entry with the record that LevelDB has for a key, or without a record if LevelDB has none. Does
    /// nothing if the table already has the key.
    func keep(_ key: UnsafeRawBufferPointer, hash: Int, _ record: UnsafeRawBufferPointer?) {
        guard !memory.isNearlyFull, findSlot(key, hash) == nil else { return }
        let packed = record.map { PackedRecord(stored: $0, storedFrom: memory.blockBytesMin) }
        let (reference, entry) = memory.make(key, recordCount: packed?.byteCount ?? 0)
        entry.isAbsentInLevelDB = record == nil
        packed?.write(to: entry.recordPlace)
        insert(reference, hash)
        admit(reference, entry, hash: hash, wasMain: false)
    }

    /// Removes a clean entry from memory. A dirty entry stays.
    func forget(_ entry: EntryPointer) {
        guard !entry.isDirty else { return }
        discard(takeOut(entry), entry)
    }

    /// Removes all clean entries from memory.
    func forgetClean() {
        while !small.isEmpty { forget(memory.entry(small[small.first].pointee)) }
        while !main.isEmpty { forget(memory.entry(main[main.first].pointee)) }
        ghosts = GhostTable()
        cleanStates += 1
    }

    /// Removes all entries, clean and dirty.
    func removeAll() {
        detachAll()
        memory.removeAll()
        slots.removeAll()
        publishSlots()
        small.removeAll()
        main.removeAll()
        active.removeAll()
        written.removeAll()
        frozenCount = 0
        ghosts = GhostTable()
        newestSequence = 0
        cleanStates += 1
    }

    // MARK: Attachments

    var attachedByteCount: Int { attachments.byteCount }

    /// Attaches an object to an entry. The next change of the entry drops the object. The entry may move.
    func attach(_ attachment: Attachment, to entry: EntryPointer) {
        detach(entry)
        var entry = entry
        if !entry.hasRoom {
            let (reference, roomy) = memory.make(entry.key, recordCount: entry.recordCount, hasRoom: true)
            roomy.recordPlace.copyMemory(from: entry.recordPlace, byteCount: entry.recordCount)
            replace(entry, at: slot(of: entry), by: reference, roomy)
            entry = roomy
        }
        attachments.add(attachment, to: entry)
    }

    /// Detaches an entry's attachment. The ``ReleaseQueue`` releases it later, when no lock is held.
    func detach(_ entry: EntryPointer) {
        if !entry.hasRoom { return }
        if let attachment = attachments.take(from: entry) { released.add(attachment) }
    }

    private func detachAll() { while dropAttachment() {} }

    /// Drops one attachment. Its entry stays.
    /// - Returns: false if there are no attachments.
    func dropAttachment() -> Bool {
        guard let entry = attachments.nextToLeave() else { return false }
        detach(entry)
        return true
    }

    // MARK: Memory

    /// Returns the entry of a key after making it dirty, dropping its attachment, and reserving space for a record of
    /// `recordCount` bytes. Creates the entry if it is missing.
    private func dirtyEntry(
        _ key: UnsafeRawBufferPointer, _ hash: Int, recordCount: Int, _ sequence: UInt64
    ) -> EntryPointer {
        guard let slot = findSlot(key, hash) else {
            let (reference, entry) = memory.make(key, recordCount: recordCount)
            insertDirty(reference, entry, hash, sequence)
            return entry
        }
        let entry = memory.entry(SlotTable.reference(slot.pointee))
        detach(entry)
        entry.isFoundExpired = false
        makeDirty(entry, sequence)
        return resize(entry, at: slot, recordCount: recordCount)
    }

    private func insertDirty(_ reference: EntryReference, _ entry: EntryPointer, _ hash: Int, _ sequence: UInt64) {
        newestSequence = max(newestSequence, sequence)
        insert(reference, hash)
        pushActive(DirtyEntry(reference: reference, sequence: sequence), entry)
    }

    /// Makes an entry dirty, because it is about to change.
    private func makeDirty(_ entry: EntryPointer, _ sequence: UInt64) {
        newestSequence = max(newestSequence, sequence)
        switch entry.place {
        // Leave a dirty entry at its place. The checkpoint compares sequences, and so detects that the entry has
        // changed.
        case .active: active[entry.position].pointee.sequence = sequence
        case .written: written[entry.position].pointee.sequence = sequence
        case .small, .main, .nowhere, .free:
            let wasMain = entry.place == .main
            let indexed = indexedSlot(entry)
            let reference = takeOut(entry)
            pushActive(DirtyEntry(reference: reference, sequence: sequence, indexed: indexed), entry)
            entry.wasMain = wasMain
        }
    }

    /// Gives an entry other memory if its present memory does not suit a record of `recordCount` bytes.
    private func resize(_ entry: EntryPointer, at slot: SlotTable.Slot, recordCount: Int) -> EntryPointer {
        if memory.fits(entry, recordCount) {
            entry.setRecordCount(recordCount)
            return entry
        }
        let (reference, resized) = memory.make(entry.key, recordCount: recordCount)
        replace(entry, at: slot, by: reference, resized)
        return resized
    }

    /// Removes the record of a dirty entry, which then is a removal.
    func dropRecord(_ entry: EntryPointer) {
        detach(entry)
        _ = resize(entry, at: slot(of: entry), recordCount: 0)
    }

    /// Replaces `old` by `new`, which has the same key and different memory, at the same place of the same queue, and
    /// frees `old`.
    private func replace(
        _ old: EntryPointer, at slot: SlotTable.Slot, by reference: EntryReference, _ new: EntryPointer
    ) {
        let oldReference = SlotTable.reference(slot.pointee)
        new.takeState(from: old)
        switch old.place {
        case .small: small.replace(old, by: new)
        case .main: main.replace(old, by: new)
        case .active: active.replace(old, by: new)
        case .written: written.replace(old, by: new)
        case .nowhere, .free: break
        }
        setReference(of: new, to: reference)
        slot.pointee = SlotTable.word(SlotTable.tag(slot.pointee), reference)
        memory.free(oldReference)
    }

    /// Removes an entry from the table and frees it. The entry must have been removed from its queue.
    func discard(_ reference: EntryReference, _ entry: EntryPointer) {
        detach(entry)
        slots.remove(slot(of: entry))
        publishSlots()
        memory.free(reference)
        if slots.count == 0 { ghosts = GhostTable() }
    }

    private func insert(_ reference: EntryReference, _ hash: Int) {
        slots.insert(SlotTable.tag(hash), reference)
        publishSlots()
    }

    private func slot(of entry: EntryPointer) -> SlotTable.Slot {
        let found = slots.find(SlotTable.tag(hash(entry.key))) { memory.entry($0) == entry }
        guard let found else { preconditionFailure("an entry is not in its table") }
        return found
    }

    func hash(of entry: EntryPointer) -> Int { hash(entry.key) }

    /// Calls `body` with the tag and the reference of every entry.
    func forEachSlot(_ body: (UInt32, EntryReference) -> Void) { slots.forEach(body) }

    /// If many cells are free, moves the entries out of a page that has few, and frees the page. Pointers to entries
    /// become invalid.
    func compact() {
        guard memory.maybeSparse, let page = memory.takeSparsePage() else { return }
        for reference in memory.entries(inPage: page) {
            let slot = slot(of: memory.entry(reference))
            let (copy, entry) = memory.move(reference)
            setReference(of: entry, to: copy)
            slot.pointee = SlotTable.word(SlotTable.tag(slot.pointee), copy)
            attachments.moved(entry)
        }
        memory.freePage(page)
    }

    /// Records that an entry has other memory in the item of its queue.
    private func setReference(of entry: EntryPointer, to reference: EntryReference) {
        switch entry.place {
        case .small: small[entry.position].pointee = reference
        case .main: main[entry.position].pointee = reference
        case .active: active[entry.position].pointee.reference = reference
        case .written: written[entry.position].pointee.reference = reference
        case .nowhere, .free: break
        }
    }
}
