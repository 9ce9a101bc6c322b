import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import Synchronization

/// One epoch of a database: a LevelDB in its own directory. A purge or a salvage replaces it by a new epoch.
///
/// - Every call to LevelDB holds `gate` for reading; closing and reopening hold it for writing.
/// - Writes run one at a time, under `writeLock`. So when a write fails, no other write is running that could still be
///   acknowledged. The store then rejects writes until ``recover()`` has reopened the LevelDB: until then, LevelDB may
///   accept writes that never reach the disk.
/// - Children (snapshots, cursors) are invalidated before their LevelDB is closed.
///
/// Thread-safe. `@unchecked Sendable`: `handle` is guarded by `gate`; `failure`, `damage`, `sizes` and `lastCount` by
/// `stateLock`; the rest is constant or atomic. Lock order: `noteLock`, `writeLock`, `gate`, `stateLock`.
final class EpochStore: @unchecked Sendable {
    let path: String
    let epoch: UInt64
    let databaseName: String
    let context: LarderContext
    /// Held by a checkpoint, the sweep or an eviction while it reads entries and writes the result. Locked before shard
    /// locks and `writeLock`.
    let indexLock = Lock()
    private let writeLock = Lock()
    private let gate = ReadWriteLock()
    @exclusivity(unchecked) private var handle: LarderLevelDB.Database?
    private let stateLock = Lock()
    private let children = StoreChildren()
    let lastHints = LastHints()
    private var failure: LarderError?
    /// Whether ``failure`` means that the directory was removed or replaced.
    private var isGone = false
    private var damage: LarderError?
    /// The disk limit of the database in bytes, from the last ``reopenForLimits(databaseLimit:)``; `.max` for none.
    private let databaseLimit = Atomic<Int>(.max)
    /// The table and memory sizes with which LevelDB was last opened.
    private var openedOptions: Options?
    let endingValue = Atomic<UInt8>(Ending.none.rawValue)
    /// Why the store is about to end. Set before its files are moved or removed; see ``prepareEnd(_:)``.
    let nextEnding = Atomic<UInt8>(Ending.none.rawValue)
    private let failed = Atomic<Bool>(false)
    let frozen = Atomic<Bool>(false)
    let neededWhileFrozen = Atomic<UInt64>(0)
    private let writes = Atomic<UInt64>(0)
    /// The bytes of all batches since the last ``flushMemtable()``.
    let unflushed = Atomic<Int>(0)
    private let made: Atomic<Bool>
    private let removals = Atomic<Int>(0)
    private let dead = Atomic<Int>(0)
    private var lastCount: CountedRecords?
    private let noteLock = Lock()
    /// ``writeGeneration`` when SYNCED was last written; nil if it was not written yet. Guarded by `noteLock`.
    private var noted: UInt64?
    /// The manifest that was last recorded in SYNCED. Guarded by `noteLock`.
    private var notedManifest: (number: UInt64, byteCount: Int)?
    /// The last commit unit that the journal must contain, if this process has recorded one; otherwise `.max`.
    let journalNeeded = Atomic<UInt64>(.max)
    /// Whether a caller has requested that the tables be merged in the background.
    let wantsCompaction = Atomic<Bool>(false)
    /// Whether the expiry index may lack keys of entries. If so, all entries have to be read once to find expired ones.
    let lacksIndex = Atomic<Bool>(false)
    private let longKeys = LongKeys()
    /// The tables that LevelDB uses, and their sizes.
    let tables: StoreTables
    /// Called when LevelDB reports corruption for the first time.
    let onDamage: @Sendable (EpochStore, LarderError) -> Void

    /// Opens or creates the LevelDB at `path`.
    init(
        path: String, epoch: UInt64, databaseName: String, create: Bool, context: LarderContext,
        onDamage: @escaping @Sendable (EpochStore, LarderError) -> Void
    ) throws(LarderError) {
        self.path = path
        tables = StoreTables(path: path)
        self.epoch = epoch
        self.databaseName = databaseName
        self.context = context
        self.onDamage = onDamage
        made = Atomic(true)
        handle = try openHandle(create: create, "open")
        do throws(LarderError) {
            try noteSynced()
        } catch {
            try? handle?.close()
            throw error
        }
    }

