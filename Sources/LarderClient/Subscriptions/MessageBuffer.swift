import LarderPlatform

/// Buffers messages between the loop's thread and the tasks that consume them.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class MessageBuffer: TopicListener, @unchecked Sendable {
    /// A waiting task. `@unchecked Sendable`: guarded by the buffer's `lock`.
    private final class Taker: @unchecked Sendable {
        var continuation: UnsafeContinuation<Step, Never>?
        var isCancelled = false
    }

    private typealias Step = Result<ChannelMessage?, LarderClientError>

    private let max: Int
    private let lock = Lock()
    private var messages = Deque<ChannelMessage>()
    private var takers = Deque<Taker>()
    private var hasGap = false
    /// Whether messages before the first one in `messages` were dropped, because the buffer was full.
    private var hasGapInFront = false
    private var end: Step?

    init(max: Int) { self.max = max }

    /// The number of waiting tasks, for tests.
    var takerCount: Int { lock.withLock { takers.count } }

    func add(_ message: ChannelMessage) {
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

    func next() async throws(LarderClientError) -> ChannelMessage? {
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
