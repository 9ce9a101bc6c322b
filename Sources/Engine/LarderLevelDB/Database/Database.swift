import CLarderLevelDB
import LarderPlatform
import Synchronization

/// An open LevelDB database. Keys and values are bytes; keys are in bytewise order.
///
/// Any call may wait for the disk. A write also waits while LevelDB has too many tables to merge. Do not make calls on
/// Swift's cooperative thread pool or on an event loop.
///
/// Thread-safe. `@unchecked Sendable`: `handle` is read with `lock` held for reading and changed with `lock` held for
/// writing; LevelDB allows calls by any number of threads between open and close; everything else is constant or
/// atomic.
package final class Database: @unchecked Sendable {
    /// The directory, as it was passed to the initializer.
    package let path: String
    /// The options with which the database was opened.
    package let options: Options

    private let optionsHandle: OptionsHandle
    private let claim: DirectoryClaim
    private let lock = ReadWriteLock()
    private var handle: OpaquePointer?
    /// Locked for reading while LevelDB's tables are read.
    @usableFromInline let gate: VersionGate

    // The numbers of open snapshots and cursors. They are incremented with `lock` held for reading, and decremented
    // after LevelDB has released the object. So if close() reads zero with `lock` held for writing, the number stays
    // zero.
    private let snapshotCount = Atomic<Int>(0)
    private let cursorCount = Atomic<Int>(0)

    /// Opens the database in the directory `path`. With ``Options/createIfMissing``, creates it if it is missing, but
    /// not its parent directories.
    ///
    /// Replays the log, so the time depends on the amount of recent writes. Throws `.notFound` if there is no database
    /// and none may be created. Throws `.corruption` if files are damaged or missing (see ``fileState(path:)``). Throws
    /// `.ioError` if the system reports an error, or if this or another process has the database open. Throws
    /// `.invalidArgument` for options out of range.
    /// - Parameter yields: called at the end of each merge of tables. It returns whether cursors must release the
    ///   tables that they read, so that LevelDB frees their disk space immediately. A cursor without a snapshot then
    ///   continues over the current entries. The default closure returns false. Must not block.
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
        // Snapshots and cursors retain the database, so none exists now.
        if let handle {
            leveldb_close(handle)
            gate.unregister(path)
        }
        claim.release()
    }

    /// Closes the database after the calls in progress, including a compaction, have finished. Later calls by any
    /// thread throw `.closed`. Idempotent. Does not sync: earlier writes without sync may still be only in the
    /// operating system's cache.
    ///
    /// Throws `.busy`, and changes nothing, while snapshots or cursors are open. If this is never called, the database
    /// is closed on the thread that releases the last reference.
    package func close() throws(LevelDBError) {
        // Check before taking the lock, because waiting for the lock would delay all readers until the longest call has
        // finished.
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

    // Called with `lock` held for reading, so that the database is not closed between creating and counting the object.
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
        // Inspect the files after claiming the directory: otherwise another thread might be deleting the database now.
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

    /// Passes LevelDB's handle to `body`. The handle stays open until `body` returns. `body` may only call LevelDB's C
    /// functions, because the lock is not recursive.
    @inline(__always)
    func withHandle<Result>(
        _ operation: StaticString, _ body: (OpaquePointer) throws(LevelDBError) -> Result
    ) throws(LevelDBError) -> Result {
        try lock.withReadLock { () throws(LevelDBError) -> Result in try body(try openHandle(operation)) }
    }

    /// Returns LevelDB's handle; throws `.closed` if the database was closed. Called with `lock` held, or while
    /// something else keeps the database from being closed.
    @inline(__always)
    func openHandle(_ operation: StaticString) throws(LevelDBError) -> OpaquePointer {
        guard let handle else {
            throw LevelDBError(
                code: .closed, message: "the database was closed", operation: operation.description, path: path)
        }
        return handle
    }
}

// Functions on the files of a database that need not be open.

extension Database {
    /// Determines whether the directory contains a database, from the names of its files and the content of `CURRENT`.
    /// Changes nothing.
    ///
    /// If the directory exists but cannot be read, returns `.database`, so that callers do not overwrite it. Opening
    /// the database then throws the system's error. ``fileState(path:)`` itself throws in this case.
    package static func containsDatabaseFiles(path: String) -> FileState { (try? fileState(path: path)) ?? .database }

    /// Like ``containsDatabaseFiles(path:)``, but throws `.ioError` if the directory exists but cannot be read.
    package static func fileState(path: String) throws(LevelDBError) -> FileState {
        try FileState(inspecting: path, operation: "fileState")
    }

    /// Throws `.invalidArgument` for options out of range, and for paths that LevelDB would misunderstand.
    static func check(path: String, options: Options, operation: String) throws(LevelDBError) {
        var complaint = options.complaint()
        // If the path is empty, LevelDB would use the root directory. If it contains a NUL byte, LevelDB would use only
        // the part before it.
        if path.isEmpty { complaint = "the path is empty" }
        if path.utf8.contains(0) { complaint = "the path contains a NUL" }
        if let complaint {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: operation, path: path)
        }
    }
}