    /// Checks LevelDB's files for damage that LevelDB would ignore, and opens them.
    private func openHandle(create: Bool, _ operation: String) throws(LarderError) -> LarderLevelDB.Database {
        do {
            if !create, try EpochInspection.prepare(path) == .unreadable {
                context.report(
                    .error,
                    "database '\(databaseName)': \(SyncedFiles.name) is damaged: the end of LevelDB's log, "
                        + "with the newest values, may be lost", database: databaseName)
            }
            let options = context.levelDBOptions(
                create: create, databaseLimit: databaseLimit.load(ordering: .relaxed))
            let opened = try LarderLevelDB.Database(path: path, options: options) { [disk = context.disk] in
                disk.isTight
            }
            stateLock.withLock { openedOptions = options }
            return opened
        } catch let error as FilesDamage {
            throw LarderError(.damaged, error.message, operation: operation, database: databaseName, underlying: error)
        } catch let error as LevelDBError {
            throw LarderError(error, operation: operation, database: databaseName)
        } catch {
            throw LarderError(.io, "\(error)", operation: operation, database: databaseName, underlying: error)
        }
    }

    /// Creates an empty epoch without files. The first write creates the files.
    init(
        unmadeAt path: String, epoch: UInt64, databaseName: String, context: LarderContext,
        onDamage: @escaping @Sendable (EpochStore, LarderError) -> Void
    ) {
        self.path = path
        tables = StoreTables(path: path)
        self.epoch = epoch
        self.databaseName = databaseName
        self.context = context
        self.onDamage = onDamage
        made = Atomic(false)
    }

    // MARK: Making the files

    /// Whether the files exist. An epoch without files has no entries. Costs one atomic load.
    var isMade: Bool { made.load(ordering: .acquiring) }

    /// Creates the LevelDB of an epoch without files, with a record of the format version. Creates it in a temporary
    /// directory, which is synced and then renamed, so that a crash leaves either all files or none. Called with
    /// `writeLock` held.
    private func make() throws(LarderError) {
        guard !isMade, ending == .none else { return }
        try whileItLasts("create") { () throws(LarderError) in
            do {
                try makeAndOpen()
            } catch {
                throw larderError(error, "create")
            }
        }
    }

    private func makeAndOpen() throws {
        let parent = FileSystem.parent(path)
        // An earlier attempt may have created the files, and failed to open them.
        if !FileSystem.exists(path) { try makeFiles(in: parent + "/" + Self.makingPrefix + "\(epoch)") }
        try FileSystem.syncDirectory(parent)
        let opened = try openHandle(create: false, "create")
        do {
            // LevelDB has begun a new manifest and a new log. They are recorded in SYNCED before anything is written to
            // them: otherwise a damaged log would look like one that a power failure has cut short.
            try SyncedFiles.write(to: path, logs: SyncedFiles.logLengths(in: path), databaseName)
        } catch {
            try? opened.close()
            throw error
        }
        gate.withWriteLock {
            if ending == .none { handle = opened } else { try? opened.close() }
        }
        made.store(true, ordering: .releasing)
    }

    // MARK: Reading

    /// Runs `body`, which must call only LevelDB. The store cannot be closed or reopened meanwhile. Creates the files
    /// first if there are none.
    func access<Result>(
        _ operation: String, key: @autoclosure () -> Key? = nil,
        _ body: (LarderLevelDB.Database) throws(LevelDBError) -> Result
    ) throws(LarderError) -> Result {
        try ForkGuard.check(operation)
        if !isMade { try writeLock.withLock { () throws(LarderError) in try make() } }
        return try accessMade(operation, key: key(), body)
    }

    private func accessMade<Result>(
        _ operation: String, key: @autoclosure () -> Key?,
        _ body: (LarderLevelDB.Database) throws(LevelDBError) -> Result
    ) throws(LarderError) -> Result {
        do throws(LarderError) {
            return try whileItLasts(operation) { () throws(LarderError) in
                try gate.withReadLock { () throws(LarderError) in
                    guard let handle else { throw unavailable(operation) }
                    do throws(LevelDBError) {
                        return try body(handle)
                    } catch {
                        throw LarderError(error, operation: operation, database: databaseName, key: key()?.description)
                    }
                }
            }
        } catch {
            note(error)
            throw error
        }
    }

