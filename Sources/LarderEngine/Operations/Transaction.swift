/// What a transaction does in one database.
package struct TransactionPart {
    package let database: Database
    /// All different. The first ``loadedCount`` are read, the others are overwritten whatever is there.
    package let keys: [Key]
    package let loadedCount: Int
    package let watches: [KeyWatch]

    package init(database: Database, keys: [Key], loadedCount: Int, watches: [KeyWatch]) {
        precondition(loadedCount >= 0 && loadedCount <= keys.count, "a transaction cannot read more keys than it has")
        self.database = database
        self.keys = keys
        self.loadedCount = loadedCount
        self.watches = watches
    }
}

/// The entries of a transaction, in all databases it touches, at one instant.
///
/// Valid only inside the closure of ``Engine/transact(_:now:bytesMax:_:_:)``.
package struct TransactionUpdate {
    package let parts: [TransactionPart]
    private var updates: [Update]
    /// Commands so far, each counting as one for each of its databases.
    private var steps = 0

    init(_ parts: [TransactionPart], _ updates: [Update]) {
        self.parts = parts
        self.updates = updates
    }

    /// Whether nothing happened to the watched keys. Which are among the keys that are read.
    package var watchesHold: Bool {
        for (part, update) in zip(parts, updates) where !part.watches.isEmpty {
            var positions: [Key: Int] = [:]
            for (position, key) in part.keys.enumerated() { positions[key] = position }
            for watch in part.watches {
                let isFresh = positions[watch.key].map { update.current($0) != nil } ?? false
                if !watch.holds(isFresh: isFresh) { return false }
            }
        }
        return true
    }

    /// By which the entries of a part are judged.
    package func rules(part: Int) -> FreshnessRules { updates[part].rules }

    /// The fresh entry of a key, as left by what the transaction did so far.
    package func current(part: Int, position: Int) -> Record? { updates[part].current(position) }

    /// Runs one command on some of a part's keys. What `body` throws undoes what that command did, and nothing else.
    package mutating func update(
        part: Int, positions: [Int], _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        begin(part)
        try updates[part].narrowed(to: positions, body)
    }

    private mutating func begin(_ part: Int) {
        steps += 1
        updates[part].step = steps
    }

    /// As ``update(part:positions:_:)`` for keys of two different parts.
    package mutating func update(
        part: Int, positions: [Int], and other: Int, _ otherPositions: [Int],
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        precondition(part != other, "two parts are needed")
        // What leaves one database is told of before it comes into the other.
        begin(part)
        begin(other)
        // Taken out, so that both can be changed at once.
        var otherUpdate = updates[other]
        defer { updates[other] = otherUpdate }
        try updates[part].narrowed(to: positions) { (update) throws(LarderError) in
            try otherUpdate.narrowed(to: otherPositions) { (narrowed) throws(LarderError) in
                try body(&update, &narrowed)
            }
        }
    }

    /// What is to be done, by part.
    var operations: [[CommitOperation]] { updates.map(\.operations) }
}

/// How a transaction ended.
package enum TransactionEnd {
    /// What was done is applied, and is one commit unit.
    case applied(CommitTicket)
    /// The body said that nothing is to be done.
    case dropped
    /// The disk would have had to be asked and may not; the body was not called.
    case cold
}
