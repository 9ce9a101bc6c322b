import LarderEngine
import LarderRESP

/// The replies of one connection that are not sent yet: their bytes, and the commits that some of them wait for.
///
/// Positions count the bytes of all replies since the connection was opened. Used only by the session's owner.
final class ReplyQueue {
    /// A pointer, because each access to a class's stored property is checked for exclusivity at run time.
    let memory = UnsafeMutablePointer<ReplyBuffer>.allocate(capacity: 1)
    private let pipeline: CommitPipeline
    private var held = HeldReplies()
    /// The number of bytes that were sent since the connection was opened.
    private(set) var sentBytes = 0
    /// Whether the current command's reply is sent even if CLIENT REPLY has switched replies off. As in Redis, this
    /// applies to SUBSCRIBE and similar commands, because their replies are messages.
    var keepsReply = false
    /// The latest commit that any reply of the connection has waited for.
    private(set) var lastTicket = CommitTicket.none
    /// Whether commands that send no reply have made writes that may not be committed yet.
    var hasSilentWrites = false

    init(_ pipeline: CommitPipeline) {
        self.pipeline = pipeline
        memory.initialize(to: ReplyBuffer())
    }

    deinit {
        memory.deinitialize(count: 1)
        memory.deallocate()
    }

    /// The position at which the next reply starts.
    var position: Int { sentBytes + memory.pointee.count }

    /// Whether any reply waits for a commit.
    var hasHeld: Bool { !held.isEmpty }

    /// The number of bytes that may be sent now: everything before the first reply that waits for a commit.
    var sendableCount: Int { held.firstStart.map { $0 - sentBytes } ?? memory.pointee.count }

    /// Removes the bytes that were sent.
    func didSend(_ count: Int) {
        memory.pointee.removeFirst(count)
        sentBytes += count
    }

    /// Holds back the reply from `start` to the current end until its commit has succeeded or failed.
    @inline(__always)
    func hold(from start: Int, _ ticket: CommitTicket) {
        if ticket != .none { holdLast(from: start, ticket) }
    }

    private func holdLast(from start: Int, _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        // If the commit ends after this check, the committing thread wakes the loop, which then checks the held
        // replies.
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        held.add(start: start, end: position, ticket)
        if pipeline.isDecided(ticket) { releaseDecided() }
    }

    /// Holds back several replies until their commit has succeeded or failed. Each is replaced by an error if it fails.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if ticket == .none || pipeline.isDecided(ticket) && pipeline.failure(of: ticket) == nil { return }
        for region in regions { held.add(start: region.lowerBound, end: region.upperBound, ticket) }
        if pipeline.isDecided(ticket) { releaseDecided() }
    }

    /// Records a write whose command sends no reply. The loop must still commit it.
    func noteSilentWrites(_ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if ticket != .none, !pipeline.isDecided(ticket) { hasSilentWrites = true }
    }

    /// Checks which commits have succeeded or failed. Their replies can then be sent; those of failed commits become
    /// errors.
    func releaseDecided() {
        guard !held.isEmpty else { return }
        held.releaseDecided(in: &memory.pointee, sent: sentBytes) { ticket in
            guard pipeline.isDecided(ticket) else { return .open }
            guard let failure = pipeline.failure(of: ticket) else { return .committed }
            return .failed(CommandError(failure))
        }
    }

    /// Discards the reply that starts at `start`. Bytes that were already sent cannot be discarded, such as the header
    /// of a long transaction's reply.
    func discard(from start: Int) { memory.pointee.removeLast(max(0, position - max(start, sentBytes))) }

    /// Adds a reply with the values of the fresh entries of several keys at one instant; null for a key without one.
    /// Reads only memory. Used by MGET, on the fast path and elsewhere.
    /// - Parameters:
    ///   - bytesMax: the longest reply that is allowed.
    ///   - key: returns the bytes of one of the `count` keys, which must be valid during the call, and not longer than
    ///     a key may be.
    ///   - seen: called with the header of each entry that was found.
    /// - Returns: false if the disk is needed or a value is long; then nothing was replied.
    @inline(__always)
    func addValues(
        of database: Database, _ count: Int, now: Int64, bytesMax: Int, _ ticket: inout CommitTicket,
        key: (Int) -> UnsafeRawBufferPointer, seen: (Int, RecordHeader) -> Void
    ) -> Bool {
        let replies = memory
        let bytesMax = min(Limits.loopBytesMax, bytesMax)
        let entries = Update.take()
        defer { entries.giveBack() }
        for index in 0..<count { entries.addUnchecked(key(index)) }
        return database.withBatch(entries, now: now, writes: false, ticket: &ticket) { entries in
            guard entries.payloadBytes <= bytesMax else { return false }
            replies.pointee.array(count: count)
            for index in 0..<count {
                guard let payload = entries.read(index), let header = entries.header(index) else {
                    replies.pointee.null()
                    continue
                }
                replies.pointee.bulk(payload)
                seen(index, header)
            }
            return true
        }
    }
}
