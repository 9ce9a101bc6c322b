import CLarderPrefetch
import LarderLevelDB
import LarderPlatform

/// One database's part of a checkpoint: sorts the dirty entries (those that LevelDB does not have yet), and writes them
/// to LevelDB.
///
/// Not thread-safe: used only by the thread that writes the checkpoint.
final class CheckpointPass: CheckpointWork {
    let store: EpochStore
    var openStore: EpochStore? { store }
    let database: Database
    private let sequence: UInt64
    private let journalEnd: UInt64
    private let indexing: ExpiryIndex.Rules
    private let removal: RemovalRules
    private let rules: FreshnessRules
    private let now: Int64
    /// Expired entries that the observers have not been notified of yet.
    private var swept: [EntryChange] = []
    /// The number of entries dropped because they have expired.
    private(set) var expired = PurgeReport()
    private var evicted = 0
    /// The highest commit unit of an entry that was left to the next checkpoint; 0 if there is none.
    private(set) var newest: UInt64 = 0
    /// The number of bytes that may still be added to LevelDB.
    private(set) var room: Int
    /// The number of bytes that may be added until the free space is measured again; `.max` if there is enough.
    var free: Int
    /// The size of the frozen entries, without those of 1 MiB or more, and their number.
    private let frozen: (bytes: Int, count: Int)
    private var run: SortedRun
    /// The keys of long records, whose old versions LevelDB is to merge at the end of the pass.
    private var longKeys: [Key] = []
    private var hasWrittenLong = false
    private var hints = HintMaker([])
    private var oldHints = HintMaker([])
    /// How many records in a row were looked for, to remove their hints, that LevelDB did not have.
    private var absentCount = 0
    /// The number of such records from which on only one of as many is looked for: the next ones are new too.
    private static let absentMax = 32
    /// The estimated bytes of a record's hints.
    private var hintBytes = 0
    private var recordCount = 0
    /// See ``DirtyHints/freeze()``.
    private let hintStamp: Int

    /// The size at which a batch is written to LevelDB, in bytes. LevelDB appends each batch to its log.
    private static let batchBytes = 1 << 20
    /// The part of the run that was passed to LevelDB, in bytes. Until its entries are clean, it counts as room for
    /// writers.
    private var passedBytes = 0

    /// Freezes the dirty entries: assigns them to this pass, so that entries written later do not belong to it.
    /// - Parameters:
    ///   - journalEnd: the last commit unit in the journal, if that is after `sequence`.
    ///   - room: the number of bytes that may be added to LevelDB; entries that do not fit are evicted.
    ///   - free: see ``free``.
    /// - Returns: nil if the database has no open files.
    init?(_ database: Database, upTo sequence: UInt64, journalEnd: UInt64? = nil, room: Int, free: Int = .max) {
        self.room = room
        self.free = free
        self.database = database
        self.sequence = sequence
        self.journalEnd = journalEnd ?? sequence
        now = database.now()
        database.shards.lockAll()
        defer { database.shards.unlockAll() }
        guard let store = database.storeOfEntries else { return nil }
        self.store = store
        database.isWrittenInJournal.store(true, ordering: .relaxed)
        removal = database.removalRulesLocked
        rules = database.applied.rules
        indexing = ExpiryIndex.Rules(database.applied.rules.policy, durable: database.durable.rules.policy)
        var bytes = 0
        var count = 0
        for shard in database.shards.all {
            let table = shard.table
            table.freeze(indexing)
            bytes += table.dirtyByteCount - table.dirtyOutsizeByteCount
            count += table.dirtyCount
        }
        frozen = (bytes, count)
        hintStamp = database.indexing.dirty.freeze()
        run = SortedRun(pinnedBytesMin: database.context.options.pinnedBytesMin)
    }

