/// The messages of some channels, as they come. Ends when it is cancelled or the client is closed; the task that waits for
/// the next message may be cancelled too, which gives nil to that task.
///
/// Several tasks may take messages from one subscription: each message goes to one of them. When nothing refers to the
/// subscription any more, it is cancelled.
///
/// Thread-safe.
public final class Subscription: AsyncSequence, Sendable {
    public typealias Element = ChannelMessage

    private let hub: SubscriptionHub
    private let buffer: MessageBuffer
    /// The client, which stays connected for as long as there is a subscription.
    private let owner: any Sendable

    init(_ hub: SubscriptionHub, _ buffer: MessageBuffer, owner: any Sendable) {
        self.hub = hub
        self.buffer = buffer
        self.owner = owner
    }

    deinit { cancel() }

    /// Ends the subscription: messages that have arrived can still be taken, then the sequence is over. Idempotent.
    public func cancel() {
        hub.remove(buffer)
        buffer.finish(nil)
    }

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

    /// Takes the messages of a subscription.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// The next message; nil when the subscription has ended or the task was cancelled.
        /// - Throws: ``LarderClientError``, `server`, when the daemon refuses to subscribe again after the connection
        ///   was lost.
        public mutating func next() async throws -> ChannelMessage? {
            try await subscription.buffer.next()
        }
    }
}
