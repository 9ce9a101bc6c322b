import LarderPlatform

/// Buffers messages between the loop's thread and the tasks that consume them.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class MessageBuffer: TopicListener, @unchecked Sendable {
    private typealias Step = Result<ChannelMessage?, LarderClientError>

    private let max: Int
    private let takers = WaitingTasks<Step>()
    private var lock: Lock { takers.lock }
    private var messages = Deque<ChannelMessage>()
    private var hasGap = false
    /// Whether messages before the first one in `messages` were dropped, because the buffer was full.
    private var hasGapInFront = false
    private var end: Step?

    init(max: Int) { self.max = max }

    /// The number of waiting tasks, for tests.
    var takerCount: Int { lock.withLock { takers.promises.count } }

    func add(_ message: ChannelMessage) {
        var message = message
        let taker: Promise<Step>? = lock.withLock {
            guard end == nil else { return nil }
            if hasGap {
                message.followsGap = true
                hasGap = false
            }
            if let taker = takers.promises.popFirst() { return taker }
            if messages.count >= max {
                _ = messages.popFirst()
                hasGapInFront = true
            }
            messages.append(message)
            return nil
        }
        taker?.set(.success(message))
    }

    func take(_ message: TopicMessage) {
        add(
            ChannelMessage(
                channel: String(decoding: message.channel, as: UTF8.self),
                pattern: message.pattern.map { String(decoding: $0, as: UTF8.self) }, payload: message.payload))
    }

    /// Notes that messages before the next one may be missing.
    func connectionWasLost() { noteGap() }

    func isRestored() {}

    /// Notes that messages before the next one may be missing.
    func noteGap() { lock.withLock { hasGap = true } }

    func finish(_ error: LarderClientError?) {
        let step: Step = error.map { .failure($0) } ?? .success(nil)
        let takers = lock.withLock {
            if end == nil { end = step }
            return self.takers.promises.takeAll()
        }
        for taker in takers { taker.set(step) }
    }

    func next() async throws(LarderClientError) -> ChannelMessage? {
        try await takers.value(cancelled: .success(nil)) { take() }.get()
    }

    /// Removes and returns the next message, or returns the end; nil if a task must wait. Called with `lock` held.
    private func take() -> Step? {
        guard var message = messages.popFirst() else { return end }
        if hasGapInFront {
            message.followsGap = true
            hasGapInFront = false
        }
        return .success(message)
    }
}
