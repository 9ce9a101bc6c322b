import LevelDB

/// A read-only view of a database as it was at one instant. It freezes data, not time: what expires meanwhile is not
/// served from it.
///
/// Pins the files it reads: close it, or let it go, soon. After a purge or a reopening of the database it answers with
/// an error.
///
/// Thread-safe. The proof for `@unchecked Sendable`: `snapshot` is read with the store's gate held for reading and
/// changed with it held for writing.
package final class Snapshot: StoreChild, @unchecked Sendable {
    package let database: Database
    private let store: EpochStore?
    private var snapshot: LevelDB.Snapshot?
    private var isLost = false

    init(_ database: Database, _ store: EpochStore?) throws(LarderError) {
        self.database = database
        self.store = store
        guard let store else { return }
        snapshot = try store.access("snapshot") { (database) throws(LevelDBError) in try database.snapshot() }
        store.register(self)
    }

    deinit { store?.unregister(ObjectIdentifier(self)) }

    func invalidate() {
        snapshot?.close()
        snapshot = nil
        isLost = true
    }

    /// Lets go of the files. Idempotent; afterwards every read throws.
    package func close() {
        guard let store else { return }
        store.unregister(ObjectIdentifier(self))
        store.closeChild(self)
    }

    private func current(_ operation: String) throws(LarderError) -> (EpochStore, LevelDB.Snapshot)? {
        guard let store else { return nil }
        if let error = store.endingError(operation) { throw error }
        let held = try store.access(operation) { (_) throws(LevelDBError) in snapshot }
        guard let held else {
            throw LarderError(
                .invalidated, "the snapshot was closed, or the database was reopened after a failed write",
                operation: operation, database: database.name)
        }
        return (store, held)
    }

    /// The fresh entry of a key, as it was.
    package func get(_ key: Key, fillCache: Bool = true) throws(LarderError) -> Record? {
        guard let (store, held) = try current("get") else { return nil }
        let record = try database.load(key, from: store, fillCache: fillCache, snapshot: held)
        return record.flatMap { database.rules.freshness($0.header, now: database.now()) == .fresh ? $0 : nil }
    }

    /// A cursor over the entries as they were; nil when the database had no files.
    package func cursor(_ options: EnumerationOptions = EnumerationOptions()) throws(LarderError) -> EntryCursor? {
        guard let (store, held) = try current("enumerate") else { return nil }
        return try EntryCursor(database, store, options, held)
    }

    /// How many entries there were.
    package func count(includingExpired: Bool) throws(LarderError) -> Int {
        guard let cursor = try cursor(EnumerationOptions(includeExpired: includingExpired)) else { return 0 }
        var count = 0
        while try cursor.next() { count += 1 }
        return count
    }
}

extension Database {
    /// A view of everything applied before the call. Waits until that is committed, so it may block.
    package func snapshot() throws(LarderError) -> Snapshot {
        try Snapshot(self, try settledStore("snapshot"))
    }
}
