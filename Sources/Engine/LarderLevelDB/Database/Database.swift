import CLarderLevelDB
import LarderPlatform
import Synchronization

/// An open LevelDB database. Keys and values are bytes; keys are in bytewise order.
///
/// Any call may block on the disk. A write also waits while LevelDB has too many tables to merge. Do not make such
/// calls on Swift's cooperative pool or on an event loop.
///
/// Thread-safe. `@unchecked Sendable`: `handle` is read with `lock` held for reading and changed with `lock` held for
/// writing; LevelDB allows calls by any number of threads between open and close; everything else is constant or
/// atomic.
package final class Database: @unchecked Sendable {
    /// The directory, as it was given.
    package let path: String
    /// The options it was opened with.
    package let options: Options

    private let optionsHandle: OptionsHandle
    private let claim: DirectoryClaim
    private let lock = ReadWriteLock()
    private var handle: OpaquePointer?
    /// Locked for reading while LevelDB's tables are read.
    @usableFromInline let gate: VersionGate

    // Incremented with `lock` held for reading, and decremented after LevelDB has released the object. If close() reads
    // zero with `lock` held for writing, the count therefore stays zero.
    private let snapshotCount = Atomic<Int>(0)
    private let cursorCount = Atomic<Int>(0)

    /// Opens the database in the directory `path`. With ``Options/createIfMissing``, creates it if it is missing, but
    /// not its parent directories.
    ///
    /// Throws `.notFound` if there is no database and none may be created, `.corruption` if files are damaged or
    /// missing (see ``fileState(path:)``), `.ioError` if the system reports an error or a process (this one included)
    /// has it open, and `.invalidArgument` for options out of range. Replays the log, so the time depends on the amount
    /// of recent writes.
    /// - Parameter yields: called at the end of each merge; returns whether cursors release the tables that they read,
    ///   so that the disk space is freed immediately. A cursor without a snapshot then continues over the current
    ///   entries. The default closure returns false. Must not block.
    package init(
        path: String, options: Options = Options(), yields: @escaping @Sendable () -> Bool = { false }
    ) throws(LevelDBError) {
        try Self.check(path: path, options: options, operation: "open")
        claim = try Self.claimDirectory(path, options)
        let optionsHandle = OptionsHandle(options)
        handle = try checked("open", path: path) { leveldb_open(optionsHandle.handle, path, $0) }
        self.path = path
        self.options = options
        self.optionsHandle = optionsHandle
        gate = VersionGate(yields: yields)
        gate.register(path)
    }

    /// Whether the path still refers to the directory that was opened. If another program has removed, moved or
    /// replaced the directory, LevelDB continues with unreachable files, and reports no error.
    package var isInPlace: Bool { claim.isInPlace }

    deinit {
        // Snapshots and cursors retain the database, so none exists any more.
        if let handle {
            leveldb_close(handle)
            gate.unregister(path)
        }
        claim.release()
    }

    /// Closes the database after the calls in progress, including a compaction, have finished. Later calls by any
    /// thread throw `.closed`. Idempotent. Does not sync: writes without sync are in the operating system.
    ///
    /// Throws `.busy`, and changes nothing, while snapshots or cursors are open. If this is never called, the database
    /// is closed on the thread that releases the last reference.
    package func close() throws(LevelDBError) {
        // Checked before taking the lock: waiting for it would delay all readers until the longest call has finished.
        try refuseIfChildrenLive()
        try lock.withWriteLock { () throws(LevelDBError) in
            try refuseIfChildrenLive()
            guard let handle else { return }
            self.handle = nil
            leveldb_close(handle)
            gate.unregister(path)
            claim.release()
        }
    }

    /// True after ``close()``.
    package var isClosed: Bool { lock.withReadLock { handle == nil } }

    // The caller holds `lock` for reading while it counts a new snapshot or cursor.
    func snapshotDidOpen() { snapshotCount.wrappingAdd(1, ordering: .relaxed) }
    func cursorDidOpen() { cursorCount.wrappingAdd(1, ordering: .relaxed) }
    func snapshotDidClose() { snapshotCount.wrappingSubtract(1, ordering: .releasing) }
    func cursorDidClose() { cursorCount.wrappingSubtract(1, ordering: .releasing) }

    private func refuseIfChildrenLive() throws(LevelDBError) {
        let snapshots = snapshotCount.load(ordering: .acquiring)
        let cursors = cursorCount.load(ordering: .acquiring)
        guard snapshots > 0 || cursors > 0 else { return }
        throw LevelDBError(
            code: .busy, message: "open snapshots: \(snapshots), open cursors: \(cursors)", operation: "close",
            path: path)
    }

    /// Claims the directory for this handle, and checks that its files match the options.
    private static func claimDirectory(_ path: String, _ options: Options) throws(LevelDBError) -> DirectoryClaim {
        let missing = LevelDBError(
            code: .notFound, message: "there is no database, and createIfMissing is false", operation: "open",
            path: path)
        if options.createIfMissing, mkdir(path, 0o755) != 0, errno != EEXIST {
            throw LevelDBError(systemCall: "mkdir", operation: "open", path: path)
        }
        let claim: DirectoryClaim
        do {
            claim = try DirectoryClaim(path: path, operation: "open")
        } catch  where error.code == .notFound {
            throw missing
        }
        // Inspected under the claim: otherwise a destroy in another thread might be in progress.
        switch try FileState(inspecting: path, operation: "open") {
        case .damaged:
            throw LevelDBError(
                code: .corruption, message: "there are LevelDB files, but CURRENT does not name one of them",
                operation: "open", path: path)
        case .absentOrEmpty where !options.createIfMissing:
            throw missing
        case .absentOrEmpty, .database:
            return claim
        }
    }

    /// Runs `body` with the handle, which stays open until `body` returns. The lock is not recursive, so `body` may
    /// only make C calls.
    @inline(__always)
    func withHandle<Result>(
        _ operation: StaticString, _ body: (OpaquePointer) throws(LevelDBError) -> Result
    ) throws(LevelDBError) -> Result {
        try lock.withReadLock { () throws(LevelDBError) -> Result in try body(try openHandle(operation)) }
    }

    /// The handle; throws if it is closed. Called with the lock held, or while the database cannot be closed.
    @inline(__always)
    func openHandle(_ operation: StaticString) throws(LevelDBError) -> OpaquePointer {
        guard let handle else {
            throw LevelDBError(
                code: .closed, message: "the database was closed", operation: operation.description, path: path)
        }
        return handle
    }
}
