import LarderRESP

/// Requests that are sent together, without other requests in between, and the caller that waits for their replies.
///
/// `@unchecked Sendable`: the mutable properties are guarded by the lock of the exchange's ``Link``, and an exchange is
/// given to one link only.
final class Exchange: @unchecked Sendable {
    typealias Outcome = Result<[RESPValue], LarderClientError>

    /// The requests in wire format.
    let bytes: [UInt8]
    /// The number of replies; nil if it is unknown and the last reply is `fence`.
    let replyCount: Int?
    /// The reply to `ECHO`, which ends the exchange if `replyCount` is nil.
    let fence: [UInt8]
    /// The command's name, for messages.
    private let name: [UInt8]
    /// Whether the exchange may be sent again on another connection if its replies are lost.
    let isRead: Bool
    /// The number of the connection to which the exchange is bound; nil for any.
    let connectionNumber: Int?

    /// When the exchange times out, in monotonic milliseconds.
    var deadline = Int64.max
    /// Until when the exchange waits for a connection, in monotonic milliseconds.
    var patienceEnd = Int64.max
    /// The offset of the first byte of `bytes` among all bytes sent on the connection.
    var start = 0
    /// Whether the requests were, or will be, sent to a server.
    var mayHaveReachedServer = false
    /// Whether the exchange was already sent on a connection that was lost.
    var wasRepeated = false
    var replies: [RESPValue] = []
    /// Resumes the caller; nil unless a caller waits for the outcome.
    var continuation: UnsafeContinuation<Outcome, Never>?
    /// The outcome, if the exchange ended before a caller waited for it.
    var outcome: Outcome?
    /// Whether the exchange has ended, or its caller has stopped waiting. Later replies are dropped.
    var isResolved = false

    init(
        bytes: [UInt8], replyCount: Int?, fence: [UInt8] = [], name: [UInt8], isRead: Bool = false,
        connectionNumber: Int? = nil
    ) {
        self.bytes = bytes
        self.replyCount = replyCount
        self.fence = fence
        self.name = name
        self.isRead = isRead
        self.connectionNumber = connectionNumber
    }

    var operation: String { printableKey(name) }

    /// Adds a reply. Returns true if it was the last reply.
    func take(_ reply: RESPValue) -> Bool {
        guard let replyCount else {
            if case .bulk(fence) = reply { return true }
            replies.append(reply)
            return false
        }
        replies.append(reply)
        return replies.count >= replyCount
    }

}
