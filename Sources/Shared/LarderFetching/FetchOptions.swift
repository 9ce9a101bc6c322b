import LarderPlatform
import LarderVocabulary

/// The source of the value that a call fetches.
public enum FetchSource: Hashable, Sendable, CaseIterable {
    /// The cache, or the origin if the cache has no fresh value. The default.
    case cacheElseOrigin
    /// The origin, whose value is stored; if the origin fails or is too slow, the cached value, fresh or stale.
    case originElseCache
    /// Only the cache. The closure is never called.
    case cacheOnly
    /// Only the origin, whose value is stored. If the key is already being fetched, the call returns the value of that
    /// fetch, which may have been read before the call.
    case originOnly
    /// Only the origin. Its value is not stored, as if there were no cache.
    case ignoreCache
}

/// The options of a call that fetches. `FetchOptions()` has the defaults; change what you need.
///
/// Durations are rounded to whole milliseconds. If a duration is negative or longer than a day, the call throws
/// ``FetchError/Code/invalidArgument``. Thread-safe: a value.
public struct FetchOptions: Hashable, Sendable {
    /// The source of the value. The default is ``FetchSource/cacheElseOrigin``.
    public var source = FetchSource.cacheElseOrigin
    /// The maximum age of a cached value. Older values are ignored, even if fresh. Nil, the default, for any age.
    public var maximumAge: Duration?
    /// The lifetime and the grace of a fetched value. The default is the database's policy. With ``EntryPolicy/keep``,
    /// the value gets the lifetime and the grace of the entry that it replaces, even if that entry is stale. The
    /// lifetime starts again. If ``tags`` is empty, the value also gets that entry's tags.
    public var policy = EntryPolicy.database
    /// The tags with which a fetched value is stored. The default is no tags. If one of these tags is purged while the
    /// value is being fetched, the value is not stored.
    public var tags: [String] = []
    /// How long the cache remembers that the origin has no value for a key: at least one millisecond, so that waiting
    /// callers get this result too. The default is 10 s.
    public var absent = Duration.seconds(10)
    /// How long a call waits for the origin before it returns a stale value within its grace, if there is one. The
    /// fetch then continues in the background. With zero, the default, the call returns the stale value without
    /// waiting. With nil, it returns the stale value only if the origin fails.
    public var softTimeout: Duration? = .zero
    /// The longest time that a call waits for a fetch. After that, the call returns a stale value if it may, or throws
    /// ``FetchError/Code/timeout``. The closure continues in the background if there is a cached value or if other
    /// callers wait for it; otherwise its task is cancelled. Nil, the default, for no limit. Closures of blocking
    /// clients, and the time to detect that no daemon is running, are not limited.
    public var hardTimeout: Duration?
    /// How long a key is not fetched again after a fetch has failed. During this time, calls for the key return a stale
    /// value if they may, and otherwise throw the error of that fetch, even with ``FetchSource/originOnly``. With zero,
    /// the next call fetches again. The default is 5 seconds.
    public var backOff = Duration.seconds(5)
    /// Whether a read shortly before the value expires starts a new fetch in the background. The default is true.
    public var refreshesAhead = true
    /// The duration of the lease, during which only one caller fetches the key. A value that arrives later is returned
    /// to the callers but not stored, because another caller may be fetching by then. At least a millisecond. Nil, the
    /// default, for 30 seconds. A lease also ends with the caller's process or its connection to the daemon.
    public var lease: Duration?

    /// Creates options. Everything that is not passed has its default.
    public init(
        _ source: FetchSource = .cacheElseOrigin, maximumAge: Duration? = nil, policy: EntryPolicy = .database,
        tags: [String] = []
    ) { (self.source, self.maximumAge, self.policy, self.tags) = (source, maximumAge, policy, tags) }

    /// Whether any fresh cached value is accepted.
    @inlinable package var takesAnyFresh: Bool {
        maximumAge == nil && (source == .cacheElseOrigin || source == .cacheOnly)
    }
}

