/// A range of keys whose newest state may be lost.
struct Gap {
    /// The lost versions, to compare the others with.
    enum Hidden {
        /// The lost versions have at most this sequence.
        case sequences(upTo: UInt64)
        /// The lost versions were in this table. `level` is nil if it is not in a manifest.
        case table(number: UInt64, level: Int?)
    }

    let range: KeyRange
    let hidden: Hidden
    /// The lost versions of the range's first key have at most this sequence.
    var lowerSequence: UInt64?

    /// Whether a version from `origin` is newer than all lost ones of its key.
    func isOlder(than sequence: UInt64, from origin: Origin, isLowerKey: Bool) -> Bool {
        if isLowerKey, let lowerSequence, sequence > lowerSequence { return true }
        switch (hidden, origin) {
        case (.sequences(let last), _): return sequence > last
        // Logs that are read are newer than all tables in the manifest. Other tables may have been made from a log.
        case (.table(_, .some), .log): return true
        case (.table(let number, nil), .log(let log)): return log > number
        case (.table(let number, let level?), .table(let otherNumber, let otherLevel?)):
            // Level 0 is in the order of time; below it, each level is newer than the next.
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
