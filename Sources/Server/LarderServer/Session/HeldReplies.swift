import LarderEngine
import LarderPlatform
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

    private var entries = Deque<Entry>()

    var isEmpty: Bool { entries.isEmpty }

    /// The position at which the first held reply starts; nil if none is held. Only the bytes before it may be sent.
    var firstStart: Int? { entries.first?.start }

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
        while let ticket = entries.first?.ticket {
            if ticket != .none {
                switch decision(ticket) {
                case .open: return
                case .committed: break
                case .failed: replaceFailed(in: &replies, sent, decision)
                }
            }
            _ = entries.popFirst()
        }
    }

    /// Replaces all failed replies with errors. This moves the replies after them.
    private mutating func replaceFailed(
        in replies: inout ReplyBuffer, _ sent: Int, _ decision: (CommitTicket) -> Decision
    ) {
        let old = replies.take()
        var copied = 0
        for var entry in entries.takeAll() {
            replies.raw(old[copied..<(entry.start - sent)])
            let start = sent + replies.count
            if entry.ticket != .none, case .failed(let error) = decision(entry.ticket) {
                replies.error(error.bytes)
                entry.ticket = .none
            } else {
                replies.raw(old[(entry.start - sent)..<(entry.end - sent)])
            }
            copied = entry.end - sent
            (entry.start, entry.end) = (start, sent + replies.count)
            entries.append(entry)
        }
        replies.raw(old[copied...])
    }
}

extension ReplyBuffer {
    mutating func raw(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { raw($0) } }
}
