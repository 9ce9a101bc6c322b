import LarderEngine
import LarderRESP

/// Owns the replies of one connection until they are sent: their bytes, and the commits that they wait for.
///
/// Positions count the bytes of replies since the connection was opened. Used by the session's owner only.
final class ReplyQueue {
    /// A pointer, because each access to a class's stored property is checked for exclusivity at run time.
    let memory = UnsafeMutablePointer<ReplyBuffer>.allocate(capacity: 1)
    private let pipeline: CommitPipeline
    private var held = HeldReplies()
    /// The number of reply bytes taken for sending since the connection was opened.
    private(set) var sentBytes = 0
    /// Whether the current command's reply is sent regardless of CLIENT REPLY. As in Redis, this is the case for
    /// replies of SUBSCRIBE and similar commands, which are messages.
    var keepsReply = false
    /// The last commit that a reply of the connection waited for.
    private(set) var lastTicket = CommitTicket.none
    /// Whether there may be uncommitted writes of commands without replies.
    var hasSilentWrites = false

    init(_ pipeline: CommitPipeline) {
        self.pipeline = pipeline
        memory.initialize(to: ReplyBuffer())
    }

    deinit {
        memory.deinitialize(count: 1)
        memory.deallocate()
    }

    /// The start of the next reply.
    var position: Int { sentBytes + memory.pointee.count }

    /// Whether replies wait for a commit.
    var hasHeld: Bool { !held.isEmpty }

    /// The number of bytes that may be sent now: all before the first held reply.
    var sendableCount: Int { held.firstStart.map { $0 - sentBytes } ?? memory.pointee.count }

    /// Removes sent bytes from the front.
    func didSend(_ count: Int) {
        memory.pointee.removeFirst(count)
        sentBytes += count
    }

    /// Holds the reply from `start` to the current end until its commit has succeeded or failed.
    func hold(from start: Int, _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        // If the commit ends after this check, the committing thread wakes the loop, which then finds the held reply.
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        held.add(start: start, end: position, ticket)
        if pipeline.isDecided(ticket) { settle() }
    }

    /// Holds replies until their commit has succeeded or failed, so that each can be replaced by an error.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        for region in regions { held.add(start: region.lowerBound, end: region.upperBound, ticket) }
        if pipeline.isDecided(ticket) { settle() }
    }

    /// Records the write of a command without a reply: it must still be committed.
    func noteSilentWrites(_ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if ticket != .none, !pipeline.isDecided(ticket) { hasSilentWrites = true }
    }

    /// Checks which commits have succeeded or failed. Their replies can be sent, or are replaced by errors.
    func settle() {
        guard !held.isEmpty else { return }
        held.settle(in: &memory.pointee, sent: sentBytes) { ticket in
            guard pipeline.isDecided(ticket) else { return .open }
            guard let failure = pipeline.failure(of: ticket) else { return .committed }
            return .failed(CommandError(failure))
        }
    }

    /// Discards the reply that starts at `start`, except for bytes already sent, such as the header of a long
    /// transaction.
    func discard(from start: Int) { memory.pointee.removeLast(max(0, position - max(start, sentBytes))) }
}
