import LarderRESP

/// Requests that are sent together, without others in between, and the caller that waits for their replies.
///
/// The proof for `@unchecked Sendable`: what is `let` never changes; all else is touched only with the lock of the
/// exchange's ``Link`` held, and an exchange is given to one link only.
final class Exchange: @unchecked Sendable {
    typealias Outcome = Result<[RESPValue], LarderClientError>

    /// The requests in the form for the wire.
    let bytes: [UInt8]
    /// How many replies they have; nil if only the last one is known, which is `fence`.
    let replyCount: Int?
    /// The reply that ends the exchange if `replyCount` is nil: `ECHO`'s.
    let fence: [UInt8]
    /// The command's name, for messages.
    private let name: [UInt8]
    /// Whether it may be sent again on another connection if its replies did not come.
    let isRead: Bool
    /// The number of the connection to which it belongs; nil for any.
    let connectionNumber: Int?

    /// From when on it is a timeout, in monotonic milliseconds.
    var deadline = Int64.max
    /// Until when it waits for a connection.
    var patienceEnd = Int64.max
    /// Where its bytes begin, counted from the first byte of the connection.
    var start = 0
    /// Whether its bytes were, or will be, given to a server.
    var mayBeSeen = false
    /// Whether it was on a connection that was lost.
    var wasRepeated = false
    var replies: [RESPValue] = []
    /// Set when somebody begins to wait, until it is resolved.
    var continuation: UnsafeContinuation<Outcome, Never>?
    /// How it ended, if that was before anybody waited.
    var outcome: Outcome?
    /// Once true, its replies are dropped.
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

    /// Takes one reply. Returns true when it was the last.
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
