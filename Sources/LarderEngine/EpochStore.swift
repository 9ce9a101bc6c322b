import LevelDB
import Synchronization
import Threading

/// Something that reads an ``EpochStore`` over a longer time and must let go when the store is closed or reopened.
protocol StoreChild: AnyObject, Sendable {
    /// Called with no call to LevelDB under way anywhere in the store.
    func invalidate()
}

/// One epoch of a database: a LevelDB in a directory of its own.
///
/// - Every call to LevelDB holds `gate` for reading; closing and reopening hold it for writing.
/// - After a failed write nothing more is written until ``recover()`` has reopened the LevelDB: what LevelDB then still
///   accepts may never reach the disk.
/// - Children (snapshots, cursors) are told before the LevelDB beneath them goes away.
///
/// Thread-safe. The proof for `@unchecked Sendable`: `handle` is guarded by `gate`, `children`, `failure`,
/// `removalDirectory` and `lastCount` by `stateLock`, the rest is constant or atomic.
final class EpochStore: @unchecked Sendable {
    /// Why a store is no longer the database's current one.
    enum Ending: UInt8 { case none, purged, deleted, setAside, closed }

    private struct Child {
        weak var value: (any StoreChild)?
    }

    let path: String
    let epoch: UInt64
    let databaseName: String
    private let context: EngineContext
    private let gate = ReadWriteLock()
    private var handle: LevelDB.Database?
    private let stateLock = Lock()
    private var children: [ObjectIdentifier: Child] = [:]
    private var failure: LarderError?
    private var removalDirectory: String?
    private let endingValue = Atomic<UInt8>(Ending.none.rawValue)
    private let failed = Atomic<Bool>(false)
    private let unsynced = Atomic<Bool>(false)
    private let writes = Atomic<UInt64>(0)
    private var lastCount: (generation: UInt64, count: Int)?
    /// Told when LevelDB reports corruption.
    let onDamage: @Sendable (EpochStore, LarderError) -> Void

    /// Opens or creates the LevelDB at `path`.
    init(
        path: String, epoch: UInt64, databaseName: String, create: Bool, context: EngineContext,
        onDamage: @escaping @Sendable (EpochStore, LarderError) -> Void
    ) throws(LarderError) {
        self.path = path
        self.epoch = epoch
        self.databaseName = databaseName
        self.context = context
        self.onDamage = onDamage
        do throws(LevelDBError) {
            handle = try LevelDB.Database(path: path, options: context.levelDBOptions(create: create))
        } catch {
            throw Self.convert(error, operation: "open", database: databaseName, key: nil)
        }
    }

    // MARK: Reading

    /// Runs `body`, which makes calls to LevelDB and nothing else, while the store can be neither closed nor reopened.
    func access<Result>(
        _ operation: String, key: Key? = nil, _ body: (LevelDB.Database) throws(LevelDBError) -> Result
    ) throws(LarderError) -> Result {
        let error: LarderError
        do throws(LarderError) {
            return try gate.withReadLock { () throws(LarderError) in
                guard let handle else { throw unavailable(operation) }
                do throws(LevelDBError) {
                    return try body(handle)
                } catch {
                    throw Self.convert(error, operation: operation, database: databaseName, key: key)
                }
            }
        } catch let caught {
            error = caught
        }
        if error.code == .damaged { onDamage(self, error) }
        throw error
    }

    /// The stored bytes of a key, checksums verified; nil when there are none.
    func get(_ key: Key, fillCache: Bool = true, snapshot: LevelDB.Snapshot? = nil) throws(LarderError) -> [UInt8]? {
        var options = ReadOptions()
        options.fillCache = fillCache
        options.snapshot = snapshot
        return try access("get", key: key) { (database) throws(LevelDBError) in
            try database.get(key.stored, options: options)
        }
    }

    private func unavailable(_ operation: String) -> LarderError {
        if let error = endingError(operation) { return error }
        let cause = stateLock.withLock { failure }
        return LarderError(
            .io,
            "the database could not be reopened after a failed write yet"
                + (cause.map { ": \($0.message)" } ?? ""), operation: operation, database: databaseName,
            underlying: cause)
    }

    // MARK: Writing

    /// Whether a write failed and nothing is accepted until ``recover()`` succeeded. One atomic load.
    var isSuspended: Bool { failed.load(ordering: .acquiring) }

    /// The error for writes while the store is suspended; nil when it is not.
    func suspension(_ operation: String) -> LarderError? {
        guard isSuspended else { return nil }
        let cause = stateLock.withLock { failure }
        return LarderError(
            .writesSuspended,
            "an earlier write failed (\(cause?.message ?? "unknown")); "
                + "nothing is accepted until the database was reopened", operation: operation, database: databaseName,
            underlying: cause)
    }

    /// Writes a batch. The first failure suspends the store.
    func write(_ batch: LevelDB.WriteBatch, sync: Bool) throws(LarderError) {
        if let error = suspension("write") { throw error }
        // After the write, so that a count taken without it is not kept past it.
        defer { _ = writes.wrappingAdd(1, ordering: .acquiringAndReleasing) }
        do throws(LarderError) {
            try access("write") { (database) throws(LevelDBError) in
                try database.write(batch, options: WriteOptions(sync: sync))
            }
            if sync { context.statistics.syncs.add() }
            unsynced.store(!sync, ordering: .relaxed)
        } catch {
            suspend(error)
            throw error
        }
    }

