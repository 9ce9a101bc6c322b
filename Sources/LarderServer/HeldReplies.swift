import LarderEngine
import RESP

/// The replies of one connection that wait for commits, in the order of their requests.
///
/// - Positions count the bytes of replies from the connection's beginning.
/// - Replies lie apart: each begins where the one before it ends, or later.
///
/// A value; its owner guards it.
struct HeldReplies {
    private struct Entry {
        var start: Int
        var end: Int
        let ticket: CommitTicket
    }

    private var entries: [Entry] = []
    /// Entries before this one are released.
    private var first = 0

    var isEmpty: Bool { first == entries.count }

    /// Where the first held reply begins: nothing from there on may be sent. Nil when none is held.
    var firstStart: Int? { isEmpty ? nil : entries[first].start }

    mutating func add(start: Int, end: Int, _ ticket: CommitTicket) {
        entries.append(Entry(start: start, end: end, ticket: ticket))
    }

    /// Everything up to `sequence` is decided: releases the replies at the front that wait for no more than that.
    mutating func release(upTo sequence: UInt64) {
        while first < entries.count, entries[first].ticket.sequence <= sequence { first += 1 }
        if isEmpty {
            entries.removeAll(keepingCapacity: entries.capacity <= 4096)
            first = 0
        } else if first > 1024, first > entries.count / 2 {
            entries.removeFirst(first)
            first = 0
        }
    }

    /// Puts an error in the place of every held reply that depends on one of `sequences`, and moves what follows. One
    /// pass over the bytes, however many replies fail.
    /// - Parameter sent: bytes that were taken from the front of `replies` since the connection's beginning.
    mutating func fail(
        _ sequences: ClosedRange<UInt64>, _ error: CommandError, in replies: inout ReplyBuffer, sent: Int
    ) {
        guard entries[first...].contains(where: { sequences.contains($0.ticket.sequence) }) else { return }
        let old = replies.take()
        var copied = 0
        for index in first..<entries.count {
            let entry = entries[index]
            replies.raw(old[copied..<(entry.start - sent)])
            let start = sent + replies.count
            if sequences.contains(entry.ticket.sequence) {
                replies.error(error.bytes)
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
