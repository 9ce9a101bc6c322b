// Messages: subscribing to channels and publishing to them.

extension LarderClient {
    /// Subscribes to channels. The subscription receives all messages published after this call has returned, for each
    /// channel in the order of publishing.
    ///
    /// ```swift
    /// let news = try await client.subscribe(to: "news")
    /// for try await message in news { print(message.text ?? "") }
    /// ```
    /// All subscriptions of a client share one connection. If that connection is lost while there are subscriptions,
    /// the client reconnects and subscribes again. Messages published in between are lost; the next message reports
    /// that with ``ChannelMessage/followsGap``.
    /// - Parameters:
    ///   - channels: names of channels.
    ///   - bufferMax: how many unread messages are buffered, whatever their size; at least 1. If there are more, the
    ///     oldest are dropped, and the next message reports that. The default is 1,024.
    /// - Throws: `server` if the daemon refuses; `invalidArgument` if the daemon does not support RESP3, if no channel
    ///   is given, or if `bufferMax` is less than 1.
    public func subscribe(to channels: String..., bufferMax: Int = 1_024) async throws(LarderClientError)
        -> Subscription
    {
        try await subscribe(channels.map { .channel(Array($0.utf8)) }, bufferMax)
    }

    /// Like ``subscribe(to:bufferMax:)``, for all channels whose names match one of the glob patterns: `*` matches any
    /// characters, `?` one character, `[a-c]` one of a, b and c.
    public func subscribe(matching patterns: String..., bufferMax: Int = 1_024) async throws(LarderClientError)
        -> Subscription
    {
        try await subscribe(patterns.map { .pattern(Array($0.utf8)) }, bufferMax)
    }

    /// Like ``subscribe(to:bufferMax:)``, for sharded channels (SSUBSCRIBE). A sharded channel and an ordinary channel
    /// of the same name are different. ``publish(_:toSharded:)-([UInt8],_)`` publishes to sharded channels, and no
    /// pattern matches them.
    public func subscribe(toSharded channels: String..., bufferMax: Int = 1_024) async throws(LarderClientError)
        -> Subscription
    {
        try await subscribe(channels.map { .shardChannel(Array($0.utf8)) }, bufferMax)
    }

    private func subscribe(_ topics: [Topic], _ bufferMax: Int) async throws(LarderClientError) -> Subscription {
        guard !topics.isEmpty else {
            throw LarderClientError(
                .invalidArgument, "a subscription needs at least one channel", operation: "SUBSCRIBE")
        }
        guard bufferMax >= 1 else {
            throw LarderClientError(
                .invalidArgument, "bufferMax is \(bufferMax), and must be at least 1", operation: "SUBSCRIBE")
        }
        let buffer = MessageBuffer(PendingMessages(max: bufferMax))
        let subscription = Subscription(core.hub, buffer, owner: core)
        // If this call throws, `subscription` is released, and its deinitializer removes the buffer from the hub.
        try await core.hub.add(buffer, topics)
        return subscription
    }

    /// Publishes to a channel.
    /// - Returns: the number of clients that received the message.
    /// - Throws: `invalidArgument` for a message of more than 512 MiB.
    @discardableResult
    public func publish(_ message: [UInt8], to channel: String) async throws(LarderClientError) -> Int {
        try await publish(message, to: channel, isSharded: false)
    }

    /// Like ``publish(_:to:)-([UInt8],_)``, for text.
    @discardableResult
    public func publish(_ message: String, to channel: String) async throws(LarderClientError) -> Int {
        try await publish(Array(message.utf8), to: channel)
    }

    /// Publishes to a sharded channel (SPUBLISH).
    /// - Returns: the number of clients that received the message.
    /// - Throws: `invalidArgument` for a message of more than 512 MiB.
    @discardableResult
    public func publish(_ message: [UInt8], toSharded channel: String) async throws(LarderClientError) -> Int {
        try await publish(message, to: channel, isSharded: true)
    }

    private func publish(_ message: [UInt8], to channel: String, isSharded: Bool) async throws(LarderClientError) -> Int
    {
        let request = Request.publish(message, to: Array(channel.utf8), isSharded: isSharded)
        try CommandRules.checkLengths(request.words)
        return Int(clamping: try await core.own.perform(request))
    }

    /// Like ``publish(_:toSharded:)-([UInt8],_)``, for text.
    @discardableResult
    public func publish(_ message: String, toSharded channel: String) async throws(LarderClientError) -> Int {
        try await publish(Array(message.utf8), toSharded: channel)
    }
}
