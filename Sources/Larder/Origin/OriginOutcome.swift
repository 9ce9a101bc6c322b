import LarderPlatform

/// How a call to an origin with a time limit ended.
enum OriginOutcome<Value: Sendable>: Sendable {
    case answered(Result<Value, any Error>)
    /// The task of the call was cancelled at the limit, but may ignore that and continue to run.
    case timedOut
    /// The cache was closed. The task may continue to run, as after the limit.
    case closed

    /// Runs `body` in a task of its own, which is cancelled with the caller's task, and when the limit is reached.
    /// - Parameters:
    ///   - milliseconds: the limit.
    ///   - late: called when `body` ends, if the wait was over before; never called if `body` does not end.
    ///   - begun: receives a closure that ends the wait because the cache is closed.
    static func run(
        milliseconds: Int64, _ body: @escaping @Sendable () async throws -> Value,
        late: @escaping @Sendable () async -> Void = {}, begun: (@escaping @Sendable () -> Void) -> Void = { _ in }
    ) async -> Self {
        let outcome = Promise<Self>()
        let work = Task {
            let result: Result<Value, any Error>
            do {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            if !outcome.set(.answered(result)) { await late() }
        }
        let timer = Task.delayed(milliseconds: milliseconds) { if outcome.set(.timedOut) { work.cancel() } }
        defer { timer.cancel() }
        begun { if outcome.set(.closed) { work.cancel() } }
        return await withTaskCancellationHandler {
            await outcome.value()
        } onCancel: {
            work.cancel()
        }
    }
}
