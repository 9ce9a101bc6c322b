import LarderEngine
import LarderRESP

/// The replies of one connection that wait for commits, in the order of their requests. A reply is *decided* when its
/// commit has succeeded or failed.
///
/// - Positions count the bytes of replies since the connection was opened.
/// - Replies do not overlap: each starts at or after the end of the previous one.
///
/// A value type, guarded by its owner.
struct HeldReplies {
    private struct Entry {
        var start: Int
        var end: Int
        /// `.none` once the reply is decided, and only waits for the previous replies.
        var ticket: CommitTicket
    }

    /// The state of a ticket.
    enum Decision {
        case open
        case committed
        case failed(CommandError)
    }

    private var entries: [Entry] = []
    /// Entries before this index are released.
    private var first = 0

    var isEmpty: Bool { first == entries.count }

    /// Where the first held reply starts: nothing from that position on may be sent. Nil if none is held.
    var firstStart: Int? { isEmpty ? nil : entries[first].start }

    mutating func add(start: Int, end: Int, _ ticket: CommitTicket) {
        entries.append(Entry(start: start, end: end, ticket: ticket))
    }

    /// Releases the decided replies at the front; replies whose commits failed become errors first.
    ///
    /// Replies after an undecided one are not checked, unless a reply fails. In that case, all are checked in one pass
    /// over the bytes, regardless of the number of failures.
    /// - Parameters:
    ///   - sent: the number of bytes taken from the front of `replies` since the connection was opened.
    ///   - decision: returns the state of a ticket.
    mutating func settle(in replies: inout ReplyBuffer, sent: Int, _ decision: (CommitTicket) -> Decision) {
        scan: while first < entries.count {
            let ticket = entries[first].ticket
            if ticket != .none {
                switch decision(ticket) {
                case .open: break scan
                case .committed: break
                case .failed: replaceFailed(in: &replies, sent, decision)
                }
            }
            first += 1
        }
        if isEmpty {
            entries.removeAll(keepingCapacity: entries.capacity <= 4096)
            first = 0
        } else if first > 1024, first > entries.count / 2 {
            entries.removeFirst(first)
            first = 0
        }
    }

    /// Replaces all failed replies with errors, and moves the following bytes.
    private mutating func replaceFailed(
        in replies: inout ReplyBuffer, _ sent: Int, _ decision: (CommitTicket) -> Decision
    ) {
        let old = replies.take()
        var copied = 0
        for index in first..<entries.count {
            let entry = entries[index]
            replies.raw(old[copied..<(entry.start - sent)])
            let start = sent + replies.count
            if entry.ticket != .none, case .failed(let error) = decision(entry.ticket) {
                replies.error(error.bytes)
                entries[index].ticket = .none
            } else {
                replies.raw(old[(entry.start - sent)..<(entry.end - sent)])
            }
            copied = entry.end - sent
            entries[index].start = start
            entries[index].end = sent + replies.count
        }
        replies.raw(old[copied...])
    }
}

extension ReplyBuffer {
    mutating func raw(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { raw($0) } }
}
