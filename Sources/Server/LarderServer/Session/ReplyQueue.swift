import LarderEngine
import LarderRESP

/// Owns the replies of one connection from the moment they are written until they are taken to be sent: their bytes,
/// and which of them wait for a commit.
///
/// Positions count the bytes of replies since the connection's beginning. Used by the owner of its session only.
final class ReplyQueue {
    /// Through a pointer, because each access to a stored property of a class is checked for exclusiveness at run time.
    let memory = UnsafeMutablePointer<ReplyBuffer>.allocate(capacity: 1)
    private let pipeline: CommitPipeline
    private var held = HeldReplies()
    /// How many bytes of replies were taken to be sent, since the beginning.
    private(set) var sentBytes = 0
    /// Whether the current command's reply is sent whatever CLIENT REPLY says. Redis does so for the replies of
    /// subscribing, which are messages themselves.
    var keepsReply = false
    /// The last commit that a reply of the connection has waited for.
    private(set) var lastTicket = CommitTicket.none
    /// Whether there may be uncommitted writes for which no reply waits.
    var hasSilentWrites = false

    init(_ pipeline: CommitPipeline) {
        self.pipeline = pipeline
        memory.initialize(to: ReplyBuffer())
    }

    deinit {
        memory.deinitialize(count: 1)
        memory.deallocate()
    }

    /// Where the next reply begins.
    var position: Int { sentBytes + memory.pointee.count }

    /// Whether replies wait for a commit.
    var hasHeld: Bool { !held.isEmpty }

    /// How many bytes may be sent now: everything before the first held reply.
    var sendableCount: Int { held.firstStart.map { $0 - sentBytes } ?? memory.pointee.count }

    /// Forgets sent bytes at the front.
    func didSend(_ count: Int) {
        memory.pointee.removeFirst(count)
        sentBytes += count
    }

    /// Holds the reply that begins at `start` and ends where the next one begins, until its ticket is decided.
    func hold(from start: Int, _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        // The thread that decides later wakes the loop, which finds the reply held.
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        held.add(start: start, end: position, ticket)
        if pipeline.isDecided(ticket) { settle() }
    }

    /// Holds replies until their ticket is decided, so that each can become an error of its own.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        for region in regions { held.add(start: region.lowerBound, end: region.upperBound, ticket) }
        if pipeline.isDecided(ticket) { settle() }
    }

    /// Notes the write of a command without a reply: it must be committed nevertheless.
    func noteSilentWrites(_ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if ticket != .none, !pipeline.isDecided(ticket) { hasSilentWrites = true }
    }

    /// Checks which commits are decided: the replies that waited for them can be sent then, or become errors.
    func settle() {
        guard !held.isEmpty else { return }
        held.settle(in: &memory.pointee, sent: sentBytes) { ticket in
            guard pipeline.isDecided(ticket) else { return .open }
            guard let failure = pipeline.failure(of: ticket) else { return .committed }
            return .failed(CommandError(failure))
        }
    }

    /// Discards the reply that begins at `start`, except for the part that was sent: the header of a long transaction.
    func discard(from start: Int) { memory.pointee.removeLast(max(0, position - max(start, sentBytes))) }
}
