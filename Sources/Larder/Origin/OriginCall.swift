import LarderPlatform

/// A call that is waited for until its limit is over. What runs is told to end then, and may go on nevertheless.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class OriginCall<Value: Sendable>: @unchecked Sendable {
    /// How the wait ended.
    enum End: Sendable {
        case answered(Result<Value, any Error>)
        case timedOut
        /// The cache was closed meanwhile. What runs may go on, as behind a limit.
        case closed
    }

    private let lock = Lock()
    private var end: End?
    private var waiting: UnsafeContinuation<End, Never>?

    private init() {}

    /// Runs `body` in a task of its own, which is cancelled with the caller's and when the limit is over.
    /// - Parameters:
    ///   - milliseconds: the limit.
    ///   - late: is called when `body` has ended for which nobody has waited; never if it does not end.
    ///   - begun: gets what ends the wait because the cache is closed.
    static func run(
        milliseconds: Int64, _ body: @escaping @Sendable () async throws -> Value,
        late: @escaping @Sendable () async -> Void = {}, begun: (@escaping @Sendable () -> Void) -> Void = { _ in }
    ) async -> End {
        let call = OriginCall()
        let work = Task {
            let result: Result<Value, any Error>
            do {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            if !call.finish(.answered(result)) { await late() }
        }
        let timer = Task {
            guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
            if call.finish(.timedOut) { work.cancel() }
        }
        defer { timer.cancel() }
        begun { if call.finish(.closed) { work.cancel() } }
        return await withTaskCancellationHandler {
            await call.wait()
        } onCancel: {
            work.cancel()
        }
    }

    /// - Returns: whether it had not ended before.
    private func finish(_ end: End) -> Bool {
        let (isFirst, continuation) = lock.withLock { () -> (Bool, UnsafeContinuation<End, Never>?) in
            guard self.end == nil else { return (false, nil) }
            self.end = end
            defer { waiting = nil }
            return (true, waiting)
        }
        continuation?.resume(returning: end)
        return isFirst
    }

    private func wait() async -> End {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<End, Never>) in resume(continuation) }
    }

    private func resume(_ continuation: UnsafeContinuation<End, Never>) {
        lock.lock()
        let known = end
        if known == nil { waiting = continuation }
        lock.unlock()
        if let known { continuation.resume(returning: known) }
    }
}
