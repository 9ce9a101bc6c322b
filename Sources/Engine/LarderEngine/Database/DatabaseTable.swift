import LarderPlatform

/// The databases of a larder by name.
///
/// Thread-safe. Lock order: `state`, then the locks of shards.
final class DatabaseTable: Sendable {
    private struct State {
        var byName: [String: Database] = [:]
        var nextNumber = 0
        /// The number of databases at which unused databases are dropped.
        var pruneAt = DatabaseTable.unusedMax
        var isClosed = false

        var all: [Database] { byName.values.sorted { $0.number < $1.number } }
    }

    private let state = Locked(State())
    private static let unusedMax = 128
    /// Held while a database's files are created, to enforce the limit on the number of databases. Taken after a
    /// database's `openLock`, before any shard's lock.
    let creation = Lock()

    /// All databases, in the order in which their locks must be taken.
    var all: [Database] { state.withLock { $0.all } }

    /// Runs `body` on all databases in the order in which their locks must be taken. No database can be added during
    /// the call.
    func withAll(_ body: ([Database]) -> Void) { state.withLock { body($0.all) } }

    func find(_ name: String) -> Database? { state.withLock { $0.byName[name] } }

    /// - Returns: nil if the table was closed.
    func findOrAdd(_ name: String, make: (Int) -> Database) -> Database? {
        var dropped: [Database] = []
        // Release the dropped databases outside the lock, because this may deallocate them.
        defer { withExtendedLifetime(dropped) {} }
        return state.withLock { state in
            if state.isClosed { return nil }
            if let database = state.byName[name] { return database }
            if state.byName.count >= state.pruneAt { dropped = Self.prune(&state) }
            let database = make(state.nextNumber)
            state.nextNumber += 1
            state.byName[name] = database
            return database
        }
    }

    /// Drops databases that have no files and are not referenced elsewhere. A later use of such a name creates a new
    /// object. So naming a million absent databases does not fill the memory.
    private static func prune(_ state: inout State) -> [Database] {
        var unused: [String] = []
        var index = state.byName.startIndex
        while index != state.byName.endIndex {
            let name = state.byName.keys[index]
            if isKnownUniquelyReferenced(&state.byName.values[index]), state.byName.values[index].isAbsent {
                unused.append(name)
            }
            state.byName.formIndex(after: &index)
        }
        let dropped = unused.compactMap { state.byName.removeValue(forKey: $0) }
        state.pruneAt = 2 * state.byName.count + unusedMax
        return dropped
    }

    /// Removes a database, unless another database has the name by now.
    func remove(_ database: Database) {
        state.withLock { if $0.byName[database.name] === database { $0.byName[database.name] = nil } }
    }

    /// Closes the table: no more databases can be added.
    func close() { state.withLock { $0.isClosed = true } }

    /// Releases all databases, because they refer to the table.
    func removeAll() {
        // Release the databases outside the lock, because this may deallocate them.
        let all = state.withLock { exchange(&$0.byName, with: [:]) }
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
