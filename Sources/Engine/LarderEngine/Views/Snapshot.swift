import LarderLevelDB
import LarderPlatform

/// A read-only view of a database at one instant. Entries that have expired since then are not returned.
///
/// LevelDB cannot delete the files that a snapshot reads, so close or release it soon. Reads throw after the database
/// was purged or reopened.
///
/// Thread-safe.
package final class Snapshot: Sendable {
    package let database: Database
    private let view: DatabaseView<StoreSnapshot>?

    init(_ database: Database, _ view: DatabaseView<StoreSnapshot>?) { (self.database, self.view) = (database, view) }

    /// Creates a snapshot of LevelDB, and registers it with the store.
    static func hold(_ store: EpochStore) throws(LarderError) -> StoreSnapshot {
        guard store.isMade else {
            let empty = StoreSnapshot(nil)
            store.adopt(empty: empty)
            return empty
        }
        return try store.adopt("snapshot") { (database) throws(LevelDBError) in StoreSnapshot(try database.snapshot()) }
    }

    deinit { close() }

    /// Releases the files after running reads have finished. Later reads throw. Idempotent.
    package func close() {
        if let view { view.store.release(view.below) }
    }

    /// Passes the store, LevelDB's snapshot and the copied entries of memory to `body`. LevelDB's snapshot is nil if
    /// LevelDB had no files. Returns nil, without calling `body`, if the database did not exist.
    func access<Result>(
        _ operation: String,
        _ body: (EpochStore, LarderLevelDB.Snapshot?, OverlaySnapshot) throws(LarderError) -> Result
    ) throws(LarderError) -> Result? {
        try ForkGuard.check(operation)
        guard let view else { return nil }
        let (store, held) = (view.store, view.below)
        if let error = store.endingError(operation) { throw error }
        let (isEmpty, snapshot) = held.state
        guard isEmpty || snapshot != nil else { throw gone(operation) }
        do throws(LarderError) {
            return try body(store, snapshot, view.run)
        } catch {
            // If the store was closed or reopened after the check above, throw that as the reason.
            throw held.isGone ? store.endingError(operation) ?? gone(operation) : error
        }
    }

    private func gone(_ operation: String) -> LarderError {
        LarderError(
            .invalidated,
            "the snapshot has ended: it was closed, it kept space that the disk limit needs, or the database was reopened "
                + "after a failed write",
            operation: operation, database: database.name)
    }

    /// Returns the entry that a key had at the snapshot's instant, if it is fresh.
    /// - Parameter now: the time at which the entry must be fresh, for calls that read several keys; the default is the
    ///   engine's time.
    package func get(_ key: Key, now: Int64? = nil, fillCache: Bool = true) throws(LarderError) -> Record? {
        let rules = database.rules
        let record = try access("get") { (store, snapshot, run) throws(LarderError) -> Record? in
            if let index = run.find(key) { return try self.record(run, index, key) }
            guard let snapshot else { return nil }
            return try database.load(key, from: store, rules.purges, fillCache: fillCache, snapshot: snapshot)
        }
        return (record ?? nil).flatMap {
            rules.freshness($0.header, now: now ?? database.now()) == .fresh ? $0 : nil
        }
    }

    private func record(_ run: OverlaySnapshot, _ index: Int, _ key: Key) throws(LarderError) -> Record? {
        guard let stored = run.withRecord(index, { $0.map { [UInt8]($0) } }) else { return nil }
        do throws(RecordHeader.Defect) {
            return try Record(parsing: stored, database.rules.purges)
        } catch {
            throw Database.defect(error, database: database.name, key: key)
        }
    }

    /// Creates a cursor over the entries at the snapshot's instant; nil if the database had no files.
    package func cursor(_ options: EnumerationOptions = EnumerationOptions()) throws(LarderError) -> EntryCursor? {
        try access("enumerate") { (store, snapshot, run) throws(LarderError) in
            let below = snapshot == nil ? StoreCursor(nil) : try EntryCursor.hold(store, options, snapshot)
            return EntryCursor(
                database, DatabaseView(store: store, below: below, run: run.narrowed(to: options.prefix)), options)
        }
    }

    /// The number of entries at the snapshot's instant.
    package func count(includingExpired: Bool) throws(LarderError) -> Int {
        guard let cursor = try cursor(EnumerationOptions(includeExpired: includingExpired)) else { return 0 }
        var count = 0
        while try cursor.next() { count += 1 }
        return count
    }
}

/// A snapshot of LevelDB that is registered with its store, so that it is released before LevelDB is closed.
///
/// Thread-safe.
final class StoreSnapshot: StoreChild {
    /// LevelDB's snapshot; nil after closing. `isEmpty`: whether there is none because LevelDB had no files. False
    /// after closing.
    private let value: Locked<(isEmpty: Bool, snapshot: LarderLevelDB.Snapshot?)>

    /// - Parameter snapshot: nil if there is no LevelDB yet.
    init(_ snapshot: LarderLevelDB.Snapshot?) { value = Locked((snapshot == nil, snapshot)) }

    var pinsRecords: Bool { snapshot != nil }
    var snapshot: LarderLevelDB.Snapshot? { state.snapshot }
    var isEmpty: Bool { state.isEmpty }
    var isGone: Bool { value.withLock { !$0.isEmpty && $0.snapshot == nil } }
    var state: (isEmpty: Bool, snapshot: LarderLevelDB.Snapshot?) { value.withLock { $0 } }

    /// Releases LevelDB's snapshot after running reads have finished. Holds the lock until then: if another thread
    /// closes the store, that thread waits in this function, and LevelDB is closed only after the release.
    func invalidate() {
        value.withLock { value in
            value.snapshot?.close()
            value = (false, nil)
        }
    }
}

extension Database {
    /// Creates a snapshot of the database that includes all changes applied before this call. May block, because it
    /// waits until these changes are committed.
    package func snapshot() throws(LarderError) -> Snapshot {
        Snapshot(self, try view("snapshot") { (store) throws(LarderError) in try Snapshot.hold(store) })
    }
}
