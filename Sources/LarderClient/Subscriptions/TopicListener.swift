/// A message as received from the daemon. A value type.
struct TopicMessage {
    let channel: [UInt8]
    /// The matching pattern; nil for a subscription to the channel itself.
    let pattern: [UInt8]?
    let payload: [UInt8]
}

/// Receives the messages of some topics. Called on the loop's thread, and must not block.
protocol TopicListener: AnyObject, Sendable {
    func take(_ message: TopicMessage)
    /// Called when the connection was lost: messages may be missing from now on.
    func connectionWasLost()
    /// Called when the connection and the subscriptions are restored.
    func isRestored()
    /// Called when there will be no further messages: with the reason if it is an error, otherwise with nil.
    func finish(_ error: LarderClientError?)
}
