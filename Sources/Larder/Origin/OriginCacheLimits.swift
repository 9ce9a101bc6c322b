import LarderEngine

/// How long calls of an ``OriginCache`` to its origin may take, and when the origin is left alone. Not for origins that keep
/// limits themselves (``CacheOrigin/keepsLimits``).
///
/// A value. Spans count in whole milliseconds, and are at least a millisecond and at most a day; others are taken as the
/// nearest of these.
public struct OriginCacheLimits: Hashable, Sendable {
    /// The most that one call takes, whatever ``FetchOptions/hardTimeout`` says; then it fails with
    /// ``OriginFailure/timedOut(_:milliseconds:)``, and its task is cancelled. The default is ten seconds.
    public var call = Duration.seconds(10)
    /// How many calls in a row have the origin rest that fail or take too long. A question that fails again and again,
    /// without taking too long, counts once. The default is 5; at least 1.
    public var failuresBeforeRest = 5
    /// How long the origin rests: its calls fail with ``OriginFailure/resting(_:reason:)`` at once, and reads are answered
    /// with what is within its grace. Then one call at a time tries it, until one is answered. The default is a second.
    public var rest = Duration.seconds(1)

    /// The defaults; change what you need.
    public init() {}

    /// Checked, in milliseconds.
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

/// How the origin of an ``OriginCache`` is, as far as the calls of this cache have told, and what has happened. Counters
/// only grow. A value.
public struct OriginCacheStatus: Hashable, Sendable {
    /// Whether a call would fail at once, because the origin rests, or because one call tries it at this moment. Never so
    /// for origins that keep limits themselves.
    public internal(set) var isResting = false
    /// How long no call at all is let in; zero if one may try the origin, or does.
    public internal(set) var restLeft = Duration.zero
    /// How many calls have failed in a row, as ``OriginCacheLimits/failuresBeforeRest`` counts them.
    public internal(set) var failuresInRow = 0
    /// Questions, writes and removals that the origin was given.
    public internal(set) var calls = 0
    /// How many of them failed or took too long.
    public internal(set) var failures = 0
    /// How many of them took too long.
    public internal(set) var timeouts = 0
    /// Calls that failed at once, because the origin rested. They are none of ``calls``.
    public internal(set) var refused = 0
    /// Why the last call failed; nil after one that was answered.
    public internal(set) var lastError: String?
}
