import LarderEngine
import LarderRESP

/// The replies of one connection that wait for commits, in the order of their requests. A reply is *decided* when its
/// commit has succeeded or failed.
///
/// - Positions count the bytes of all replies since the connection was opened.
/// - Replies do not overlap: each starts at or after the end of the previous one.
///
/// A value type, used only by its owner.
struct HeldReplies {
    private struct Entry {
        var start: Int
        var end: Int
        /// The commit that the reply waits for; `.none` if the commit has failed, and the reply is already replaced by
        /// an error.
        var ticket: CommitTicket
    }

    /// The state of the commit that a ticket identifies.
    enum Decision {
        case open
        case committed
        case failed(CommandError)
    }

    private var entries: [Entry] = []
    /// The index of the first reply that has not been released. The entries before this index will be removed.
    private var first = 0

    var isEmpty: Bool { first == entries.count }

    /// The position at which the first held reply starts; nil if none is held. Only the bytes before it may be sent.
    var firstStart: Int? { isEmpty ? nil : entries[first].start }

    mutating func add(start: Int, end: Int, _ ticket: CommitTicket) {
        entries.append(Entry(start: start, end: end, ticket: ticket))
    }

    /// Releases the decided replies at the front. Replies whose commits have failed are replaced by errors.
    ///
    /// Stops at the first undecided reply. But if a reply at the front has failed, replaces all failed replies, also
    /// those after an undecided reply. One pass over the bytes replaces all of them.
    /// - Parameters:
    ///   - sent: the number of bytes that were removed from the front of `replies` since the connection was opened.
    ///   - decision: returns the state of a commit.
    mutating func releaseDecided(in replies: inout ReplyBuffer, sent: Int, _ decision: (CommitTicket) -> Decision) {
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

    /// Replaces all failed replies with errors. This moves the replies after them.
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
