extension DatabaseName {
    /// The suffix of the names of outboxes, such as `0.outbox`.
    package static let outboxEnding = CompanionName.ending

    /// The larder's internal database of its own facts. Users cannot use this name.
    package static let ledger = "LEDGER"

    /// Whether nothing of a database is ever evicted, because its entries exist nowhere else yet.
    package static func isKept(_ name: String) -> Bool { CompanionName.isOne(name) || name == DatabaseName.ledger }

    package static func check(_ name: String, operation: String) throws(LarderError) {
        guard isValid(name) else {
            throw LarderError(
                .invalidArgument, "'\(printableKey(name.utf8))' is not a database name: \(rule)", operation: operation)
        }
    }

    /// Refuses outboxes, which are not caches: stored entries would conflict with pending writes, and removed ones
    /// would be lost.
    package static func checkIsNotCompanion(_ name: String, operation: String) throws(LarderError) {
        guard CompanionName.isOne(name) else { return }
        throw LarderError(
            .invalidArgument,
            "names that end with '\(CompanionName.ending)' are reserved for outboxes: "
                + "choose another name", operation: operation, database: name)
    }
}
