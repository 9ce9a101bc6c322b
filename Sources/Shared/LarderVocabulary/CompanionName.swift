/// The names of outboxes: databases with writes that wait for delivery, such as to an origin. They belong to their
/// larder alone. An entry copied into an outbox would be delivered from there, and a pending write removed from it
/// would be lost.
package enum CompanionName {
    /// The suffix of their names, such as in `0.outbox`.
    package static let ending = ".outbox"

    /// Whether a name is that of an outbox.
    package static func isOne(_ name: String) -> Bool { name.hasSuffix(ending) }

    /// The database with the positions of followers.
    package static let positions = "_replication"

    /// Whether a database is reserved for the larder's own use.
    package static func isReserved(_ name: String) -> Bool { isOne(name) || name == positions }

    /// Why nothing can be written to an outbox, and why it is not replicated.
    package static func refusal(_ name: String) -> String {
        "the database '\(name)' is an outbox and is not copied"
    }
}