/// ``FetchOptions`` after validation, with all durations in milliseconds.
package struct CheckedFetch: Hashable, Sendable {
    package let source: FetchSource
    /// The maximum age; nil accepts any. Zero accepts only a value stored after the call began.
    package let maxAge: Int64?
    package let policy: EntryPolicy
    package let tags: [String]
    package let absent: Int64
    package let soft: Int64?
    package let hard: Int64?
    package let backOff: Int64
    package let refreshesAhead: Bool
    package let lease: Int64?

    private static let longest: Int64 = 86_400_000
    /// The default duration of a lease in milliseconds, the same as in the engine.
    static let standardLease: Int64 = 30_000

    package init(_ options: FetchOptions, _ name: FetchName) throws(FetchError) {
        func checked(_ span: Duration, _ word: String, from least: Int64 = 0) throws(FetchError) -> Int64 {
            guard let milliseconds = span.roundedMilliseconds, (least...Self.longest).contains(milliseconds) else {
                throw FetchError(
                    .invalidArgument,
                    "\(word) is \(span), but must be from \(least) milliseconds to a day", name)
            }
            return milliseconds
        }
        func checkedIfAny(_ span: Duration?, _ word: String, from least: Int64 = 0) throws(FetchError) -> Int64? {
            guard let span else { return nil }
            return try checked(span, word, from: least)
        }
        source = options.source
        let age = try checkedIfAny(options.maximumAge, "maximumAge")
        maxAge = source == .originElseCache || source == .originOnly ? 0 : age
        policy = options.policy
        do throws(EntryPolicy.Impossible) {
            _ = try policy.checked()
        } catch {
            throw FetchError(.invalidArgument, error.message, name)
        }
        tags = options.tags
        do throws(TagRules.Impossible) {
            _ = try TagRules.checked(tags.map { Array($0.utf8) })
        } catch {
            throw FetchError(.invalidArgument, error.message, name)
        }
        absent = try checked(options.absent, "absent")
        soft = try checkedIfAny(options.softTimeout, "softTimeout")
        hard = try checkedIfAny(options.hardTimeout, "hardTimeout")
        backOff = try checked(options.backOff, "backOff")
        refreshesAhead = options.refreshesAhead
        lease = try checkedIfAny(options.lease, "lease", from: 1)
    }

    /// Returns the rest of the hard timeout, in milliseconds, for a call that began at `began`, in monotonic
    /// milliseconds; nil without a hard timeout.
    package func hardLeft(since began: Int64) -> Int64? {
        hard.map { max(0, $0 - (MonotonicClock.milliseconds() - began)) }
    }

    /// Whether a stale value may be returned while the key is being fetched.
    package var servesStale: Bool { source == .cacheElseOrigin }

    /// Whether a stale value may be returned only if the origin fails.
    package var waitsForFresh: Bool { servesStale && soft == nil }
}

/// The maximum age for a caller that reads a key repeatedly. Values stored after the caller's first read are accepted.
package struct AgeLimit: Sendable {
    private let maxAge: Int64?
    private let clock: @Sendable () -> Int64
    /// When the first reply arrived; nil before.
    private var answeredAt: Int64?

    /// - Parameters:
    ///   - maxAge: the maximum age in milliseconds; nil accepts any age, zero only values stored after the first read.
    ///   - clock: returns the monotonic time in milliseconds.
    package init(_ maxAge: Int64?, clock: @escaping @Sendable () -> Int64 = { MonotonicClock.milliseconds() }) {
        (self.maxAge, self.clock) = (maxAge, clock)
    }

    /// Records that a reply has arrived. Only the first call has an effect.
    package mutating func answered() { answeredAt = answeredAt ?? clock() }

    /// The maximum age for a read now: at least the time since the first reply. Because the store uses another clock, 2
    /// milliseconds are subtracted for rounding, and a thousandth for clock adjustments.
    package var now: Int64? {
        guard let maxAge, let answeredAt else { return maxAge }
        let waited = clock() - answeredAt
        return max(maxAge, waited - 2 - waited / 1000)
    }
}

/// A sequence of up to two values of a key: the cached value, and then the value fetched from the origin.
///
/// The cache is read when the iteration begins. Each iteration reads and fetches again. For one task at a time.
public struct FetchSequence<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value

    private let cached: @Sendable () async throws -> Value?
    private let fetched: @Sendable () async throws -> Value?
    /// Returns whether the second value equals the first, and is therefore omitted.
    private let isRepetition: @Sendable (Value, Value) -> Bool

    package init(
        cached: @escaping @Sendable () async throws -> Value?, fetched: @escaping @Sendable () async throws -> Value?,
        isRepetition: @escaping @Sendable (Value, Value) -> Bool
    ) { (self.cached, self.fetched, self.isRepetition) = (cached, fetched, isRepetition) }

    /// Returns the cached value, fresh or stale, if there is one, and then the fetched value. Throws an error of the
    /// origin after the cached value.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let sequence: FetchSequence
        private var step = 0
        private var first: Value?

        fileprivate init(_ sequence: FetchSequence) { self.sequence = sequence }

        /// Returns the next value; nil after the second value, or if the origin has no value or returns an equal one.
        public mutating func next() async throws -> Value? {
            if step == 0 {
                step = 1
                if let value = try await sequence.cached() {
                    first = value
                    return value
                }
            }
            guard step == 1 else { return nil }
            step = 2
            guard let value = try await sequence.fetched() else { return nil }
            if let first, sequence.isRepetition(first, value) { return nil }
            return value
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
