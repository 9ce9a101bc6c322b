import LarderRESP

/// Requests that are sent together, without other requests in between, and the receiver of their replies.
///
/// `@unchecked Sendable`: the mutable properties are guarded by the lock of the exchange's ``Link``, and an exchange is
/// given to one link only.
package final class Exchange: @unchecked Sendable {
    package typealias Outcome = Result<[RESPValue], WireFailure>

    /// The receiver of the outcome: a suspended task, or a closure that runs on the loop's thread.
    package enum Waiter {
        case continuation(UnsafeContinuation<Outcome, Never>)
        case closure((Outcome) -> Void)

        func resume(_ outcome: Outcome) {
            switch self {
            case .continuation(let continuation): continuation.resume(returning: outcome)
            case .closure(let body): body(outcome)
            }
        }
    }

    /// The requests in wire format.
    let bytes: [UInt8]
    /// The number of replies; nil if it is unknown and the last reply is `fence`.
    let replyCount: Int?
    /// The reply to `ECHO`, which ends the exchange if `replyCount` is nil.
    private let fence: [UInt8]
    /// The command's name, for messages.
    package let name: [UInt8]
    /// Whether the exchange may be sent again on another connection if its replies are lost.
    let isRead: Bool
    /// The number of the connection to which the exchange is bound; nil for any.
    let connectionNumber: Int?
    /// The time limit in milliseconds, 0 for no limit; nil for that of the link.
    let timeoutMilliseconds: Int?

    /// See ``LinkSettings/marksBatches``.
    var isMarker = false
    /// When the exchange times out, in monotonic milliseconds.
    var deadline = Int64.max
    /// Until when the exchange waits for a connection, in monotonic milliseconds.
    var patienceEnd = Int64.max
    /// The offset of the first byte of `bytes` among all bytes sent on the connection.
    var start = 0
    /// Whether the requests were, or will be, sent to a server.
    package internal(set) var mayHaveReachedServer = false
    /// Whether the exchange was already sent on a connection that was lost.
    var wasRepeated = false
    var replies: [RESPValue] = []
    /// Called for each reply as it arrives, with its index and the length of the strings that were dropped from it.
    /// Returns whether to keep the reply. Must not use the link.
    package var arrived: ((_ index: Int, _ skippedBytes: Int) -> Bool)?
    /// Returns whether a reply can belong to the request with its index; errors always can. If not, replies are missing
    /// or superfluous, and the connection is lost. Must not use the link.
    package var accepts: ((_ index: Int, RESPValue) -> Bool)?
    /// Receives the outcome; nil unless a caller waits for it.
    package var waiter: Waiter?
    /// The outcome, if the exchange ended before a caller waited for it.
    package var outcome: Outcome?
    /// Whether the exchange has ended, or its caller has stopped waiting. Later replies are dropped.
    package var isResolved = false

    package init(
        bytes: [UInt8], replyCount: Int?, fence: [UInt8] = [], name: [UInt8], isRead: Bool = false,
        connectionNumber: Int? = nil, timeoutMilliseconds: Int? = nil
    ) {
        self.bytes = bytes
        self.replyCount = replyCount
        self.fence = fence
        self.name = name
        self.isRead = isRead
        self.connectionNumber = connectionNumber
        self.timeoutMilliseconds = timeoutMilliseconds
    }

    /// - Parameter name: nil for the name of the first command.
    package convenience init(
        _ commands: [[[UInt8]]], name: [UInt8]? = nil, isRead: Bool = false, connectionNumber: Int? = nil,
        timeoutMilliseconds: Int? = nil
    ) {
        self.init(
            bytes: RequestEncoder.encoded(commands), replyCount: commands.count, name: name ?? commands[0][0],
            isRead: isRead, connectionNumber: connectionNumber, timeoutMilliseconds: timeoutMilliseconds)
    }

    /// Adds a reply. Returns true if it was the last reply.
    func take(_ reply: RESPValue, skippedBytes: Int) -> Bool {
        guard let replyCount else {
            if case .bulk(fence) = reply { return true }
            replies.append(reply)
            return false
        }
        let isKept = arrived?(replies.count, skippedBytes) ?? true
        replies.append(isKept ? reply : .null)
        return replies.count >= replyCount
    }
}
