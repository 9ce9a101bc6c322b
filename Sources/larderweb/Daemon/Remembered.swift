import LarderClient
import LarderPlatform

/// A value that is fetched on demand if the cached value is too old; failures are cached too. Concurrent callers wait
/// for the same fetch.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class Remembered<Value: Sendable>: @unchecked Sendable {
    private static var longestMilliseconds: Int64 { 60_000 }

    private let lock = Lock()
    private let leastMilliseconds: Int64
    private let costFactor: Int64
    private let load: @Sendable () throws(LarderClientError) -> Value
    private var last: Result<Value, LarderClientError>?
    private var goodUntil = Int64.min

    /// - Parameters:
    ///   - milliseconds: the minimum time for which a value is valid.
    ///   - costFactor: after a slow fetch, a value is valid for this many times the fetch's duration, up to a minute.
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
            // The duration of a failed fetch does not predict that of the next one.
            let cost = (try? result.get()) == nil ? 0 : (end - start) * costFactor
            goodUntil = end + max(leastMilliseconds, min(cost, Self.longestMilliseconds))
            last = result
            return result
        }
        return try result.get()
    }

    /// Makes the next call of ``value()`` fetch a new value.
    func forget() { lock.withLock { goodUntil = .min } }
}
