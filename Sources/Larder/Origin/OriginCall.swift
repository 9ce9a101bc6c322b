import LarderPlatform

/// A call to an origin with a time limit. At the limit its task is cancelled, but may ignore that and continue to run.
///
/// Thread-safe. `@unchecked Sendable`: all mutable state is guarded by `lock`.
final class OriginCall<Value: Sendable>: @unchecked Sendable {
    /// How the wait ended.
    enum End: Sendable {
        case answered(Result<Value, any Error>)
        case timedOut
        /// The cache was closed. The task may continue to run, as after the limit.
        case closed
    }

    private let lock = Lock()
    private var end: End?
    private var waiting: UnsafeContinuation<End, Never>?

    private init() {}

    /// Runs `body` in a task of its own, which is cancelled with the caller's task, and when the limit is reached.
    /// - Parameters:
    ///   - milliseconds: the limit.
    ///   - late: called when `body` ends, if the wait was over before; never called if `body` does not end.
    ///   - begun: receives a closure that ends the wait because the cache is closed.
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

    /// Ends the wait, unless it is over.
    /// - Returns: false if the wait was over before.
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
