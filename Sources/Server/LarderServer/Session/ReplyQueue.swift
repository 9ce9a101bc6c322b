import LarderEngine
import LarderRESP

/// The replies of one connection that are not sent yet: their bytes, and the commits that some of them wait for.
///
/// Positions count the bytes of all replies since the connection was opened. Used only by the session's owner.
final class ReplyQueue {
    /// A pointer, because Swift checks each access to a class's stored property for exclusivity at run time.
    let memory = UnsafeMutablePointer<ReplyBuffer>.allocate(capacity: 1)
    private let pipeline: CommitPipeline
    // Accesses to these properties never overlap, so the check for that is turned off.
    @exclusivity(unchecked) private var held = HeldReplies()
    /// The number of bytes that were sent since the connection was opened.
    @exclusivity(unchecked) private(set) var sentBytes = 0
    /// Whether the current command's reply is sent although CLIENT REPLY has switched replies off. As in Redis, this is
    /// so for SUBSCRIBE and similar commands, because their replies are messages.
    var keepsReply = false
    /// The latest commit that any reply of the connection has waited for.
    @exclusivity(unchecked) private(set) var lastTicket = CommitTicket.none
    /// Whether there may be uncommitted writes of commands that send no reply.
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

    /// Holds back the reply from `start` to ``position`` until its commit has succeeded or failed.
    @inline(__always)
    func hold(from start: Int, _ ticket: CommitTicket) {
        if ticket != .none { holdLast(from: start, ticket) }
    }

    private func holdLast(from start: Int, _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        // If the commit succeeds or fails after this check, the committing thread wakes the event loop, which checks
        // the held replies.
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        held.add(start: start, end: position, ticket)
        if pipeline.isDecided(ticket) { releaseDecided() }
    }

    /// Holds back several replies until their common commit has succeeded or failed. If it fails, errors replace them.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if ticket == .none || pipeline.isDecided(ticket) && pipeline.failure(of: ticket) == nil { return }
        for region in regions { held.add(start: region.lowerBound, end: region.upperBound, ticket) }
        if pipeline.isDecided(ticket) { releaseDecided() }
    }

    /// Records a write whose command sends no reply. The event loop must commit it nevertheless.
    func noteSilentWrites(_ ticket: CommitTicket) {
        lastTicket = max(lastTicket, ticket)
        if ticket != .none, !pipeline.isDecided(ticket) { hasSilentWrites = true }
    }

    /// Releases the replies whose commits have succeeded or failed, so that they can be sent. Errors replace the
    /// replies of failed commits.
    func releaseDecided() {
        guard !held.isEmpty else { return }
        held.releaseDecided(in: &memory.pointee, sent: sentBytes) { ticket in
            guard pipeline.isDecided(ticket) else { return .open }
            guard let failure = pipeline.failure(of: ticket) else { return .committed }
            return .failed(CommandError(failure))
        }
    }

    /// Discards the reply that starts at `start`, except for bytes that were already sent, such as the header of a long
    /// transaction's reply.
    func discard(from start: Int) { memory.pointee.removeLast(max(0, position - max(start, sentBytes))) }

    /// Adds a reply with the values of several keys, as they are at one instant; null for a key without a fresh entry.
    /// Reads only memory. Used by MGET.
    /// - Parameters:
    ///   - bytesMax: the maximum length of the reply, in bytes.
    ///   - key: returns the bytes of one of the `count` keys. The bytes must stay valid during the call, and must not
    ///     exceed the limit for keys.
    ///   - seen: called with the header of each entry that was found.
    /// - Returns: false if the disk is needed, or a value is long. No reply is added then.
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