    /// Remembers damage, and reports it once.
    private func note(_ error: LarderError) {
        guard error.code == .damaged else { return }
        let isFirst = stateLock.withLock {
            defer { damage = damage ?? error }
            return damage == nil
        }
        if isFirst { onDamage(self, error) }
    }

    /// The first damage that was found since the store was created; nil if none was.
    var knownDamage: LarderError? { stateLock.withLock { damage } }

    /// Reads a key's record from LevelDB, and verifies checksums. Returns a copy that LevelDB has allocated; nil if
    /// there is no record. The caller must pass the copy to ``release(_:)``, even if the store was closed meanwhile.
    func take(_ key: UnsafeRawBufferPointer, fillCache: Bool) throws(LarderError) -> UnsafeRawBufferPointer? {
        guard isMade else { return nil }
        return try withUnsafeTemporaryAllocation(byteCount: key.count + 1, alignment: 1) { space in
            space[0] = KeyKind.record
            UnsafeMutableRawBufferPointer(rebasing: space[1...]).copyMemory(from: key)
            return Result { () throws(LarderError) in
                try access("get", key: Key(key)) { (database) throws(LevelDBError) in
                    // Safe without the database's lock: the database is closed only with `gate` held for writing.
                    try database.takeUnlocked(UnsafeRawBufferPointer(space), fillCache: fillCache)
                }
            }
        }.get()
    }

    /// Whether LevelDB certainly has no record of a key. False if that cannot be determined without reading a file. For
    /// event loops: does not block, and takes a microsecond or two.
    /// - Parameter hash: as in ``Key/hash``.
    func lacks(_ key: UnsafeRawBufferPointer, hash: Int) -> Bool {
        guard isMade else { return true }
        guard !longKeys.contains(hash) else { return false }
        return withUnsafeTemporaryAllocation(byteCount: key.count + 1, alignment: 1) { space in
            space[0] = KeyKind.record
            UnsafeMutableRawBufferPointer(rebasing: space[1...]).copyMemory(from: key)
            // Safe without the database's lock: the database is closed only with `gate` held for writing.
            return gate.withReadLockUnlessBusy { handle?.lacksUnlocked(UnsafeRawBufferPointer(space)) ?? false }
                ?? false
        }
    }

    static func release(_ stored: UnsafeRawBufferPointer?) { LarderLevelDB.Database.release(stored) }

    private func unavailable(_ operation: String) -> LarderError {
        if let error = endingError(operation) { return error }
        let cause = stateLock.withLock { failure }
        return LarderError(
            .io,
            "the database could not be reopened yet after a failed write"
                + (cause.map { ": \($0.message)" } ?? ""), operation: operation, database: databaseName,
            underlying: cause)
    }

    // MARK: Writing

    /// Whether a write failed. No write is accepted until ``recover()`` has succeeded. Costs one atomic load.
    var isSuspended: Bool { failed.load(ordering: .acquiring) }

    /// The error for writes while the store is suspended; nil if the store is not suspended.
    func suspension(_ operation: String) -> LarderError? {
        guard isSuspended else { return nil }
        let (cause, isLost) = stateLock.withLock { (failure, isGone) }
        let reason = cause?.message ?? "unknown"
        return LarderError(
            .writesSuspended,
            isLost
                ? reason : "an earlier write failed (\(reason)); writes are refused until the database is reopened",
            operation: operation, database: databaseName, underlying: cause)
    }

    /// Writes a batch. If the write fails, the store is suspended.
    /// - Parameters:
    ///   - sync: whether to sync LevelDB's log before returning.
    ///   - changesEntries: whether the batch changes entries, so that earlier counts of entries are outdated.
    func write(_ batch: LarderLevelDB.WriteBatch, sync: Bool, changesEntries: Bool = true) throws(LarderError) {
        try writeLock.withLock { () throws(LarderError) in
            if isFrozen {
                throw LarderError(
                    .writesSuspended, "the database is being salvaged", operation: "write", database: databaseName)
            }
            if let error = suspension("write") { throw error }
            // If this throws, nothing was written, so the store need not be suspended.
            try make()
            for key in batch.longKeys { longKeys.add(Key.hash(ofStored: key)) }
            // Increment this after the write: a concurrent count of entries may miss the write, and must not be reused.
            defer { if changesEntries { _ = writes.wrappingAdd(1, ordering: .acquiringAndReleasing) } }
            do throws(LarderError) {
                try accessMade("write", key: nil) { (database) throws(LevelDBError) in
                    try database.write(batch, sync: sync)
                }
                unflushed.add(batch.byteCount)
            } catch {
                suspend(error)
                throw error
            }
            if sync { context.statistics.syncs.add() }
        }
        flushIfTight()
    }