    /// fsyncs what was written since the last sync, if anything was.
    func syncIfNeeded() throws(LarderError) {
        guard unsynced.load(ordering: .relaxed), !isSuspended, ending == .none else { return }
        // An empty batch is a record of LevelDB's log like any other: syncing it syncs all that stands before it.
        try write(LevelDB.WriteBatch(), sync: true)
    }

    func suspend(_ error: LarderError) {
        stateLock.withLock { failure = error }
        failed.store(true, ordering: .releasing)
    }

    /// Closes and reopens the LevelDB after a failed write, so that what is served is what is on the disk. Snapshots
    /// and cursors of before answer with an error. Does nothing when no write failed.
    func recover() throws(LarderError) {
        guard isSuspended, ending == .none else { return }
        do throws(FileError) {
            // While the disk takes no writes, reopening would fail too and take the reads with it. Reopening writes what
            // stands in LevelDB's log, up to two write buffers of it, into a table.
            try FileSystem.probe(directory: path, bytes: 3 * context.options.writeBufferBytes)
        } catch {
            throw LarderError(
                .io, "the disk still takes no writes: \(error)", operation: "reopen", database: databaseName,
                underlying: error)
        }
        let alive = stateLock.withLock { children.values.compactMap(\.value) }
        do throws(LarderError) {
            try gate.withWriteLock { () throws(LarderError) in try reopen(invalidating: alive) }
        } catch {
            if error.code == .damaged { onDamage(self, error) }
            throw error
        }
        stateLock.withLock { failure = nil }
        failed.store(false, ordering: .releasing)
        context.statistics.reopens.add()
        // Kept alive until here: the last release of a child must not happen under the gate.
        withExtendedLifetime(alive) {}
    }

    private func reopen(invalidating alive: [any StoreChild]) throws(LarderError) {
        guard isSuspended, ending == .none else { return }
        for child in alive { child.invalidate() }
        do throws(LevelDBError) {
            try handle?.close()
            handle = nil
            handle = try LevelDB.Database(path: path, options: context.levelDBOptions(create: false))
        } catch {
            throw Self.convert(error, operation: "reopen", database: databaseName, key: nil)
        }
    }

    // MARK: The end

    var ending: Ending { Ending(rawValue: endingValue.load(ordering: .acquiring)) ?? .closed }

    /// The error that snapshots and cursors of a store that is no longer current answer with; nil while it is.
    func endingError(_ operation: String) -> LarderError? {
        switch ending {
        case .none: nil
        case .purged:
            LarderError(.purged, "the database was purged meanwhile", operation: operation, database: databaseName)
        case .deleted:
            LarderError(.deleted, "the database was deleted meanwhile", operation: operation, database: databaseName)
        case .setAside:
            LarderError(
                .deleted, "the database was damaged and set aside meanwhile", operation: operation,
                database: databaseName)
        case .closed: LarderError(.closed, "the larder was closed", operation: operation, database: databaseName)
        }
    }

    /// Marks the store as no longer current. The first reason stays.
    /// - Parameter movedTo: where its directory was moved to, if it was.
    func end(_ reason: Ending, movedTo: String? = nil) {
        stateLock.withLock { if let movedTo { removalDirectory = movedTo } }
        _ = endingValue.compareExchange(
            expected: Ending.none.rawValue, desired: reason.rawValue, ordering: .acquiringAndReleasing)
    }

    /// What is to be removed once the store is closed.
    var removalPath: String { stateLock.withLock { removalDirectory } ?? path }

    /// Closes the LevelDB. May block for as long as LevelDB compacts. Idempotent.
    func close() {
        end(.closed)
        let alive = stateLock.withLock { children.values.compactMap(\.value) }
        gate.withWriteLock {
            for child in alive { child.invalidate() }
            do throws(LevelDBError) {
                try handle?.close()
            } catch {
                context.report(.warning, "closing \(path): \(error)")
            }
            handle = nil
        }
        withExtendedLifetime(alive) {}
    }

    // MARK: Children

    func register(_ child: any StoreChild) {
        stateLock.withLock { children[ObjectIdentifier(child)] = Child(value: child) }
    }

    func unregister(_ id: ObjectIdentifier) {
        stateLock.withLock { children[id] = nil }
    }

    /// Invalidates one child that its owner gives up.
    func closeChild(_ child: any StoreChild) { gate.withWriteLock { child.invalidate() } }

    // MARK: The count of records

    /// Goes up with every write.
    var writeGeneration: UInt64 { writes.load(ordering: .acquiring) }

    func knownCount(at generation: UInt64) -> Int? {
        stateLock.withLock { lastCount.flatMap { $0.generation == generation ? $0.count : nil } }
    }

    func remember(count: Int, at generation: UInt64) { stateLock.withLock { lastCount = (generation, count) } }

    // MARK: Errors

    private static func convert(_ error: LevelDBError, operation: String, database: String, key: Key?) -> LarderError {
        let code: LarderError.Code =
            switch error.code {
            case .corruption: .damaged
            case .closed: .closed
            case .invalidArgument: .invalidArgument
            default: .io
            }
        return LarderError(
            code, error.message, operation: operation, database: database, key: key?.description, underlying: error)
    }
}
