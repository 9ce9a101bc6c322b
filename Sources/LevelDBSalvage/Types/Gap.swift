/// Keys of which a newer state than all that is read may be lost.
struct Gap {
    /// Who can be trusted in spite of it.
    enum Hidden {
        /// What is lost has at most this sequence.
        case sequences(upTo: UInt64)
        /// What is lost stood in this table. `level` is nil if no manifest tells.
        case table(number: UInt64, level: Int?)
    }

    let range: KeyRange
    let hidden: Hidden
    /// Of the first key of the range nothing newer than this is lost.
    var lowerSequence: UInt64?

    /// Whether a version from `origin` is newer than all that is lost of its key.
    func isOlder(than sequence: UInt64, from origin: Origin, isLowerKey: Bool) -> Bool {
        if isLowerKey, let lowerSequence, sequence > lowerSequence { return true }
        switch (hidden, origin) {
        case (.sequences(let last), _): return sequence > last
        // Logs that are read are newer than all tables that the manifest names. Others that are there may have been
        // made of a log.
        case (.table(_, .some), .log): return true
        case (.table(let number, nil), .log(let log)): return log > number
        case (.table(let number, let level?), .table(let otherNumber, let otherLevel?)):
            // Level 0 is in the order of time; below, a level is newer than those beneath it.
            return otherLevel < level || level == 0 && otherLevel == 0 && otherNumber > number
        case (.table, .table): return false
        }
    }
}

/// Where a version of a key was read.
enum Origin {
    case log(number: UInt64)
    case table(number: UInt64, level: Int?)
}
