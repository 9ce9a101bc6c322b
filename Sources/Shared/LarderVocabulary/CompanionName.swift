/// The names of the databases with what was written and waits to be brought elsewhere, such as to an origin. They belong to
/// their larder alone: an entry that is copied into one would be brought from there, and one that is removed would be lost.
package enum CompanionName {
    /// The end of their names, such as that of `0.outbox`.
    package static let ending = ".outbox"

    /// Whether a database has such a name.
    package static func isOne(_ name: String) -> Bool { name.hasSuffix(ending) }

    /// The database with the positions of followers.
    package static let positions = "_replication"

    /// Whether a database is kept for the larder's own use.
    package static func isReserved(_ name: String) -> Bool { isOne(name) || name == positions }

    /// Why nothing comes into one, or is followed.
    package static func refusal(_ name: String) -> String {
        "the database '\(name)' has what waits to be brought to an origin by its own larder, and is not copied"
    }
}
