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
    private var threads: [WorkThread] = []
    /// The database to which the next operations are applied; nil if they are skipped or stored in ``unresolved``.
    @exclusivity(unchecked) private var database: Database?
    private var databaseName: [UInt8] = []
    private var epoch: UInt64 = 0
    /// The latest time at which any record in the journal was stored. The engine's time must not be earlier.
    @exclusivity(unchecked) private(set) var latestStored: Int64 = 0
    /// The database of the next operations if its current epoch (LevelDB) is still unknown; nil otherwise. The database
    /// keeps these operations until it is known whether they apply.
    private var unresolved: Database?
    /// The names of databases that operations refer to but the larder does not have.
    private(set) var unknownNames: Set<String> = []

    /// A ring of portions for each half of the shards. `filled` and `done` determine which portion belongs to which
    /// thread.
    private let portions = (0..<2).map { _ in (0..<JournalApplier.portionCount).map { _ in ReplayPortion() } }
    private let lock = Lock()
    private let progress = Condition()
    // `filled`: how many portions of each half the caller has filled. `done`: how many portions of each half the
    // threads have applied. Guarded by `lock`; only the caller changes `filled`.
    @exclusivity(unchecked) private var filled = 0
    private var done = [0, 0]
    private var isEnding = false

    /// - Parameters:
    ///   - usesThreads: whether threads may be started.
    ///   - noteEpoch: called with every epoch that operations refer to.
    ///   - find: returns the database with a name; nil to skip its operations.
    init(
        usesThreads: Bool, noteEpoch: @escaping (UInt64) -> Void = { _ in }, find: @escaping (String) -> Database?
    ) {
        self.usesThreads = usesThreads
        self.noteEpoch = noteEpoch
        self.find = find
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
        database = found.flatMap { $0.durable.counts(number) ? $0 : nil }
    }

    private func add(_ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer?, _ sequence: UInt64) {
        if database != nil || unresolved != nil, let record, let header = try? RecordHeader(parsing: record, nil) {
            latestStored = max(latestStored, header.storedAt)
        }
        guard let database else {
            unresolved?.unresolved.add(epoch, key, record, sequence)
            return
        }
        let hash = Key.hash(key)
        let portion = portions[hash & 1][filled % Self.portionCount]
        portion.add(database, hash, key, record, sequence)
        guard portion.byteCount >= Self.portionBytes else { return }
        if usesThreads { handOn() } else { portion.apply() }
    }

    /// Applies all operations that were added and not applied yet, and stops the threads.
    func finish() {
        if threads.isEmpty {
            for half in portions { half[0].apply() }
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
    }

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
    @exclusivity(unchecked) private var bytes: [UInt8] = []

    /// How many operations in advance a slot of a table, and its entry, are prefetched into the CPU cache.
    private static let slotDistance = 12
    private static let entryDistance = 6

    var byteCount: Int { bytes.count }

    /// - Parameter database: must exist until the portion is applied, because the portion does not retain its shards.
    func add(
        _ database: Database, _ hash: Int, _ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer?,
        _ sequence: UInt64
    ) {
        items.append(
            Item(
                shard: database.shards.with(hash) { Unmanaged.passUnretained($0) }, hash: hash, sequence: sequence,
                offset: bytes.count, keyCount: Int32(key.count), recordCount: record.map { Int32($0.count) } ?? -1))
        bytes.append(contentsOf: key)
        if let record { bytes.append(contentsOf: record) }
    }

    /// Applies all operations and empties the portion.
    func apply() {
        bytes.withUnsafeBytes { bytes in
            for index in items.indices {
                prefetch(index)
                let item = items[index]
                let end = item.offset + Int(item.keyCount)
                let key = UnsafeRawBufferPointer(rebasing: bytes[item.offset..<end])
                item.shard._withUnsafeGuaranteedRef { shard in
                    guard item.recordCount >= 0 else {
                        return shard.remove(key, item.hash, sequence: item.sequence)
                    }
                    let record = UnsafeRawBufferPointer(rebasing: bytes[end..<(end + Int(item.recordCount))])
                    shard.put(key, item.hash, stored: record, sequence: item.sequence)
                }
            }
        }
        items.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
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
