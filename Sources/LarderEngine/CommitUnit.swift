/// One change inside a commit unit: an absolute result, never "add one".
package enum CommitOperation: Sendable {
    /// Store a record, and its key in the expiry index.
    case put(Key, Record, index: [UInt8]?)
    case remove(Key)
    /// Remove a record of the expiry index.
    case dropIndex([UInt8])
    /// Store a record of the expiry index for an entry that is there.
    case addIndex([UInt8])

    var byteCount: Int {
        switch self {
        case .put(let key, let record, let index): 2 * key.stored.count + record.stored.count + (index?.count ?? 0)
        case .remove(let key): key.stored.count
        case .dropIndex(let key), .addIndex(let key): key.count
        }
    }
}

/// What becomes durable at once: a single write, a batch, a change of a whole database.
struct CommitUnit {
    enum Action {
        /// Changes of entries, all or none. Boxed: a unit is handed on several times, and its three references with it.
        indirect case write(Database, EpochStore, [CommitOperation])
        /// A change of a whole database: `perform` makes it durable, `committed` runs afterwards.
        case control(perform: () throws(LarderError) -> Void, committed: () -> Void)
    }

    var sequence: UInt64 = 0
    let action: Action
    let durability: Durability
    let byteCount: Int

    init(_ action: Action, durability: Durability) {
        self.action = action
        self.durability = durability
        byteCount =
            switch action {
            case .write(_, _, let operations): operations.reduce(64) { $0 + $1.byteCount }
            case .control: 64
            }
    }
}

/// What an answer has to wait for: everything it wrote or read that is not yet committed.
package struct CommitTicket: Hashable, Comparable, Sendable {
    package let sequence: UInt64

    /// Nothing to wait for.
    package static let none = CommitTicket(sequence: 0)

    package static func < (left: CommitTicket, right: CommitTicket) -> Bool { left.sequence < right.sequence }
}
