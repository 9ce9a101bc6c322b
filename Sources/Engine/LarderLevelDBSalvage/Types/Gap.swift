/// A range of keys whose newest state may be lost.
struct Gap {
    /// What is known about the lost versions, to determine whether another version is newer.
    enum Hidden {
        /// The lost versions have at most this sequence.
        case sequences(upTo: UInt64)
        /// The lost versions were in this table. `level` is nil if the table is not in a manifest.
        case table(number: UInt64, level: Int?)
    }

    let range: KeyRange
    let hidden: Hidden
    /// The maximum sequence that lost versions of the range's first key can have; nil if unknown.
    var lowerSequence: UInt64?

    /// Whether the lost versions of a key are all older than its version with this sequence from `origin`.
    func isOlder(than sequence: UInt64, from origin: Origin, isLowerKey: Bool) -> Bool {
        if isLowerKey, let lowerSequence, sequence > lowerSequence { return true }
        switch (hidden, origin) {
        case (.sequences(let last), _): return sequence > last
        // A version in a log is newer than all versions in the manifest's tables. But a table that is not in the
        // manifest may have been made from a log; the log is then newer only if its number is higher.
        case (.table(_, .some), .log): return true
        case (.table(let number, nil), .log(let log)): return log > number
        case (.table(let number, let level?), .table(let otherNumber, let otherLevel?)):
            // In level 0, tables with higher numbers are newer. Otherwise, the table in the level with the lower number
            // is newer.
            return otherLevel < level || level == 0 && otherLevel == 0 && otherNumber > number
        case (.table, .table): return false
        }
    }
}

/// The source of a version.
enum Origin {
    case log(number: UInt64)
    case table(number: UInt64, level: Int?)
}