    /// Writes the frozen entries up to `sequence` to LevelDB, in runs, and marks those of each run as clean. The entries
    /// must be committed. The last run, if it is short, is durable after ``EpochStore/noteSynced(isReopening:)``, and
    /// becomes clean at ``finish()``.
    /// - Parameters:
    ///   - progress: called when writers may have more room.
    ///   - sync: makes everything written so far durable. Called with `indexLock` held: it must not wait for a commit.
    func write(progress: () -> Void, sync: () throws(LarderError) -> Void) throws(LarderError) {
        defer {
            // After a failure, some entries may still be pinned.
            unpinAll()
            notePassed(0)
            if evicted > 0 {
                let text = "the disk is full: evicted \(evicted) entries of the journal of database '\(database.name)'"
                database.context.report(free == .max ? .debug : .warning, text, database: database.name)
            }
        }
        let runBytesMax = database.context.options.checkpointRunBytes
        run.reserve(
            bytes: min(frozen.bytes, runBytesMax), count: min(frozen.count, runBytesMax / SortedRun.itemBytes))
        try store.indexLock.withLock { () throws(LarderError) in
            try prepareIndexes()
            // Until this checkpoint ends, LevelDB is consistent only together with the journal, up to its end: LevelDB may
            // lack older states of entries that are in newer segments.
            try store.note(journalNeeded: journalEnd)
            try database.forEachSlice { (shard) throws(LarderError) in
                let hasMore = shard.lock.withLock {
                    shard.table.takeFrozen(upTo: sequence, most: Database.sliceCount, take) { entry, sequence in
                        newest = max(newest, sequence)
                        // When this checkpoint has ended, the entry's hints are dropped.
                        shard.changedKeys?.add(entry.key)
                    }
                }
                if run.byteCount > min(runBytesMax, max(free, 64 << 10)) { try writeAndClean(progress, sync) }
                return hasMore
            }
            if run.byteCount > Self.batchBytes { try writeAndClean(progress, sync) } else { try writeRun(progress) }
            run.removeAll(keepingCapacity: false)
        }
    }

    /// Adds an entry to the run, or its removal if the entry has expired. Called with the lock of the entry's shard
    /// held.
    /// - Parameter indexed: the index key that LevelDB has for the entry; 0 for none.
    private func take(_ entry: EntryPointer, indexed: ExpiryIndex.Slot) -> EntryTable.Taken {
        guard let record = try? entry.record(removal.purges) else {
            run.add(removal: entry, indexed: indexed)
            return .removal
        }
        let header = record.header
        guard !removal.isGone(header, now: now) else {
            // Remove the expired entry from LevelDB, so that no older record of the key reappears.
            if let change = database.sweptChange(Array(entry.key), header, rules) { swept.append(change) }
            expired.count(bytes: entry.key.count + record.payload.count)
            database.context.statistics.expiredSwept.add()
            database.context.statistics.expiryLag.note(end: rules.endOfLife(header), now: now)
            if !entry.isFoundExpired { database.context.statistics.expired.add() }
            run.add(removal: entry, indexed: indexed)
            return .removal
        }
        guard record.byteCount + hintBytes <= min(room, free) else {
            evict(entry, record)
            run.add(removal: entry, indexed: indexed)
            return .removal
        }
        if room != .max { room -= record.byteCount + hintBytes }
        if free != .max { free -= record.byteCount + hintBytes }
        recordCount += 1
        if record.byteCount >= EpochStore.versionMergeBytesMin { longKeys.append(Key(entry.key)) }
        let index = indexing.slot(header)
        run.add(entry, recordCount: record.byteCount, from: indexed, to: index)
        return .record(index)
    }

    /// Evicts an entry instead of writing it, because the disk limit has no room for it and nothing else could be
    /// evicted. Called with the lock of the entry's shard held.
    private func evict(_ entry: EntryPointer, _ record: RecordView) {
        database.noteEviction()
        let statistics = database.context.statistics
        evicted += 1
        statistics.evicted.add()
        let hash = Key.hash(entry.key)
        let shard = database.shards[Shard.index(hash)]
        shard.counters.evicted += 1
        shard.evictedKeys.add(hash, deadline: database.applied.rules.deadline(record.header))
        statistics.evictedBytes.add(entry.key.count + record.byteCount)
        // Publish the eviction now, before later writes of the key.
        if database.context.changes.isOn {
            database.context.changes.publish([EntryChange(database: database, key: Array(entry.key), kind: .evicted)])
        }
    }

