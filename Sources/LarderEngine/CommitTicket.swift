/// What an answer has to wait for: everything it wrote or read that is not yet committed.
package struct CommitTicket: Hashable, Comparable, Sendable {
    package let sequence: UInt64

    /// Nothing to wait for.
    package static let none = CommitTicket(sequence: 0)

    package static func < (left: CommitTicket, right: CommitTicket) -> Bool { left.sequence < right.sequence }
}

/// One change inside a commit unit: an absolute result, never "add one".
package enum CommitOperation: Sendable {
    case put(Key, Record)
    case remove(Key)

    var key: Key {
        switch self {
        case .put(let key, _), .remove(let key): key
        }
    }
}
