/// The commits that a reply has to wait for: all its reads and writes that are not yet committed.
package struct CommitTicket: Hashable, Comparable, Sendable {
    package let sequence: UInt64

    /// - Parameter sequence: of a ticket that was passed as a number.
    package init(sequence: UInt64) { self.sequence = sequence }

    /// Nothing to wait for.
    package static let none = CommitTicket(sequence: 0)

    package static func < (left: CommitTicket, right: CommitTicket) -> Bool { left.sequence < right.sequence }
}
