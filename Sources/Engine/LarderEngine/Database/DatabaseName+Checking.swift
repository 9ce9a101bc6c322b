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
