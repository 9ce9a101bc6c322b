/// A message as received from the daemon. A value.
struct TopicMessage {
    let channel: [UInt8]
    /// The matching pattern; nil for a subscription to the channel itself.
    let pattern: [UInt8]?
    let payload: [UInt8]
}

/// Receives the messages of some topics. Called on the loop's thread, and must not block.
protocol TopicListener: AnyObject, Sendable {
    func take(_ message: TopicMessage)
    /// Messages may be missing from now on.
    func connectionWasLost()
    /// The connection and the subscriptions are restored.
    func isRestored()
    /// There will be no further messages.
    func finish(_ error: LarderClientError?)
}