    /// Whether the LevelDB is not open.
    var isClosed: Bool { gate.withReadLock { handle == nil } }

    /// Closes the LevelDB for a salvage that reads its files in place, so that LevelDB does not change them meanwhile.
    func closeFrozen() {
        gate.withWriteLock {
            children.invalidateAll()
            try? handle?.close()
            handle = nil
        }
    }

    func suspend(_ error: LarderError) {
        stateLock.withLock { failure = error }
        failed.store(true, ordering: .releasing)
    }

    /// Suspends the store if another program has removed, moved or replaced its directory. Otherwise LevelDB would
    /// continue to write to the removed files, and these writes would be lost. Costs one stat(2).
    func suspendIfGone() {
        guard isMade, !isSuspended, !isFrozen, ending == .none,
            gate.withReadLock({ handle.map { !$0.isInPlace } ?? false }), ending == .none
        else { return }
        let error = LarderError(
            .io,
            "its directory \(path) was removed or replaced while it was open. Put it back: a restart without it loses the "
                + "database. Until then, only entries in memory can be read, and nothing is written",
            operation: "write", database: databaseName, underlying: FileError.gone(path))
        stateLock.withLock { isGone = true }
        suspend(error)
        context.report(.error, "database '\(databaseName)': \(error.message)", database: databaseName)
    }

    /// Throws if the directory is missing or was replaced: it then does not contain this database.
    func requireInPlace(_ operation: String) throws(LarderError) {
        suspendIfGone()
        if stateLock.withLock({ isGone }), gate.withReadLock({ handle.map { !$0.isInPlace } ?? false }),
            let error = suspension(operation)
        {
            throw error
        }
    }

    /// Closes and reopens the LevelDB after a failed write, so that reads return the state on the disk. Earlier
    /// snapshots and cursors fail. Does nothing if no write failed.
    func recover() throws(LarderError) {
        guard isSuspended, !isFrozen, ending == .none else { return }
        guard isMade else { return resume() }
        try requireInPlace("reopen")
        do throws(FileError) {
            // Before closing LevelDB, check that the disk has space to open it again. Opening writes the content of the
            // log to a table, and a new manifest. If opening failed, the database could not be read either.
            try FileSystem.probe(directory: path, bytes: FileSystem.size(ofLogsIn: path) + 65_536)
        } catch {
            throw LarderError(
                .writesSuspended,
                "an earlier write failed, and writes to the disk still fail: \(error)" + context.disk.note(error),
                operation: "reopen", database: databaseName, underlying: error)
        }
        let wasGone = stateLock.withLock { isGone }
        do throws(LarderError) { try noteSynced(isReopening: true) } catch {
            note(error)
            throw error
        }
        if isSuspended { return }
        let text = wasGone ? "has its directory \(path) back" : "was reopened after a failed write"
        context.report(.info, "database '\(databaseName)' \(text) and accepts writes again", database: databaseName)
    }

    private func resume() {
        stateLock.withLock { (failure, isGone) = (nil, false) }
        failed.store(false, ordering: .releasing)
        context.statistics.reopens.add()
    }

    /// Closes and opens the LevelDB of a suspended store. Called with `gate` held for writing.
    /// - Returns: false if the store is no longer suspended, or has ended.
    private func reopen() throws(LarderError) -> Bool {
        guard isSuspended, ending == .none else { return false }
        children.invalidateAll()
        do throws(LevelDBError) { try handle?.close() } catch {
            throw LarderError(error, operation: "reopen", database: databaseName)
        }
        handle = nil
        handle = try openHandle(create: false, "reopen")
        return true
    }

