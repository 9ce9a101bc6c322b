import LarderPlatform

/// Applies the journal's operations to the databases' entries in memory. If the journal is long, two threads apply them
/// while the caller continues to read the journal. One thread takes the even shards (parts of a database's keys), and
/// one the odd shards.
///
/// The operations on one key are applied in order, because a key belongs to one shard, and a shard to one thread.
///
/// Only one thread may call the methods. This thread ensures that nothing else uses the databases until ``finish()``
/// has returned. `@unchecked Sendable`: a portion belongs to the caller until the caller increments `filled`. Then it
/// belongs to the thread of its half until that thread increments its number in `done`. `lock` guards these counts.
/// Everything else is constant or used only by the caller.
final class JournalApplier: @unchecked Sendable {
    /// The size in bytes of a portion at which the caller passes the current portions of both halves to their threads.
    private static let portionBytes = 512 << 10
    private static let portionCount = 4

    private let find: (String) -> Database?
    private let noteEpoch: (UInt64) -> Void
    private let usesThreads: Bool
    /// The even and the odd shards of the databases that are filled. Changed by the caller while the threads are idle.
    private var filledShards: [[Shard]]
    private var threads: [WorkThread] = []
    /// The shards of the database to which the next operations are applied; empty if they are skipped or stored in
    /// ``unresolved``. Not retained: `find` returns only databases that exist until everything is applied.
    @exclusivity(unchecked) private var shards: [Unmanaged<Shard>] = []
    private var databaseName: [UInt8] = []
    private var epoch: UInt64 = 0
    /// The latest time at which a record was stored that a database keeps in ``Database/unresolved``.
    private var latestUnresolved: Int64 = 0
    /// The database of the next operations if its current epoch (LevelDB) is still unknown; nil otherwise. The database
    /// keeps these operations until it is known whether they apply.
    private var unresolved: Database?
    /// The names of databases that operations refer to but the larder does not have.
    private(set) var unknownNames: Set<String> = []

    /// A ring of portions for each half of the shards. `filled` and `done` determine which portion belongs to which
    /// thread.
    private let portions = (0..<2).map { _ in (0..<JournalApplier.portionCount).map { _ in ReplayPortion() } }
    /// The portion of each half to which the caller adds operations.
    @exclusivity(unchecked) private var filling: [Unmanaged<ReplayPortion>]
    private let lock = Lock()
    private let progress = Condition()
    // `filled`: how many portions of each half the caller has filled. `done`: how many portions of each half the
    // threads have applied. Guarded by `lock`; only the caller changes `filled`.
    @exclusivity(unchecked) private var filled = 0
    private var done = [0, 0]
    private var isEnding = false

    /// - Parameters:
    ///   - usesThreads: whether threads may be started.
    ///   - databases: databases that get most of their entries in memory now. Until ``finish()``, their tables are
    ///     larger than necessary.
    ///   - noteEpoch: called with every epoch that operations refer to.
    ///   - find: returns the database with a name; nil to skip its operations.
    init(
        usesThreads: Bool, filling databases: [Database] = [], noteEpoch: @escaping (UInt64) -> Void = { _ in },
        find: @escaping (String) -> Database?
    ) {
        filledShards = [0, 1].map { half in
            databases.flatMap { database in
                stride(from: half, to: Shard.count, by: 2).map { database.shards[$0] }
            }
        }
        for shard in filledShards.joined() { shard.table.beginFilling() }
        self.usesThreads = usesThreads
        self.noteEpoch = noteEpoch
        self.find = find
        filling = portions.map { Unmanaged.passUnretained($0[0]) }
    }

    /// Copies the operations of a commit group, to apply them later. ``JournalPayload/operationCount(_:)`` has checked
    /// the bytes.
    func add(_ bytes: UnsafeRawBufferPointer, _ sequence: UInt64) {
        var payload = JournalPayload(bytes)
        while true {
            switch payload.next() {
            case .database(let name, let epoch): look(for: name, epoch)
            case .put(let key, let record): add(key, record, sequence)
            case .remove(let key): add(key, nil, sequence)
            case .end, .malformed: return
            }
        }
    }

    private func look(for name: UnsafeRawBufferPointer, _ number: UInt64) {
        if epoch == number, databaseName.withUnsafeBytes({ ByteOrder.compare($0, name) == 0 }) { return }
        databaseName = Array(name)
        epoch = number
        noteEpoch(number)
        let text = String(decoding: name, as: UTF8.self)
        let found = find(text)
        if found == nil { unknownNames.insert(text) }
        unresolved = found.flatMap { $0.durable.isEpochUnknown ? $0 : nil }
        // Skip operations of earlier epochs: a purge has made them invalid.
        let all = found.flatMap { $0.durable.counts(number) ? $0.shards.all : nil } ?? []
        shards = all.map { Unmanaged.passUnretained($0) }
    }

    private func add(_ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer?, _ sequence: UInt64) {
        guard !shards.isEmpty else {
            if let unresolved {
                latestUnresolved = max(latestUnresolved, record?.storedAt ?? 0)
                unresolved.unresolved.add(epoch, key, record, sequence)
            }
            return
        }
        let hash = Key.hash(key)
        filling[hash & 1]._withUnsafeGuaranteedRef { portion in
            portion.add(shards[Shard.index(hash)], hash, key, record, sequence)
            guard portion.byteCount >= Self.portionBytes else { return }
            if usesThreads { handOn() } else { portion.apply() }
        }
    }

    /// The latest time at which any record in the journal was stored; known after ``finish()``. The engine's time must
    /// not be earlier.
    var latestStored: Int64 { portions.joined().reduce(latestUnresolved) { max($0, $1.latestStored) } }

