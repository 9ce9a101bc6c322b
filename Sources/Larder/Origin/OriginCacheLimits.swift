import LarderEngine

/// The time limit of an ``OriginCache``'s calls to its origin, and the settings of its circuit breaker. Ignored for
/// origins with limits of their own (``CacheOrigin/keepsLimits``).
///
/// Durations are rounded to milliseconds and clamped to the range from a millisecond to a day.
public struct OriginCacheLimits: Hashable, Sendable {
    /// The time limit of one call, independent of ``FetchOptions/hardTimeout``. A call that takes longer fails with
    /// ``OriginFailure/timedOut(_:milliseconds:)``, and its task is cancelled. The default is ten seconds.
    public var call = Duration.seconds(10)
    /// The circuit breaker opens after this number of failures and timeouts in a row. Repeated failures of the same
    /// read count once, unless they are timeouts. The default is 5; at least 1.
    public var failuresBeforeRest = 5
    /// How long the circuit breaker stays open. Meanwhile calls immediately fail with
    /// ``OriginFailure/resting(_:reason:)``, and reads return stale entries within their grace. Afterwards one call at
    /// a time probes the origin until the origin answers. The default is a second.
    public var rest = Duration.seconds(1)

    /// Creates the default limits.
    public init() {}

    /// The clamped values, in milliseconds.
    struct Checked: Sendable {
        let call: Int64
        let failuresBeforeRest: Int
        let rest: Int64

        init(_ limits: OriginCacheLimits) {
            call = Self.checked(limits.call)
            failuresBeforeRest = max(1, limits.failuresBeforeRest)
            rest = Self.checked(limits.rest)
        }

        private static func checked(_ span: Duration) -> Int64 {
            max(1, min(span.roundedMilliseconds ?? (span < .zero ? 1 : .max), 86_400_000))
        }
    }
}

/// The state of the circuit breaker of an ``OriginCache``, and counters of its calls, which only grow.
public struct OriginCacheStatus: Hashable, Sendable {
    /// Whether a call would fail immediately, because the circuit breaker is open or another call is probing the
    /// origin. Always false for origins with limits of their own.
    public internal(set) var isResting = false
    /// The time until the next call may probe the origin; zero if a call may probe it now, or is already probing it.
    public internal(set) var restLeft = Duration.zero
    /// The number of failures in a row, as ``OriginCacheLimits/failuresBeforeRest`` counts them.
    public internal(set) var failuresInRow = 0
    /// The number of reads, writes and removals sent to the origin.
    public internal(set) var calls = 0
    /// The number of calls that failed or timed out.
    public internal(set) var failures = 0
    /// The number of calls that timed out.
    public internal(set) var timeouts = 0
    /// The number of calls that failed immediately because the circuit breaker was open. Not included in ``calls``.
    public internal(set) var refused = 0
    /// The failure of the last call; nil if it was answered.
    public internal(set) var lastError: String?
}
