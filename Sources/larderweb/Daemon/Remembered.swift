import LarderClient
import LarderPlatform

/// A value that is fetched when somebody wants it and the last one is too old; a failure is remembered as well. Whoever
/// comes meanwhile waits for the same fetch.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class Remembered<Value: Sendable>: @unchecked Sendable {
    private static var longestMilliseconds: Int64 { 60_000 }

    private let lock = Lock()
    private let leastMilliseconds: Int64
    private let costFactor: Int64
    private let load: @Sendable () throws(LarderClientError) -> Value
    private var last: Result<Value, LarderClientError>?
    private var goodUntil = Int64.min

    /// - Parameters:
    ///   - milliseconds: how long a value is good for at least.
    ///   - costFactor: it is also good for so many times as long as its fetch took, up to a minute.
    init(
        milliseconds: Int64, costFactor: Int64 = 0, load: @escaping @Sendable () throws(LarderClientError) -> Value
    ) {
        leastMilliseconds = milliseconds
        self.costFactor = costFactor
        self.load = load
    }

    func value() throws(LarderClientError) -> Value {
        let result = lock.withLock { () -> Result<Value, LarderClientError> in
            let start = MonotonicClock.milliseconds()
            if let last, start < goodUntil { return last }
            let result = Result { () throws(LarderClientError) in try load() }
            let end = MonotonicClock.milliseconds()
            // A failure says nothing of what the next try costs.
            let cost = (try? result.get()) == nil ? 0 : (end - start) * costFactor
            goodUntil = end + max(leastMilliseconds, min(cost, Self.longestMilliseconds))
            last = result
            return result
        }
        return try result.get()
    }

    /// The next call fetches.
    func forget() { lock.withLock { goodUntil = .min } }
}