    /// Applies all operations that were added and not applied yet, and completes the tables of a database that gets no
    /// more operations.
    func complete(_ database: Database) {
        if threads.isEmpty {
            for ring in portions { ring[0].apply() }
        } else {
            handOn()
            lock.withLock { while min(done[0], done[1]) < filled { progress.wait(lock) } }
        }
        for shard in database.shards.all { shard.table.endFilling() }
        let completed = Set(database.shards.all.map { ObjectIdentifier($0) })
        filledShards = filledShards.map { shards in shards.filter { !completed.contains(ObjectIdentifier($0)) } }
    }

    /// Applies all operations that were added and not applied yet, and stops the threads.
    func finish() {
        if threads.isEmpty {
            for half in [0, 1] {
                portions[half][0].apply()
                endFilling(half)
            }
            return
        }
        handOn()
        lock.withLock {
            isEnding = true
            progress.broadcast()
        }
        for thread in threads { thread.join() }
    }

    /// Passes the current portion of each half to its thread, and waits until the next portion of each ring is free.
    private func handOn() {
        if threads.isEmpty {
            threads = [0, 1].map { half in WorkThread(name: "larder-replay") { [self] in run(half) } }
        }
        lock.lock()
        filled += 1
        progress.broadcast()
        while filled - min(done[0], done[1]) >= Self.portionCount { progress.wait(lock) }
        lock.unlock()
        filling = portions.map { [filled] in Unmanaged.passUnretained($0[filled % Self.portionCount]) }
    }

    private func run(_ half: Int) {
        var count = 0
        while isThere(count) {
            portions[half][count % Self.portionCount].apply()
            count += 1
            lock.withLock {
                done[half] = count
                progress.broadcast()
            }
        }
        endFilling(half)
    }

    private func endFilling(_ half: Int) { for shard in filledShards[half] { shard.table.endFilling() } }

    /// Waits until the caller has filled more than `count` portions.
    /// - Returns: false if the caller has finished without filling more.
    private func isThere(_ count: Int) -> Bool {
        lock.withLock {
            while filled == count, !isEnding { progress.wait(lock) }
            return filled > count
        }
    }
}

/// Copies of some of the journal's operations, in their order.
private final class ReplayPortion {
    private struct Item {
        let shard: Unmanaged<Shard>
        let hash: Int
        let sequence: UInt64
        let offset: Int
        let keyCount: Int32
        /// The length of the record in bytes; -1 for a removal.
        let recordCount: Int32
    }

    // Only one thread at a time uses a portion, and its accesses never overlap.
    @exclusivity(unchecked) private var items: ContiguousArray<Item> = []
    /// The keys and records of `items`: `byteCount` bytes in memory for `capacity`. Not an array, because appending to
    /// an array costs several times as much as copying these few bytes.
    @exclusivity(unchecked) private var bytes = UnsafeMutableRawPointer.allocate(byteCount: 0, alignment: 8)
    @exclusivity(unchecked) private var capacity = 0
    @exclusivity(unchecked) private(set) var byteCount = 0
    /// The latest time at which a record that was applied had been stored.
    @exclusivity(unchecked) private(set) var latestStored: Int64 = 0

    /// How many operations in advance a slot of a table, and its entry, are prefetched into the CPU cache.
    private static let slotDistance = 12
    private static let entryDistance = 6

    deinit { bytes.deallocate() }

    /// - Parameter shard: must exist until the portion is applied.
    func add(
        _ shard: Unmanaged<Shard>, _ hash: Int, _ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer?,
        _ sequence: UInt64
    ) {
        items.append(
            Item(
                shard: shard, hash: hash, sequence: sequence,
                offset: byteCount, keyCount: Int32(key.count), recordCount: record.map { Int32($0.count) } ?? -1))
        append(key)
        if let record { append(record) }
    }

    private func append(_ added: UnsafeRawBufferPointer) {
        guard let start = added.baseAddress else { return }
        if added.count > capacity - byteCount { reserve(byteCount + added.count) }
        // Within the memory: `capacity` is at least the new `byteCount`.
        (bytes + byteCount).copyMemory(from: start, byteCount: added.count)
        byteCount += added.count
    }

    private func reserve(_ count: Int) {
        let newCapacity = max(count, 2 * capacity, 65_536)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: 8)
        moved.copyMemory(from: bytes, byteCount: byteCount)
        bytes.deallocate()
        (bytes, capacity) = (moved, newCapacity)
    }

    /// Applies all operations and empties the portion.
    func apply() {
        for index in items.indices {
            prefetch(index)
            let item = items[index]
            // `add` has appended these bytes.
            let key = UnsafeRawBufferPointer(start: bytes + item.offset, count: Int(item.keyCount))
            item.shard._withUnsafeGuaranteedRef { shard in
                guard item.recordCount >= 0 else { return shard.remove(key, item.hash, sequence: item.sequence) }
                let record = UnsafeRawBufferPointer(
                    start: bytes + item.offset + key.count, count: Int(item.recordCount))
                latestStored = max(latestStored, record.storedAt)
                shard.put(key, item.hash, stored: record, sequence: item.sequence)
            }
        }
        items.removeAll(keepingCapacity: true)
        byteCount = 0
    }

    private func prefetch(_ index: Int) {
        if index + Self.slotDistance < items.count {
            let item = items[index + Self.slotDistance]
            item.shard._withUnsafeGuaranteedRef { $0.table.prefetchSlot(item.hash) }
        }
        if index + Self.entryDistance < items.count {
            let item = items[index + Self.entryDistance]
            item.shard._withUnsafeGuaranteedRef { $0.table.prefetchEntry(item.hash) }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// The time at which the record in these bytes was stored; 0 if they are not a record.
    var storedAt: Int64 { (try? RecordHeader(parsing: self, nil))?.storedAt ?? 0 }
}
