import LarderPlatform
import Synchronization

/// Keeps the larder within its disk limit, and databases within their own limits.
///
/// - A separate thread begins to evict when the usage exceeds ``DiskThresholds/high``, and stops at
///   ``DiskThresholds/low``. So normally no caller waits for an eviction.
/// - Each checkpoint first frees the space for the entries that it will write to LevelDB. The journal grows in the
///   meantime, and when it is full, writers wait. Every entry reaches LevelDB through a checkpoint, so clients cannot
///   exceed the limit by writing fast.
///
/// The order of eviction: files of purged databases; then the space of removed entries, as far as LevelDB can free it;
/// then expired entries and those of least worth (``EvictionEstimate``).
///
/// Thread-safe. Lock order: the checkpointer's turn, `rounds`, a store's `indexLock`.
final class Evictor: Sendable {
    private let context: EngineContext
    private let table: DatabaseTable
    private let disk: DiskBudget
    private let loop = BackgroundLoop()
    private let rounds: Locked<EvictionRounds>
    /// Whether the larder's usage has exceeded ``DiskThresholds/high`` and has not fallen to ``DiskThresholds/low``
    /// since then.
    private let isEvicting = Atomic<Bool>(false)
    private let isWanted = Atomic<Bool>(false)
    /// The time of the last measurement by ``measureWithoutThread()``, in monotonic milliseconds.
    private let lastMeasurement = Atomic<Int64>(0)

    /// The interval between measurements while nothing wakes the thread, in milliseconds.
    private static let idleMilliseconds: Int64 = 10_000
    private static let pauseMilliseconds: Int64 = 1
    /// The maximum number of eviction steps (of one key range each) for a caller that waits for space.
    private static let reliefSteps = 64
    /// The minimum size of the tables to remove: LevelDB needs so much space for merges afterwards. In a small larder,
    /// the minimum is a quarter of the larder. Without merges, level 0 grows. Its tables can seldom be removed, because
    /// they overlap other tables.
    private static let mergeRoom = 8 << 20

    init(context: EngineContext, table: DatabaseTable) {
        self.context = context
        self.table = table
        disk = context.larder.disk
        rounds = Locked(EvictionRounds(context: context))
        disk.onChange { [loop] in loop.wake() }
        disk.onShort { [weak self] in self?.relieve($0, takesReserve: $1) ?? false }
        // Measure now, because the sizes of tables and of the journal depend on the space on the file system.
        _ = disk.measure()
    }

    /// - Parameter onDemand: whether the thread starts only when there is a limit. Until then,
    ///   ``measureWithoutThread()`` measures.
    func start(onDemand: Bool) {
        noteLimits()
        loop.start("larder-evict", onDemand: onDemand && limits.isEmpty) { [self] in
            round() ? Self.pauseMilliseconds : Self.idleMilliseconds
        }
    }

    /// Does the thread's work while there is no limit: measures if the last measurement is ten seconds old, or after
    /// ``wake()``. If there is a limit now, wakes the thread. Called repeatedly.
    func measureWithoutThread() {
        guard loop.isAsleep else { return }
        guard limits.isEmpty else { return loop.wake() }
        let now = context.time.monotonic()
        let isDue = now - lastMeasurement.load(ordering: .relaxed) >= Self.idleMilliseconds
        guard isWanted.exchange(false, ordering: .relaxed) || isDue else { return }
        lastMeasurement.store(now, ordering: .relaxed)
        _ = round()
    }

    /// Waits for the running step, and then stops the thread.
    func stop() { loop.stop() }

    /// Triggers a measurement soon.
    func wake() { if loop.isAsleep { isWanted.store(true, ordering: .relaxed) } else { loop.wake() } }

    /// Passes the smallest limit of a single database to the disk budget.
    func noteLimits() {
        disk.note(smallestDatabaseLimit: table.all.map(\.diskLimit).filter { $0 > 0 }.min())
    }

