/// The names of databases that Larder uses itself, mainly outboxes. An outbox contains writes that wait for delivery,
/// for example to an origin. Do not copy an outbox to another larder, which would deliver the writes too. Do not remove
/// its entries, because the writes would be lost.
package enum CompanionName {
    /// The suffix of an outbox's name: the outbox of the database `0` is `0.outbox`.
    package static let ending = ".outbox"

    /// Whether the database with this name is an outbox.
    package static func isOne(_ name: String) -> Bool { name.hasSuffix(ending) }

    /// The database in which replication stores the positions that followers have reached.
    package static let positions = "_replication"

    /// Whether Larder uses the database with this name itself, so that users cannot write to it.
    package static func isReserved(_ name: String) -> Bool { isOne(name) || name == positions }

    /// Returns the error message for an attempt to write to an outbox or to replicate it.
    package static func refusal(_ name: String) -> String {
        "the database '\(name)' is an outbox and is not copied"
    }
}
