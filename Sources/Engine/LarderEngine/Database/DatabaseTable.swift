import LarderPlatform

/// The databases of a larder by name.
///
/// Thread-safe. `@unchecked Sendable`: the table is guarded by `lock`. Lock order: `lock`, then the locks of shards.
final class DatabaseTable: @unchecked Sendable {
    private let lock = Lock()
    private var byName: [String: Database] = [:]
    private var nextNumber = 0
    /// The number of databases at which unused databases are dropped.
    private var pruneAt = DatabaseTable.unusedMax
    private static let unusedMax = 128
    private var isClosed = false
    /// Held while a database's files are created, to enforce the limit on the number of databases. Taken after a
    /// database's `openLock`, before any shard's lock.
    let creation = Lock()

    /// All databases, in the order in which their locks must be taken.
    var all: [Database] { lock.withLock { byName.values.sorted { $0.number < $1.number } } }

    /// Runs `body` on all databases in the order in which their locks must be taken. No database can be added during
    /// the call.
    func withAll<Result>(_ body: ([Database]) -> Result) -> Result {
        lock.withLock { body(byName.values.sorted { $0.number < $1.number }) }
    }

    func find(_ name: String) -> Database? { lock.withLock { byName[name] } }

    /// - Returns: nil if the table was closed.
    func findOrAdd(_ name: String, make: (Int) -> Database) -> Database? {
        var dropped: [Database] = []
        // Release the dropped databases outside the lock, because this may deallocate them.
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

    /// Drops databases that have no files and are not referenced elsewhere. A later use of such a name creates a new
    /// object. So naming a million absent databases does not fill the memory.
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

    /// Removes a database, unless another database has the name by now.
    func remove(_ database: Database) {
        lock.withLock { if byName[database.name] === database { byName[database.name] = nil } }
    }

    /// Closes the table: no more databases can be added.
    func close() { lock.withLock { isClosed = true } }

    /// Releases all databases, because they refer to the table.
    func removeAll() {
        // Release the databases outside the lock, because this may deallocate them.
        let all = lock.withLock {
            defer { byName = [:] }
            return byName
        }
        withExtendedLifetime(all) {}
    }
}

extension DatabaseName {
    /// The suffix of the names of outboxes, such as `0.outbox`.
    package static let outboxEnding = CompanionName.ending

    /// The internal database in which a larder stores its own facts. Users cannot use this name.
    package static let ledger = "LEDGER"

    /// Whether the entries of a database are never evicted, because they exist nowhere else.
    package static func isKept(_ name: String) -> Bool { CompanionName.isOne(name) || name == DatabaseName.ledger }

    package static func check(_ name: String, operation: String) throws(LarderError) {
        guard isValid(name) else {
            throw LarderError(
                .invalidArgument, "'\(printableKey(name.utf8))' is not a database name: \(rule)", operation: operation)
        }
    }

    /// Throws for the name of an outbox (a queue of writes to an origin). Outboxes are not caches: entries stored by
    /// users would conflict with pending writes, and removing entries would lose pending writes.
    package static func checkIsNotCompanion(_ name: String, operation: String) throws(LarderError) {
        guard CompanionName.isOne(name) else { return }
        throw LarderError(
            .invalidArgument,
            "names that end with '\(CompanionName.ending)' are reserved for outboxes: "
                + "choose another name", operation: operation, database: name)
    }
}