    // MARK: In the background

    /// Runs one eviction step for each limit whose threshold is exceeded.
    /// - Returns: whether there is more to do now.
    func round() -> Bool {
        noteLimits()
        if disk.limitBytes == nil { _ = disk.measure() }
        maintainReserve()
        reopenForLimits()
        var more = false
        for limit in limits {
            do throws(LarderError) {
                more = try resume(limit) || more
            } catch {
                context.report(.debug, "eviction stopped: \(error)")
            }
        }
        return more
    }

    /// Reopens databases whose LevelDB sizes (tables and write buffer) no longer fit the current limits.
    private func reopenForLimits() {
        for database in table.all {
            guard let store = database.durableState.store, !store.isFrozen else { continue }
            do throws(LarderError) {
                guard try store.reopenForLimits(databaseLimit: database.diskLimit) else { continue }
                context.report(
                    .info, "database '\(database.name)' was reopened to fit its tables to the disk limits",
                    database: database.name)
            } catch {
                context.report(
                    .debug, "database '\(database.name)' was not reopened: \(error)", database: database.name)
            }
        }
    }

    private func resume(_ limit: EvictionLimit) throws(LarderError) -> Bool {
        let isRunning = limit.database == nil && isEvicting.load(ordering: .relaxed)
        let bytes = limit.measure()
        guard bytes > (isRunning ? limit.marks.low : limit.marks.high) else {
            if limit.database == nil { isEvicting.store(false, ordering: .relaxed) }
            return false
        }
        let progress = try rounds.withLock { (rounds) throws(LarderError) in
            try rounds.step(limit, limit.databases, over: bytes - limit.marks.low, isUrgent: false)
        }
        if limit.database == nil { isEvicting.store(progress != .nothingLeft, ordering: .relaxed) }
        return progress != .nothingLeft
    }

    private var limits: [EvictionLimit] {
        let own = table.all.compactMap { database -> EvictionLimit? in
            let limit = database.diskLimit
            return limit > 0
                ? EvictionLimit(asked: limit, database: database, databases: [database], disk: disk) : nil
        }
        guard let bytes = disk.limitBytes else { return own }
        return own + [EvictionLimit(asked: bytes, database: nil, databases: table.all, disk: disk)]
    }

    // MARK: On a full file system

    /// Creates the reserve file again when 1.5 times its size is free. Removes it if it is no longer needed.
    private func maintainReserve() {
        // Without a limit, only the ledger (an internal database) needs the reserve: a larder does not start if its
        // ledger cannot be opened.
        guard disk.boundBytes != nil || table.ledger?.database.exists == true else {
            if disk.reserve.isThere { disk.reserve.giveUp() }
            return
        }
        let bytes = DiskThresholds.heldReserveBytes(limit: disk.boundBytes ?? 0)
        guard !disk.reserve.isThere, let free = disk.room, free >= bytes + bytes / 2 else { return }
        disk.reserve.hold(bytes: bytes)
    }

