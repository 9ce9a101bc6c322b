extension DatabaseName {
    /// The end of the names of databases whose entries are brought elsewhere, such as `0.outbox`.
    package static let outboxEnding = CompanionName.ending

    /// The larder's internal database of its own facts: no possible name of a user's.
    package static let ledger = "LEDGER"

    /// Whether nothing of a database is evicted, whatever the budgets say: its entries are nowhere else yet.
    package static func isKept(_ name: String) -> Bool { CompanionName.isOne(name) || name == DatabaseName.ledger }

    package static func check(_ name: String, operation: String) throws(LarderError) {
        guard isValid(name) else {
            throw LarderError(
                .invalidArgument, "'\(printableKey(name.utf8))' is not a database name: \(rule)", operation: operation)
        }
    }

    /// What waits to be brought elsewhere is no cache's: stored entries would be in its way, and removed ones lost.
    package static func checkIsNotCompanion(_ name: String, operation: String) throws(LarderError) {
        guard CompanionName.isOne(name) else { return }
        throw LarderError(
            .invalidArgument,
            "databases whose names end with '\(CompanionName.ending)' have what waits to be brought elsewhere, and are for "
                + "the larder's own use; choose another name", operation: operation, database: name)
    }
}
