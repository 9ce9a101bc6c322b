import LarderPlatform
import LarderVocabulary

/// Where a call that fetches gets its value from.
public enum FetchSource: Hashable, Sendable, CaseIterable {
    /// The cache; the origin if the cache has no fresh value. The default.
    case cacheElseOrigin
    /// The origin, and its value is stored; what is in the cache, fresh or stale, if the origin fails or is too slow.
    case originElseCache
    /// The cache alone: the origin is never asked.
    case cacheOnly
    /// The origin alone, and its value is stored. Who asks while a fetch of the key runs gets its value, which the origin
    /// may have given before.
    case originOnly
    /// The origin alone, and nothing is stored: as if there were no cache.
    case ignoreCache
}

/// How a call fetches: `FetchOptions()` has the defaults; change what you need.
///
/// Spans count in whole milliseconds and are at most a day; the call throws ``FetchError/Code/invalidArgument`` for a
/// negative or longer one. A value.
public struct FetchOptions: Hashable, Sendable {
    /// Where the value comes from. The default is ``FetchSource/cacheElseOrigin``.
    public var source = FetchSource.cacheElseOrigin
    /// The greatest age that a value of the cache may have: an older one counts as missing, even if it is fresh. Nil, the
    /// default, for any age.
    public var maximumAge: Duration?
    /// How long a fetched value stays fresh, and its grace. The default follows the database's policy.
    /// ``EntryPolicy/keep`` keeps what the entry has, fresh or stale: a life of the same length begins anew, with the same
    /// grace and, if there are no ``tags``, the same tags.
    public var policy = EntryPolicy.database
    /// The tags with which a fetched value is stored, as for the calls that store. None is the default. If one of them is
    /// purged while the value is fetched, it is not stored.
    public var tags: [String] = []
    /// For how long it is remembered that the origin has no value, so that nobody asks it again; zero for not at all. The
    /// default is 10 seconds.
    public var absent = Duration.seconds(10)
    /// How long a call waits for the origin before it takes a stale value, which is only there if the entry has a grace.
    /// With zero, the default, it takes the stale value at once; with nil only if the origin fails. Either way the fetch
    /// goes on in the background.
    public var softTimeout: Duration? = .zero
    /// How long a call waits for a fetch at most. After that it takes a stale value, or throws
    /// ``FetchError/Code/timeout``, and the closure's task is cancelled if nobody else waits for it. Nil, the default, for
    /// no limit. Not for the time in which a client finds out that there is no daemon, nor for the closures of blocking
    /// clients.
    public var hardTimeout: Duration?
    /// How long nobody asks for a key again whose origin has failed. Meanwhile calls for it throw the same error, those with
    /// ``FetchSource/originOnly`` too, if they take nothing stale. Zero for not at all. The default is 5 seconds.
    public var backOff = Duration.seconds(5)
    /// Whether one of the callers fetches the value anew, in the background, shortly before it ends. The default is true.
    public var refreshesAhead = true
    /// How long the right to fetch the key is reserved for one caller. A value that comes later is handed to its callers
    /// and not stored, because somebody else may be fetching meanwhile. At least a millisecond. Nil, the default, for 30
    /// seconds, and no longer than the caller's process, or its connection to the daemon, exists.
    public var lease: Duration?

    /// The defaults, with what is named here.
    public init(
        _ source: FetchSource = .cacheElseOrigin, maximumAge: Duration? = nil, policy: EntryPolicy = .database,
        tags: [String] = []
    ) {
        self.source = source
        self.maximumAge = maximumAge
        self.policy = policy
        self.tags = tags
    }

    /// Whether any fresh value will do that the cache has.
    @inlinable package var takesAnyFresh: Bool {
        maximumAge == nil && (source == .cacheElseOrigin || source == .cacheOnly)
    }
}

/// ``FetchOptions`` with checked numbers, in milliseconds.
package struct CheckedFetch: Hashable, Sendable {
    package let source: FetchSource
    /// Zero for a value that is newer than the call.
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
    /// How long a lease is good if nothing else is said: as the engine has it.
    static let standardLease: Int64 = 30_000

    package init(_ options: FetchOptions, _ name: FetchName) throws(FetchError) {
        func checked(_ span: Duration, _ word: String, from least: Int64 = 0) throws(FetchError) -> Int64 {
            guard let milliseconds = span.roundedMilliseconds, (least...Self.longest).contains(milliseconds) else {
                throw FetchError(
                    .invalidArgument,
                    "\(word) is \(span), and must be from \(least) milliseconds to a day", name)
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

    /// How much of the hard timeout is left for who has asked at an instant of the monotonic clock.
    package func hardLeft(since began: Int64) -> Int64? {
        hard.map { max(0, $0 - (MonotonicClock.milliseconds() - began)) }
    }

    /// Whether a value of the cache may be served that is not good enough, while the origin is asked.
    package var servesStale: Bool { source == .cacheElseOrigin }

    /// Whether the caller takes something stale only if the origin fails.
    package var waitsForFresh: Bool { servesStale && soft == nil }
}