    /// Frees space for a caller on a full file system. The caller may hold a database's `openLock`.
    ///
    /// Removes whole tables, which needs no free space. If no table can be removed, evicts the entries of least worth.
    /// This writes to LevelDB, which takes the space from the reserve.
    /// - Parameters:
    ///   - bytes: the size of the caller's write.
    ///   - takesReserve: whether the write may also use the reserve.
    /// - Returns: whether there is more space than before.
    private func relieve(_ bytes: Int, takesReserve: Bool) -> Bool {
        guard let asked = disk.limitBytes, let bound = disk.boundBytes else {
            // Without a limit nothing is evicted: at most, the reserve is released.
            return takesReserve && disk.room ?? 0 < bytes && disk.reserve.giveUp()
        }
        // Free more than was requested, because other programs may write at the same time.
        let reserve = DiskThresholds.heldReserveBytes(limit: bound)
        let wanted = bytes + reserve
        guard let before = disk.room, before < wanted else { return false }
        defer { wake() }
        return rounds.withLock { rounds in
            // Another caller may have freed the space while this one waited for the lock.
            guard let free = disk.room, free < wanted else { return true }
            let limit = EvictionLimit(asked: asked, database: nil, databases: table.all, disk: disk)
            if context.disposalQueue.hasWork {
                context.disposalQueue.clear { context.report($0, $1) }
                if disk.room ?? 0 > free { return true }
            }
            // Release the reserve, because LevelDB needs some space to reopen its files and to merge tables afterwards.
            let hadReserve = disk.reserve.giveUp()
            if !removeTables(limit, wanted, free: free, &rounds) {
                evict(limit, wanted + (hadReserve ? reserve : 0), &rounds)
            }
            let gained = (disk.room ?? 0) - free
            if takesReserve { return gained > 0 }
            if hadReserve { disk.reserve.hold(bytes: reserve) }
            return gained > (hadReserve ? reserve : 0)
        }
    }

    /// Removes tables until enough space is free, or a removal frees no space. Tries several times, because LevelDB may
    /// use all of the freed space for merges when it is opened again.
    /// - Returns: whether any table was removed.
    private func removeTables(
        _ limit: EvictionLimit, _ wanted: Int, free: Int, _ rounds: inout EvictionRounds
    ) -> Bool {
        var free = free
        for round in 0..<Self.removalsMax {
            let larder = limit.measure()
            let over = max(wanted - free, larder - limit.marks.low, min(Self.mergeRoom, larder / 4))
            guard let freed = (try? rounds.removeTables(limit.databases, over: over)) ?? nil else { return round > 0 }
            free = disk.room ?? 0
            if freed == 0 || free >= wanted { break }
        }
        return true
    }

    /// The maximum number of times that tables are removed for one caller.
    private static let removalsMax = 4

    /// Evicts until enough space is free.
    private func evict(_ limit: EvictionLimit, _ wanted: Int, _ rounds: inout EvictionRounds) {
        for _ in 0..<Self.reliefSteps {
            guard let free = disk.room, free < wanted else { return }
            let progress = try? rounds.step(limit, limit.databases, over: wanted - free, isUrgent: true)
            if progress ?? .nothingLeft == .nothingLeft { return }
        }
    }

    // MARK: For a checkpoint

    private func incomingBytes(_ databases: [Database]) -> Int { databases.reduce(0) { $0 + $1.incomingBytes } }

    /// The bytes of the journal that a checkpoint should write first, because the file system lacks the space for all
    /// entries: twice their bytes, because LevelDB writes them to its log first and then to a table. Nil if it has it.
    var partBytes: Int? { disk.room.flatMap { $0 < 2 * incomingBytes(table.all) ? max(1 << 20, $0 / 4) : nil } }

    /// The bytes that a checkpoint may add on a file system with too little space: half of the free space, as above. The
    /// reserve is left to LevelDB, which merges tables and removes evicted entries.
    var scarceBytes: Int {
        let reserve = disk.reserve.isThere ? 0 : DiskThresholds.heldReserveBytes(limit: disk.boundBytes ?? 0)
        return max(0, (disk.room ?? 0) - reserve) / 2
    }

    /// Frees space for a checkpoint. Called by the thread that has the checkpointer's turn.
    /// - Parameter part: the size of the part of an overlong journal that the checkpoint writes, and whose entries it
    ///   evicts if they do not fit: its end frees the space of the part. Nil if the journal is not overlong.
    /// - Returns: the space that the checkpoint may use.
    /// - Throws: if there is not enough space, and nothing more can be evicted.
    func makeRoom(part: Int?) throws(LarderError) -> EvictionRoom {
        noteLimits()
        var room = EvictionRoom()
        for limit in limits {
            if let bytes = try makeRoom(limit, atMost: part ?? .max) { room.limit(limit.database, to: bytes) }
        }
        guard disk.limitBytes != nil else { return room }
        let incoming = min(incomingBytes(table.all), part ?? .max)
        let wanted = part == nil ? 2 * incoming : incoming
        for _ in 0..<Self.reliefsMax where wanted > 0 { if !relieve(wanted, takesReserve: false) { break } }
        guard part != nil, disk.room ?? .max < 2 * incoming else { return room }
        disk.reserve.giveUp()
        room.isScarce = true
        return room
    }

