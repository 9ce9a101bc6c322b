/// The rule for database names: `[a-z0-9_][a-z0-9._-]{0,63}`. If a name has only digits, it must be `0` to `15`.
///
/// Capital letters are not allowed, because some file systems ignore case. Larder's own files have names that begin
/// with a capital letter or a dot, so these names never conflict with names of databases.
package enum DatabaseName {
    /// The name of the default database.
    package static let standard = "0"

    package static let rule =
        "a name has 1 to 64 characters of a-z, 0-9, '.', '_' and '-', begins with a letter, a digit or '_', "
        + "and is 0 to 15 if it is a number"

    package static func isValid(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        guard let first = bytes.first, bytes.count <= 64, isLetterDigitUnderscore(first) else { return false }
        guard bytes.allSatisfy({ isLetterDigitUnderscore($0) || $0 == 0x2E || $0 == 0x2D }) else { return false }
        guard bytes.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return true }
        return bytes.count <= 2 && (bytes.count == 1 || first != 0x30) && (Int(name) ?? 16) <= 15
    }

    private static func isLetterDigitUnderscore(_ byte: UInt8) -> Bool {
        (byte >= 0x61 && byte <= 0x7A) || (byte >= 0x30 && byte <= 0x39) || byte == 0x5F
    }
}

package enum IndexRules {
    /// The maximum number of indexes of a database.
    package static let countMax = 32

    /// The rule for names: 1 to 64 letters, digits, `.`, `_` and `-`.
    package static func isValid(name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                default: false
                }
            }
    }
}

/// The names of databases that Larder uses itself, mainly outboxes. An outbox contains writes that wait for delivery,
/// for example to an origin. Do not copy an outbox to another larder: that larder would deliver the writes too. Do not
/// remove its entries, because the writes would be lost.
package enum CompanionName {
    /// The suffix of an outbox's name: the outbox of the database `0` is `0.outbox`.
    package static let ending = ".outbox"

    /// Whether the database with this name is an outbox.
    package static func isOne(_ name: String) -> Bool { name.hasSuffix(ending) }

    /// The database in which replication stores the positions that followers have reached.
    package static let positions = "_replication"

    /// Whether Larder uses the database with this name itself, so that users cannot write to it.
    package static func isReserved(_ name: String) -> Bool { isOne(name) || name == positions }

    /// Returns the error message for an attempt to replicate an outbox, or to import entries into it.
    package static func refusal(_ name: String) -> String { "the database '\(name)' is an outbox and is not copied" }
}
