// Messages: subscribing to channels and publishing to them.

extension LarderClient {
    /// Subscribes to channels. What is published to them after this call has returned arrives, in the order in which it
    /// was published to each of them.
    ///
    /// ```swift
    /// let news = try await client.subscribe(to: "news")
    /// for try await message in news { print(message.text ?? "") }
    /// ```
    /// All subscriptions of a client share one connection. A lost one is made again for as long as there are
    /// subscriptions, and subscribes again; what is published meanwhile is lost, and the next message says so with
    /// ``ChannelMessage/followsGap``.
    /// - Parameters:
    ///   - channels: names of channels.
    ///   - bufferMax: how many messages wait at the most while nobody takes them, from 1 on, however large they are;
    ///     then the oldest are dropped, and the next one says so. The default is 1,024.
    /// - Throws: `server` when the daemon refuses, `invalidArgument` when it does not speak RESP3, no channel is named, or
    ///   `bufferMax` is less than 1.
    public func subscribe(to channels: String..., bufferMax: Int = 1_024) async throws(LarderClientError)
        -> Subscription
    {
        try await subscribe(channels.map { .channel(Array($0.utf8)) }, bufferMax)
    }

    /// As ``subscribe(to:bufferMax:)``, to all channels whose names match: `*` stands for any characters, `?` for one,
    /// `[a-c]` for one of these.
    public func subscribe(matching patterns: String..., bufferMax: Int = 1_024) async throws(LarderClientError)
        -> Subscription
    {
        try await subscribe(patterns.map { .pattern(Array($0.utf8)) }, bufferMax)
    }

    /// As ``subscribe(to:bufferMax:)``, to sharded channels (SSUBSCRIBE): a name space of its own, to which
    /// ``publish(_:toSharded:)-([UInt8],_)`` publishes, and which no pattern matches.
    public func subscribe(toSharded channels: String..., bufferMax: Int = 1_024) async throws(LarderClientError)
        -> Subscription
    {
        try await subscribe(channels.map { .shardChannel(Array($0.utf8)) }, bufferMax)
    }

    private func subscribe(_ topics: [Topic], _ bufferMax: Int) async throws(LarderClientError) -> Subscription {
        guard !topics.isEmpty else {
            throw LarderClientError(.invalidArgument, "a subscription names a channel", operation: "SUBSCRIBE")
        }
        guard bufferMax >= 1 else {
            throw LarderClientError(
                .invalidArgument, "bufferMax is \(bufferMax), and must be at least 1", operation: "SUBSCRIBE")
        }
        let buffer = MessageBuffer(max: bufferMax)
        let subscription = Subscription(core.hub, buffer, owner: core)
        // Should this fail, the subscription goes out of scope and takes back what it began.
        try await core.hub.add(buffer, topics)
        return subscription
    }

    /// Publishes to a channel.
    /// - Returns: how many clients received it.
    /// - Throws: `invalidArgument` for a message of more than 512 MiB.
    @discardableResult
    public func publish(_ message: [UInt8], to channel: String) async throws(LarderClientError) -> Int {
        let request = Request.publish(message, to: Array(channel.utf8))
        try CommandRules.checkLengths(request.words)
        return Int(clamping: try await core.own.perform(request))
    }

    /// As ``publish(_:to:)-([UInt8],_)``, for text.
    @discardableResult
    public func publish(_ message: String, to channel: String) async throws(LarderClientError) -> Int {
        try await publish(Array(message.utf8), to: channel)
    }

    /// Publishes to a sharded channel (SPUBLISH).
    /// - Returns: how many clients received it.
    /// - Throws: `invalidArgument` for a message of more than 512 MiB.
    @discardableResult
    public func publish(_ message: [UInt8], toSharded channel: String) async throws(LarderClientError) -> Int {
        let request = Request.publish(message, to: Array(channel.utf8), isSharded: true)
        try CommandRules.checkLengths(request.words)
        return Int(clamping: try await core.own.perform(request))
    }

    /// As ``publish(_:toSharded:)-([UInt8],_)``, for text.
    @discardableResult
    public func publish(_ message: String, toSharded channel: String) async throws(LarderClientError) -> Int {
        try await publish(Array(message.utf8), toSharded: channel)
    }
}