    /// The maximum number of attempts to free space for a checkpoint. Other programs may fill the freed space in the
    /// meantime.
    private static let reliefsMax = 4

    /// - Returns: the bytes that the checkpoint may add; nil if there is enough space for all of its entries.
    private func makeRoom(_ limit: EvictionLimit, atMost most: Int) throws(LarderError) -> Int? {
        let incoming = min(most, incomingBytes(limit.databases))
        if incoming == 0 { return nil }
        waitForMerges(limit, incoming)
        while true {
            let over = limit.measure() + incoming - limit.marks.ceiling
            if over <= 0 { return nil }
            guard try evict(limit, over: over) == .nothingLeft else { continue }
            let room = limit.marks.ceiling - limit.use().bytes
            if room >= incoming { return nil }
            // Let the checkpoint write as many of the new entries as fit.
            guard room >= limit.marks.checkpointBytes else { throw limit.shortage(incoming: incoming, context) }
            return room
        }
    }

    /// Runs one eviction step for a checkpoint that waits for space.
    private func evict(_ limit: EvictionLimit, over bytes: Int) throws(LarderError) -> EvictionRounds.Progress {
        do throws(LarderError) {
            return try rounds.withLock { (rounds) throws(LarderError) in
                try rounds.step(limit, limit.databases, over: bytes, isUrgent: true)
            }
        } catch {
            // If the database was purged or deleted in the meantime, that frees space too.
            guard error.code == .purged || error.code == .deleted else { throw error }
            return .some
        }
    }

    /// Waits for LevelDB's due merges before a checkpoint writes more. Otherwise the due merges and those of the new
    /// entries would run together, and need twice the space.
    private func waitForMerges(_ limit: EvictionLimit, _ incoming: Int) {
        var least = Int.max
        var vain = 0
        while vain < 3 {
            let use = limit.use()
            guard use.largestMerge + incoming > limit.marks.mergeBytes, let store = use.store else { return }
            vain = use.largestMerge < least ? 0 : vain + 1
            least = min(least, use.largestMerge)
            // Wait for the running merge.
            store.flushMemtable()
        }
    }
}

/// The bytes of entries that a checkpoint may still add to each database. Unlimited if there is no disk limit, or if
/// the eviction has freed enough space. Otherwise the checkpoint evicts the entries that do not fit instead of writing
/// them to LevelDB. A value.
struct EvictionRoom {
    private var larder = Int.max
    private var databases: [ObjectIdentifier: Int] = [:]
    /// Whether the checkpoint may also use no more than ``Evictor/scarceBytes``.
    var isScarce = false

    /// Returns the bytes that a checkpoint may still add to a database.
    func left(_ database: Database) -> Int {
        if DatabaseName.isKept(database.name) { return .max }
        return min(larder, databases[ObjectIdentifier(database)] ?? .max)
    }

    mutating func limit(_ scope: Database?, to bytes: Int) {
        if let scope { databases[ObjectIdentifier(scope)] = bytes } else { larder = bytes }
    }

    /// - Parameter left: the result of ``left(_:)``, minus the bytes that the checkpoint has added to the database
    ///   since.
    mutating func note(_ database: Database, left: Int) {
        let taken = self.left(database) - left
        if larder != .max { larder -= taken }
        if let own = databases[ObjectIdentifier(database)] { databases[ObjectIdentifier(database)] = own - taken }
    }
}