    /// Takes over the indexes, before anything else is written to the store. Called with `indexLock` held, so that an
    /// index which is created later begins to be built only after this checkpoint.
    private func prepareIndexes() throws(LarderError) {
        let indexes = database.indexing.open
        hints = HintMaker(indexes)
        oldHints = HintMaker(indexes)
        hintBytes = database.indexing.hintBytesPerRecord
        let batch = LarderLevelDB.WriteBatch()
        for open in indexes {
            let key = IndexProgress.key(open.index.number)
            if open.extractor == nil {
                // The index will lack hints, so it has to be built anew when its definition can be read.
                batch.delete(key)
            } else if !store.isMade {
                batch.put(key, IndexProgress.ready.value)
            }
        }
        guard !batch.isEmpty else { return }
        try store.write(batch, sync: true, changesEntries: false)
        for open in indexes { database.indexing.note(nil, of: open.index.number, in: store) }
    }

    /// Writes a run, and marks its entries as clean before the checkpoint ends. Until then, the journal still has them:
    /// a crash or a rollback makes them dirty again.
    private func writeAndClean(_ progress: () -> Void, _ sync: () throws(LarderError) -> Void) throws(LarderError) {
        try writeRun(progress)
        try sync()
        clean()
        progress()
    }

    private func writeRun(_ progress: () -> Void) throws(LarderError) {
        run.sort()
        // LevelDB's log of a large run need not reach the disk: it is removed as soon as the run is in tables, which
        // LevelDB syncs. The journal has the entries until the checkpoint has synced what is left of the log.
        // If space is scarce, tables also show how much of it the run takes when it is compressed.
        let isForTables = free != .max || store.isFlushDue(after: run.byteCount)
        var next = 0
        var batch = LarderLevelDB.WriteBatch()
        let cleansHints = !hints.isEmpty && database.indexing.isCleaningTooSlow
        let hintCount = hints.count
        database.context.changes.publish(swept)
        swept = []
        while next < run.count {
            // Release the memory of a batch that contained long records.
            if batch.byteCount > 2 * Self.batchBytes { batch = LarderLevelDB.WriteBatch() } else { batch.clear() }
            while next < run.count, batch.byteCount < Self.batchBytes {
                let looks = cleansHints && (absentCount < Self.absentMax || next.isMultiple(of: Self.absentMax))
                var stale = looks ? oldHints(next) : []
                if let pinned = run.put(next, into: batch, replacing: &stale, &hints) { unpin(pinned) }
                for hint in stale {
                    batch.delete(hint)
                    store.noteDead(hint.count)
                }
                next += 1
            }
            // LevelDB copies a batch to its memtable, and makes two more copies when it writes that memtable to a
            // table. So before a second long batch, wait until the first one is in a table and its memory is free.
            if batch.byteCount >= EpochStore.versionMergeBytesMin {
                if hasWrittenLong { store.flushMemtable() }
                hasWrittenLong = true
            }
            try store.write(batch, sync: !isForTables)
            notePassed(run.byteCount / run.count * next)
            progress()
        }
        if isForTables { store.flushMemtable() }
        store.noteRemovals(run.removalCount)
        if !hints.isEmpty, !cleansHints {
            database.indexing.churn.wrappingAdd(hints.count - hintCount + run.removalCount, ordering: .relaxed)
        }
        run.removeAll(keepingCapacity: true)
    }

    /// Returns the hints of the record that LevelDB has of an entry of the run.
    private func oldHints(_ index: Int) -> Set<[UInt8]> {
        // If the record cannot be read, its hints stay: they do no harm.
        guard let key = run.keyInLevelDB(index), let record = (try? store.get(key, fillCache: false)) ?? nil else {
            absentCount += 1
            return []
        }
        absentCount = 0
        var found: Set<[UInt8]> = []
        key.withBytes { key in
            record.withUnsafeBytes { oldHints.forEachHint(key, $0) { _, hint, _ in found.insert(hint) } }
        }
        return found
    }

    private func unpin(_ pinned: SortedRun.Pinned) {
        database.shards[pinned.shard].lock.withLock { pinned.entry.unpin() }
    }

    private func unpinAll() {
        for pinned in run.takePinned() { unpin(pinned) }
    }

    /// Marks the written entries as clean, except for those that were changed in the meantime. Called when LevelDB has
    /// synced all written entries.
    private func clean() {
        database.forEachSlice { shard in
            shard.lock.withLock {
                defer { shard.makeRoomNow() }
                return shard.table.finishWritten(upTo: sequence, most: Database.sliceCount, keeps: shard.keeps)
            }
        }
        notePassed(0)
        database.context.hasFreedMemory.store(true, ordering: .relaxed)
    }

