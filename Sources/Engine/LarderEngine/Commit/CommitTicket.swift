/// The commits for which the reply to a command has to wait: those of the command's writes, and those of uncommitted
/// entries that the command has read. A ticket covers all commit units up to `sequence`.
package struct CommitTicket: Hashable, Comparable, Sendable {
    package let sequence: UInt64

    /// - Parameter sequence: the sequence of a ticket that was passed on as a number.
    @inlinable package init(sequence: UInt64) { self.sequence = sequence }

    /// Nothing to wait for.
    @inlinable package static var none: CommitTicket { CommitTicket(sequence: 0) }

    // Inlined, because other modules compare tickets for each command.
    @inlinable package static func == (left: CommitTicket, right: CommitTicket) -> Bool {
        left.sequence == right.sequence
    }

    @inlinable package static func < (left: CommitTicket, right: CommitTicket) -> Bool {
        left.sequence < right.sequence
    }
}
