import Threading

extension LarderClient {
    /// A message of a subscription. A value.
    public struct Message: Hashable, Sendable {
        /// The channel that it was published to. Bytes that are not UTF-8 show as U+FFFD.
        public let channel: String
        /// The pattern that brought it here; nil where the channel itself was subscribed to.
        public let pattern: String?
        /// What was published.
        public let payload: [UInt8]
        /// Whether messages before this one may be missing: the connection was lost meanwhile, or the buffer was full.
        public internal(set) var followsGap = false

        /// The payload as text; nil when it is not UTF-8.
        public var text: String? { String(validating: payload, as: UTF8.self) }
    }

    /// Subscribes to channels. What is published to them after this call has returned arrives, in the order in which it
    /// was published to each of them.
    ///
    /// ```swift
    /// let news = try await client.subscribe(to: "news")
    /// for try await message in news { print(message.text ?? "") }
    /// ```
    /// All subscriptions of a client share one connection. A lost one is made again for as long as there are
    /// subscriptions, and subscribes again; what is published meanwhile is lost, and the next message says so with
    /// ``Message/followsGap``.
    /// - Parameter bufferMax: how many messages wait at the most while nobody takes them, from 1 on, however large they are;
    ///   then the oldest are dropped, and the next one says so. The default is 1,024.
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
        let subscription = Subscription(core: core, buffer: buffer)
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

/// The messages of some channels, as they come. Ends when it is cancelled or the client is closed; the task that waits for
/// the next message may be cancelled too, which gives nil to that task.
///
/// Several tasks may take messages from one subscription: each message goes to one of them. When nothing refers to the
/// subscription any more, it is cancelled.
///
/// Thread-safe.
public final class Subscription: AsyncSequence, Sendable {
    public typealias Element = LarderClient.Message

    private let core: ClientCore
    private let buffer: MessageBuffer

    init(core: ClientCore, buffer: MessageBuffer) {
        self.core = core
        self.buffer = buffer
    }

    deinit { cancel() }

    /// Ends the subscription: messages that have arrived can still be taken, then the sequence is over. Idempotent.
    public func cancel() {
        core.hub.remove(buffer)
        buffer.finish(nil)
    }

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: self) }

    /// Takes the messages of a subscription.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// The next message; nil when the subscription has ended or the task was cancelled.
        /// - Throws: ``LarderClientError``, `server`, when the daemon refuses to subscribe again after the connection
        ///   was lost.
        public mutating func next() async throws -> LarderClient.Message? {
            try await subscription.buffer.next()
        }
    }
}

/// Messages between the loop's thread and those who take them.
///
/// Thread-safe. The proof for `@unchecked Sendable`: mutable properties are touched only with `lock` held.
final class MessageBuffer: @unchecked Sendable {
    /// One who waits. Touched only with the lock held, which is the proof for `@unchecked Sendable`.
    private final class Taker: @unchecked Sendable {
        var continuation: UnsafeContinuation<Step, Never>?
        var isCancelled = false
    }

    private typealias Step = Result<LarderClient.Message?, LarderClientError>

    private let max: Int
    private let lock = Lock()
    private var messages = FIFO<LarderClient.Message>()
    private var takers = FIFO<Taker>()
    private var hasGap = false
    /// Whether messages before the first of `messages` were dropped.
    private var hasGapInFront = false
    private var end: Step?

    init(max: Int) { self.max = max }

    /// Those who wait, for tests.
    var takerCount: Int { lock.withLock { takers.count } }

    func add(_ message: LarderClient.Message) {
        var message = message
        let taker: UnsafeContinuation<Step, Never>? = lock.withLock {
            guard end == nil else { return nil }
            if hasGap {
                message.followsGap = true
                hasGap = false
            }
            while let taker = takers.popFirst() {
                guard let continuation = taker.continuation else { continue }
                taker.continuation = nil
                return continuation
            }
            if messages.count >= max {
                _ = messages.popFirst()
                hasGapInFront = true
            }
            messages.append(message)
            return nil
        }
        taker?.resume(returning: .success(message))
    }

    /// What comes next may be missing something.
    func noteGap() { lock.withLock { hasGap = true } }

    func finish(_ error: LarderClientError?) {
        let takers = lock.withLock { () -> [UnsafeContinuation<Step, Never>] in
            guard end == nil else { return [] }
            end = error.map { .failure($0) } ?? .success(nil)
            defer { self.takers.removeAll() }
            return self.takers.elements.compactMap { taker in
                defer { taker.continuation = nil }
                return taker.continuation
            }
        }
        for taker in takers { taker.resume(returning: error.map { .failure($0) } ?? .success(nil)) }
    }

    func next() async throws(LarderClientError) -> LarderClient.Message? {
        let taker = Taker()
        let step = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let step: Step? = lock.withLock {
                    if taker.isCancelled { return .success(nil) }
                    if var message = messages.popFirst() {
                        if hasGapInFront {
                            message.followsGap = true
                            hasGapInFront = false
                        }
                        return .success(message)
                    }
                    if let end { return end }
                    taker.continuation = continuation
                    takers.append(taker)
                    return nil
                }
                if let step { continuation.resume(returning: step) }
            }
        } onCancel: {
            let continuation = lock.withLock {
                taker.isCancelled = true
                takers.removeAll { $0 === taker }
                defer { taker.continuation = nil }
                return taker.continuation
            }
            continuation?.resume(returning: .success(nil))
        }
        return try step.get()
    }
}