    private func notePassed(_ bytes: Int) {
        database.context.memory.notePassed(bytes - passedBytes)
        passedBytes = bytes
    }

    /// Ends the pass. Called when LevelDB has synced all written entries.
    func finish() {
        clean()
        database.indexing.dirty.drop(hintStamp, database.shards)
        // Merge only now, when the entry table no longer has these long records: a merge needs much memory too.
        for key in longKeys { store.mergeVersions(of: key) }
        longKeys = []
        guard !hints.isEmpty else { return }
        database.indexing.note(hintBytes: hints.byteCount, records: recordCount)
        database.context.indexLoop.wake()
    }
}

/// Entries that are about to be written to LevelDB. They are copied, so that their shards need not be locked while
/// LevelDB writes. A long record is not copied: its entry is pinned, so that the record stays in memory unchanged.
private struct SortedRun {
    private struct Item {
        /// The offset in `bytes` of the item: the key's kind (1 byte), the key, and the record.
        var offset: Int
        var keyCount: Int32
        /// The record's length in bytes; 0 for a removal, ``pinnedCount`` for a pinned record.
        var recordCount: Int32
        /// The entry's current key in LevelDB's expiry index, and the key that it should have there. Each is an
        /// ``ExpiryIndex/Slot``.
        var oldIndex: UInt64
        var newIndex: UInt64
        /// Whether LevelDB is known to have no record of the key.
        var isAbsentInLevelDB: Bool
    }

    private var bytes: [UInt8] = []
    private var items: ContiguousArray<Item> = []
    /// The indices of the items in the order of their keys, set by ``sort()``.
    private var order = ByteStringSort()
    /// A pinned entry. Without its shard's lock, only its record may be read.
    struct Pinned {
        let entry: EntryPointer
        let record: UnsafeRawBufferPointer
        /// The index of the entry's shard.
        let shard: Int
    }

    /// Pinned entries, by the `offset` of their items.
    private var pinned: [Int: Pinned] = [:]

    private static let pinnedCount: Int32 = -1
    /// The minimum size of a record that is pinned, in bytes.
    private let pinnedBytesMin: Int

    /// The memory of an item in addition to its key and record, in bytes.
    static let itemBytes = MemoryLayout<Item>.stride + ByteStringSort.itemBytes

    init(pinnedBytesMin: Int) { self.pinnedBytesMin = pinnedBytesMin }

    /// Reserves memory in advance, because entries are added while a shard is locked. Growing the arrays then takes too
    /// long, and so do page faults: the system often interrupts a thread there, and event loops wait for its lock. The
    /// run must be empty.
    mutating func reserve(bytes byteCount: Int, count: Int) {
        bytes = [UInt8](unsafeUninitializedCapacity: byteCount) { space, used in
            Self.touch(UnsafeMutableRawBufferPointer(space))
            used = 0
        }
        items = ContiguousArray(unsafeUninitializedCapacity: count) { space, used in
            Self.touch(UnsafeMutableRawBufferPointer(space))
            used = 0
        }
    }

    /// Makes the system provide the memory of a buffer, whose contents are undefined.
    private static func touch(_ buffer: UnsafeMutableRawBufferPointer) {
        for offset in stride(from: 0, to: buffer.count, by: 4096) { buffer[offset] = 0 }
    }

    var count: Int { items.count }
    /// The number of items that remove a key which LevelDB may have.
    private(set) var removalCount = 0
    var byteCount: Int { bytes.count + items.count * Self.itemBytes }

    mutating func add(removal entry: EntryPointer, indexed: ExpiryIndex.Slot) {
        if !entry.isAbsentInLevelDB { removalCount += 1 }
        add(entry, recordCount: 0, from: indexed, to: 0)
    }

    /// - Parameter recordCount: the record's length as stored; 0 for a removal.
    mutating func add(
        _ entry: EntryPointer, recordCount: Int, from oldIndex: ExpiryIndex.Slot, to newIndex: ExpiryIndex.Slot
    ) {
        let key = entry.key
        var isLong = false
        if recordCount >= pinnedBytesMin, let record = entry.pinnedRecord, entry.pin() {
            pinned[bytes.count] = Pinned(entry: entry, record: record, shard: Shard.index(Key.hash(key)))
            isLong = true
        }
        items.append(
            Item(
                offset: bytes.count, keyCount: Int32(key.count + 1),
                recordCount: isLong ? Self.pinnedCount : Int32(recordCount), oldIndex: oldIndex,
                newIndex: newIndex, isAbsentInLevelDB: entry.isAbsentInLevelDB))
        bytes.append(KeyKind.record)
        bytes.append(contentsOf: key)
        if recordCount > 0, !isLong { entry.appendStored(to: &bytes) }
    }