    /// Reopens the LevelDB with other table and memory sizes, if changed disk limits halve or double one of the sizes.
    /// Does nothing while there are snapshots or cursors, which reopening would invalidate. Readers and writers wait
    /// meanwhile.
    /// - Parameter databaseLimit: the disk limit of the database; 0 for none.
    /// - Returns: whether the LevelDB was reopened.
    @discardableResult
    func reopenForLimits(databaseLimit limit: Int) throws(LarderError) -> Bool {
        databaseLimit.store(limit > 0 ? limit : .max, ordering: .relaxed)
        guard isMade, !isSuspended, hasOtherSizes, children.isEmpty else { return false }
        return try whileItLasts("reopen") { () throws(LarderError) in
            do {
                // Check that the disk has space: opening LevelDB writes the content of its log to a table.
                try FileSystem.probe(directory: path, bytes: FileSystem.size(ofLogsIn: path) + 65_536)
                return try noteLock.withLock {
                    // Nothing may be written to LevelDB's new log before the log is recorded in SYNCED.
                    try writeLock.withLock {
                        guard try gate.withWriteLock(openAnew) else { return false }
                        notedManifest = try SyncedFiles.write(
                            to: path, logs: SyncedFiles.logLengths(in: path), databaseName)
                        noted = writeGeneration
                        return true
                    }
                }
            } catch {
                throw larderError(error, "reopen")
            }
        }
    }

    private var hasOtherSizes: Bool {
        guard let old = stateLock.withLock({ openedOptions }) else { return false }
        let limit = databaseLimit.load(ordering: .relaxed)
        return context.levelDBOptions(create: false, databaseLimit: limit).sizesDiffer(from: old)
    }

    /// Closes and opens the LevelDB of a store without snapshots and cursors. Called with `gate` held for writing. If
    /// opening fails, the store is suspended until ``recover()`` opens it.
    /// - Returns: false if the LevelDB cannot be reopened now.
    private func openAnew() throws(LarderError) -> Bool {
        guard !isSuspended, !isFrozen, ending == .none, children.isEmpty else { return false }
        do {
            try handle?.close()
            handle = nil
            handle = try openHandle(create: false, "reopen")
            return true
        } catch {
            let failure = larderError(error, "reopen")
            suspend(failure)
            throw failure
        }
    }

    /// Closes the LevelDB of a suspended store, runs `body`, which may change the files, and opens the LevelDB again.
    /// If opening fails, ``recover()`` retries it. Readers wait meanwhile. Does nothing if the store is not suspended.
    func whileClosed(_ body: () throws -> Void) throws(LarderError) {
        try whileItLasts("make room") { () throws(LarderError) in
            do {
                try noteLock.withLock {
                    try gate.withWriteLock {
                        guard isSuspended, !isFrozen, isMade, ending == .none else { return }
                        children.invalidateAll()
                        try handle?.close()
                        handle = nil
                        defer { if hasRoomToOpen { handle = try? openHandle(create: false, "make room") } }
                        try body()
                    }
                }
            } catch {
                throw larderError(error, "make room")
            }
        }
        _ = writes.wrappingAdd(1, ordering: .acquiringAndReleasing)
    }

    /// Whether the disk has space for opening the LevelDB. Checked first, because a failed attempt leaves a log and
    /// tables that use up more space.
    private var hasRoomToOpen: Bool {
        (try? FileSystem.probe(directory: path, bytes: FileSystem.size(ofLogsIn: path) + 16_384)) != nil
    }

    // MARK: Synced lengths

    /// Syncs LevelDB's logs and manifest, and records their lengths in the file SYNCED: see ``SyncedFiles``. Called
    /// after a checkpoint has written entries, before it marks them clean and removes them from the journal. Does
    /// nothing if nothing was written since the last call.
    /// - Parameter isReopening: whether to reopen the LevelDB first if it is suspended, and to record its files even if
    ///   nothing was written. Reopening is part of this call, under the same lock, for two reasons. Reopening creates a
    ///   new manifest, which must not happen while another thread records the old manifest. And after a failed write,
    ///   no other thread may record the log, because the log might end within that write.
    func noteSynced(isReopening: Bool = false) throws(LarderError) {
        try whileItLasts("sync") { () throws(LarderError) in
            do {
                try noteLock.withLock {
                    let isReopened = try isReopening && gate.withWriteLock { () throws(LarderError) in try reopen() }
                    try noteSyncedLocked(always: isReopening, isReopened: isReopened)
                    if isReopened { resume() }
                }
            } catch {
                throw larderError(error, "sync", "cannot record which parts of LevelDB's files are synced: ")
            }
        }
    }

