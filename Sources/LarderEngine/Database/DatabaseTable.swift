import Platform

/// The databases of a larder by name.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the table is read and written with the lock held. The lock is
/// never taken by a thread that holds a shard's lock, so that shards may be locked under it.
final class DatabaseTable: DatabaseRoster, @unchecked Sendable {
    private let lock = Lock()
    private var byName: [String: Database] = [:]
    private var nextNumber = 0
    /// How many databases there may be before those that nobody uses are forgotten.
    private var pruneAt = DatabaseTable.unusedMax
    private static let unusedMax = 128
    private var isClosed = false
    let creation = Lock()

    var all: [Database] { lock.withLock { byName.values.sorted { $0.number < $1.number } } }

    /// Runs `body` on all databases, in the order in which their locks are to be taken, while none can be added.
    func withAll<Result>(_ body: ([Database]) -> Result) -> Result {
        lock.withLock { body(byName.values.sorted { $0.number < $1.number }) }
    }

    func find(_ name: String) -> Database? { lock.withLock { byName[name] } }

    /// - Returns: nil when the table was closed.
    func findOrAdd(_ name: String, make: (Int) -> Database) -> Database? {
        var dropped: [Database] = []
        // Out of the lock, because the last reference to each goes with it.
        defer { withExtendedLifetime(dropped) {} }
        return lock.withLock {
            if isClosed { return nil }
            if let database = byName[name] { return database }
            if byName.count >= pruneAt { dropped = prune() }
            let database = make(nextNumber)
            nextNumber += 1
            byName[name] = database
            return database
        }
    }

    /// Forgets the databases without files that nobody else refers to: whoever names one again gets a new object. Naming
    /// a million databases that do not exist fills no memory.
    private func prune() -> [Database] {
        var unused: [String] = []
        var index = byName.startIndex
        while index != byName.endIndex {
            let name = byName.keys[index]
            if isKnownUniquelyReferenced(&byName.values[index]), byName.values[index].isAbsent { unused.append(name) }
            byName.formIndex(after: &index)
        }
        let dropped = unused.compactMap { byName.removeValue(forKey: $0) }
        pruneAt = 2 * byName.count + Self.unusedMax
        return dropped
    }

    func remove(_ database: Database) {
        lock.withLock { if byName[database.name] === database { byName[database.name] = nil } }
    }

    /// Takes no more databases.
    func close() { lock.withLock { isClosed = true } }

    /// Lets go of all databases, which hold on to the table.
    func removeAll() {
        // Out of the lock, because the last reference to a database may go with it.
        let all = lock.withLock {
            defer { byName = [:] }
            return byName
        }
        withExtendedLifetime(all) {}
    }
}