    /// Sorts by key, so that LevelDB's tables overlap less, and merging them is cheaper.
    mutating func sort() {
        bytes.withUnsafeBytes { bytes in
            items.withUnsafeBufferPointer { items in order.sort(items.count) { Self.key(items[$0], bytes) } }
        }
    }

    private static func key(_ item: Item, _ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[item.offset..<(item.offset + Int(item.keyCount))])
    }

    /// Returns the key of an entry; nil if LevelDB has no record of it.
    /// - Parameter index: the entry's place in the order of the keys.
    func keyInLevelDB(_ index: Int) -> Key? {
        let item = items[order[index]]
        return item.isAbsentInLevelDB ? nil : bytes.withUnsafeBytes { Key(stored: Array(Self.key(item, $0))) }
    }

    /// Adds the changes of one entry to a batch.
    /// - Parameters:
    ///   - index: the entry's place in the order of the keys.
    ///   - old: hints; those that the entry still has are removed from the set.
    /// - Returns: the entry if it is pinned; the caller must unpin it.
    mutating func put(
        _ index: Int, into batch: LarderLevelDB.WriteBatch, replacing old: inout Set<[UInt8]>, _ hints: inout HintMaker
    ) -> Pinned? {
        prefetch(after: index)
        let item = items[order[index]]
        let long = item.recordCount == Self.pinnedCount ? pinned.removeValue(forKey: item.offset) : nil
        put(item, long?.record, into: batch, &old, &hints)
        return long
    }

    /// Prefetches entries into the CPU's caches, because their order in memory is not that of the keys.
    private func prefetch(after index: Int) {
        if index + 16 < count {
            items.withUnsafeBufferPointer { items in
                larder_prefetch(items.baseAddress.map { $0 + order[index + 16] })
            }
        }
        if index + 8 < count {
            let item = items[order[index + 8]]
            bytes.withUnsafeBytes { bytes in
                larder_prefetch(bytes.baseAddress.map { $0 + item.offset })
                larder_prefetch(bytes.baseAddress.map { $0 + item.offset + 64 })
            }
        }
    }

    private func put(
        _ item: Item, _ pinned: UnsafeRawBufferPointer?, into batch: LarderLevelDB.WriteBatch,
        _ old: inout Set<[UInt8]>, _ hints: inout HintMaker
    ) {
        bytes.withUnsafeBytes { bytes in
            let end = item.offset + Int(item.keyCount)
            let key = Self.key(item, bytes)
            if item.oldIndex != 0, item.oldIndex != item.newIndex {
                batch.delete(ExpiryIndex.key(item.oldIndex, storedKey: key))
            }
            guard item.recordCount != 0 else {
                if !item.isAbsentInLevelDB { batch.delete(key) }
                return
            }
            let record = pinned ?? UnsafeRawBufferPointer(rebasing: bytes[end..<(end + Int(max(0, item.recordCount)))])
            batch.put(key, record)
            if item.newIndex != 0, item.oldIndex != item.newIndex {
                batch.put(ExpiryIndex.key(item.newIndex, storedKey: key), ExpiryIndex.value)
            }
            if hints.isEmpty { return }
            hints.forEachHint(UnsafeRawBufferPointer(rebasing: key.dropFirst()), record) { _, hint, termCount in
                if !old.isEmpty { old.remove(hint) }
                batch.put(hint, Hint.value(termCount: termCount))
            }
        }
    }

    /// Returns the entries that are still pinned. The caller must unpin them.
    mutating func takePinned() -> [Pinned] {
        defer { pinned = [:] }
        return Array(pinned.values)
    }

    mutating func removeAll(keepingCapacity: Bool) {
        bytes.removeAll(keepingCapacity: keepingCapacity)
        items.removeAll(keepingCapacity: keepingCapacity)
        order.removeAll(keepingCapacity: keepingCapacity)
        removalCount = 0
    }
}