    /// - Parameter isReopened: whether the LevelDB was just reopened. Then no write to it has failed, although the
    ///   store is still marked as suspended.
    private func noteSyncedLocked(always: Bool, isReopened: Bool = false) throws {
        guard isMade else { return }
        let generation = writeGeneration
        guard always || noted != generation, always || !isFrozen else { return }
        // While the lock is held, no write is running, so no log ends within a record.
        let logs = try writeLock.withLock {
            if !isReopened, let error = suspension("sync") { throw error }
            return try SyncedFiles.logLengths(in: path)
        }
        notedManifest = try SyncedFiles.write(to: path, logs: logs, databaseName)
        noted = generation
    }

    /// Closes the LevelDB like ``close()``, and updates SYNCED if LevelDB has changed its tables since the last update.
    /// If the update fails, no data is lost: the next start updates it.
    func closeInOrder() {
        close()
        guard isMade, !isSuspended, !isFrozen, knownDamage == nil else { return }
        do {
            try noteLock.withLock {
                guard let notedManifest, let manifest = try ManifestScan.scan(directory: path),
                    manifest.number != notedManifest.number || manifest.log.goodBytes != notedManifest.byteCount
                else { return }
                try noteSyncedLocked(always: true)
            }
        } catch {
            context.report(.debug, "closing \(path): \(error)")
        }
    }

    /// Closes the LevelDB permanently. May block for as long as LevelDB compacts. Idempotent.
    func close() {
        end(.closed)
        gate.withWriteLock {
            children.invalidateAll()
            do throws(LevelDBError) {
                try handle?.close()
            } catch {
                context.report(.warning, "closing \(path): \(error)")
            }
            handle = nil
        }
    }

    // MARK: Children

    /// Creates a child (a snapshot or cursor of LevelDB) and registers it, so that it is invalidated before LevelDB is
    /// closed. Pass the child to ``release(_:)`` when it is no longer needed.
    func adopt<Child: StoreChild>(
        _ operation: String, _ make: (LarderLevelDB.Database) throws(LevelDBError) -> Child
    ) throws(LarderError) -> Child {
        try access(operation) { (database) throws(LevelDBError) in
            let child = try make(database)
            children.add(child)
            return child
        }
    }

    /// Like ``adopt(_:_:)``, for a child without a LevelDB object, because the epoch has no files yet.
    func adopt(empty child: some StoreChild) { children.add(child) }

    /// Makes a child release its LevelDB object. Called from any thread that is not within ``access(_:key:_:)``.
    /// Idempotent.
    func release(_ child: any StoreChild) {
        // After a fork, the locks may be locked by threads that do not exist in the child process.
        guard !ForkGuard.isForked else { return }
        gate.withReadLock { child.invalidate() }
        children.remove(child)
    }

    /// Whether a snapshot keeps LevelDB from freeing the space of removed records.
    var isPinned: Bool { children.pinRecords }

    /// Invalidates all snapshots and cursors. Using them afterwards throws.
    func endViews() { gate.withWriteLock { children.invalidateAll() } }

    // MARK: Counts

    /// The number of removals that checkpoints have written since the store was opened.
    var removalCount: Int { removals.load(ordering: .relaxed) }
    func noteRemovals(_ count: Int) { removals.wrappingAdd(count, ordering: .relaxed) }

    /// The approximate bytes of removed entries whose space LevelDB has not freed yet.
    var deadBytes: Int { dead.load(ordering: .relaxed) }
    func noteDead(_ bytes: Int) { dead.wrappingAdd(bytes, ordering: .relaxed) }
    /// Resets ``deadBytes`` after all tables were merged.
    func forgetDead() { dead.store(0, ordering: .relaxed) }

    /// A number that increases with every write that changes entries. Used to detect that a count is outdated.
    var writeGeneration: UInt64 { writes.load(ordering: .acquiring) }

    /// The last count of the store's records.
    var knownCount: CountedRecords? { stateLock.withLock { lastCount } }
    func remember(_ count: CountedRecords) { stateLock.withLock { lastCount = count } }

    // MARK: Errors

    /// Returns a LarderError as it is, and wraps any other error in a LarderError with the code `io`.
    private func larderError(_ error: any Error, _ operation: String, _ prefix: String = "") -> LarderError {
        (error as? LarderError)
            ?? LarderError(.io, "\(prefix)\(error)", operation: operation, database: databaseName, underlying: error)
    }
}
