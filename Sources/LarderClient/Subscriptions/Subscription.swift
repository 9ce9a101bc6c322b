import LarderPlatform

/// The messages of some channels, in the order of arrival. The sequence ends when it is cancelled or the client is
/// closed. If a task is cancelled while it waits for the next message, it gets nil.
///
/// Several tasks may consume one subscription: each message goes to one of them. A subscription is cancelled when its
/// last reference is released.
///
/// Thread-safe.
public final class Subscription: AsyncSequence, Sendable {
    public typealias Element = ChannelMessage

    private let hub: SubscriptionHub
    private let buffer: MessageBuffer
    /// The client, which stays connected while there is a subscription.
    private let owner: any Sendable

    init(_ hub: SubscriptionHub, _ buffer: MessageBuffer, owner: any Sendable) {
        (self.hub, self.buffer, self.owner) = (hub, buffer, owner)
    }

    deinit { cancel() }

    /// Ends the subscription. Messages that have arrived can still be consumed; then the sequence is over. Idempotent.
    public func cancel() {
        hub.remove(buffer)
        buffer.finish(nil)
    }

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

    /// Consumes the messages of a subscription.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// Returns the next message; nil when the subscription has ended or the task was cancelled.
        /// - Throws: ``LarderClientError``, `server`, if the daemon refuses to subscribe again after the connection was
        ///   lost.
        public mutating func next() async throws -> ChannelMessage? { try await subscription.buffer.next() }
    }
}

/// A message of a subscription. A value type.
public struct ChannelMessage: Hashable, Sendable {
    /// The channel of the message. Bytes that are not UTF-8 appear as U+FFFD.
    public let channel: String
    /// The matching pattern; nil for a subscription to the channel itself.
    public let pattern: String?
    /// The published bytes.
    public let payload: [UInt8]
    /// Whether messages before this one may be missing, because the connection was lost or the buffer was full.
    public internal(set) var followsGap = false

    /// The payload as text; nil if it is not UTF-8.
    public var text: String? { String(validating: payload, as: UTF8.self) }
}

/// The unread messages of a subscription, up to a maximum number. If there are more, the oldest are dropped, and the
/// next message reports the gap.
struct PendingMessages: MailboxContent {
    private let max: Int
    private var messages = Deque<ChannelMessage>()
    private var hasGap = false
    /// Whether messages before the first one in `messages` were dropped.
    private var hasGapInFront = false

    init(max: Int) { self.max = max }

    mutating func add(_ message: ChannelMessage) {
        var message = message
        if hasGap {
            message.followsGap = true
            hasGap = false
        }
        if messages.count >= max {
            _ = messages.popFirst()
            hasGapInFront = true
        }
        messages.append(message)
    }

    /// Notes that messages before the next one may be missing.
    mutating func noteGap() { hasGap = true }

    mutating func take() -> Result<ChannelMessage?, LarderClientError>? {
        guard var message = messages.popFirst() else { return nil }
        if hasGapInFront {
            message.followsGap = true
            hasGapInFront = false
        }
        return .success(message)
    }

    /// The messages that have arrived can still be read.
    func end() {}
}

typealias MessageBuffer = Mailbox<PendingMessages>

extension MessageBuffer: TopicListener {
    func take(_ message: TopicMessage) {
        let message = ChannelMessage(
            channel: String(decoding: message.channel, as: UTF8.self),
            pattern: message.pattern.map { String(decoding: $0, as: UTF8.self) }, payload: message.payload)
        change { $0.add(message) }
    }

    func connectionWasLost() { change { $0.noteGap() } }

    func isRestored() {}
}
