import Platform
import Synchronization

/// Keeps a larder, and databases that have a limit of their own, within their bytes on the disk.
///
/// - A thread of its own begins to evict at ``DiskMarks/high`` and ends at ``DiskMarks/low``, so that in the usual
///   course nobody waits for it.
/// - A checkpoint, through which everything has to go that is stored, makes room for what it adds before it begins. The
///   journal grows meanwhile, and when it is full, writers wait. So the limit holds whatever clients do.
///
/// What goes first: files of what was purged; then space that LevelDB can give back of what expired or was removed; then
/// the entries that are worth the least (``EvictionEstimate``).
///
/// Thread-safe. The proof for `@unchecked Sendable`: `rounds` is guarded by `lock`, which is taken behind the
/// checkpointer's turn and before a store's `indexLock`; the rest is constant and thread-safe itself.
final class Evictor: @unchecked Sendable {
    private let context: EngineContext
    private let table: DatabaseTable
    private let disk: DiskBudget
    private let loop = BackgroundLoop()
    private let lock = Lock()
    private var rounds: EvictionRounds
    /// Whether the larder went above its high mark and is not below the low one yet.
    private let isEvicting = Atomic<Bool>(false)

    /// How often sizes are looked at when nothing wakes the thread.
    private static let idleMilliseconds: Int64 = 10_000
    private static let pauseMilliseconds: Int64 = 1

    init(context: EngineContext, table: DatabaseTable) {
        self.context = context
        self.table = table
        disk = context.larder.disk
        rounds = EvictionRounds(context: context)
        disk.onChange { [loop] in loop.wake() }
        disk.onShort { [weak self] in self?.relieve() ?? false }
        // So that the files are opened with what the file system has room for.
        if disk.limitBytes != nil { _ = disk.measure() }
    }

    func start() {
        loop.start("larder-evict") { [self] in round() ? Self.pauseMilliseconds : Self.idleMilliseconds }
    }

    /// Waits for the running step.
    func stop() { loop.stop() }

    /// Looks at the sizes soon.
    func wake() { loop.wake() }

    /// Tells the budget the least limit of a database.
    func noteLimits() {
        disk.note(smallestDatabaseLimit: table.all.map(\.diskLimit).filter { $0 > 0 }.min())
    }

    // MARK: In the background

    /// One step for each limit whose mark is passed.
    /// - Returns: whether there is more to do now.
    func round() -> Bool {
        noteLimits()
        var more = false
        for limit in limits {
            do throws(LarderError) {
                more = try goOn(limit) || more
            } catch {
                context.report(.debug, "eviction stopped: \(error)")
            }
        }
        return more
    }

    private func goOn(_ limit: EvictionLimit) throws(LarderError) -> Bool {
        let isRunning = limit.database == nil && isEvicting.load(ordering: .relaxed)
        let bytes = limit.measure()
        guard bytes > (isRunning ? limit.marks.low : limit.marks.high) else {
            if limit.database == nil { isEvicting.store(false, ordering: .relaxed) }
            return false
        }
        let progress = try lock.withLock { () throws(LarderError) in
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

    /// Takes tables away for a database that cannot be reopened. It may have its `openLock`.
    /// - Returns: whether anything was evicted.
    private func relieve() -> Bool {
        guard disk.isShort(isSuspended: true) else { return false }
        return limits.contains { limit in
            let over = limit.measure() - limit.marks.low
            guard over > 0 else { return false }
            let hasRemoved = lock.withLock {
                try? rounds.removeTables(limit.databases, over: over)
            }
            return hasRemoved ?? false
        }
    }

    // MARK: For a checkpoint

    /// Makes room for a checkpoint. Called with the checkpointer's turn held.
    /// - Returns: for how much there is room.
    /// - Throws: if there is none, and nothing is left that could be evicted.
    func makeRoom() throws(LarderError) -> EvictionRoom {
        noteLimits()
        var room = EvictionRoom()
        for limit in limits {
            if let bytes = try makeRoom(limit) { room.limit(limit.database, to: bytes) }
        }
        return room
    }

    /// - Returns: nil for enough.
    private func makeRoom(_ limit: EvictionLimit) throws(LarderError) -> Int? {
        let incoming = limit.databases.reduce(0) { $0 + $1.journalBytesOfDirty }
        if incoming == 0 { return nil }
        waitForMerges(limit, incoming)
        while true {
            let over = limit.measure() + incoming - limit.marks.ceiling
            if over <= 0 { return nil }
            guard try evict(limit, over: over) == .nothingLeft else { continue }
            let room = limit.marks.ceiling - limit.use().bytes
            if room >= incoming { return nil }
            // Of what is new, as much is kept as there is room for.
            guard room >= limit.marks.checkpointBytes else { throw limit.shortage(incoming: incoming, context) }
            return room
        }
    }

    /// One step while a checkpoint waits.
    private func evict(_ limit: EvictionLimit, over bytes: Int) throws(LarderError) -> EvictionRounds.Progress {
        do throws(LarderError) {
            return try lock.withLock { () throws(LarderError) in
                try rounds.step(limit, limit.databases, over: bytes, isUrgent: true)
            }
        } catch {
            // Purged or deleted meanwhile: that makes room too.
            guard error.code == .purged || error.code == .deleted else { throw error }
            return .some
        }
    }

    /// Lets LevelDB merge what it has to before it gets more: what it has put off would be merged at once later, and be
    /// there twice meanwhile.
    private func waitForMerges(_ limit: EvictionLimit, _ incoming: Int) {
        var least = Int.max
        var vain = 0
        while vain < 3 {
            let use = limit.use()
            guard use.largestMerge + incoming > limit.marks.mergeBytes, let store = use.store else { return }
            vain = use.largestMerge < least ? 0 : vain + 1
            least = min(least, use.largestMerge)
            // Waits for the merge that is running.
            store.settleMemory()
        }
    }
}
