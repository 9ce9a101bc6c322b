/// A message as it came from the daemon. A value.
struct TopicMessage {
    let channel: [UInt8]
    /// The pattern that has matched; nil for a subscription to the channel itself.
    let pattern: [UInt8]?
    let payload: [UInt8]
}

/// Takes the messages of some topics. Called on the loop's thread, and must not block.
protocol TopicListener: AnyObject, Sendable {
    func take(_ message: TopicMessage)
    /// Messages are missing from now on.
    func connectionWasLost()
    /// There is a connection again, with the subscriptions.
    func isRestored()
    /// Nothing comes any more.
    func finish(_ error: LarderClientError?)
}
