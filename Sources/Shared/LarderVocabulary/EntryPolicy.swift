/// The lifetime of one entry; a parameter of the calls that store it.
///
/// ``database``, the default, leaves the lifetime to the database's policy, even if that changes later. Everything else
/// is the entry's own rule, which is not affected by later changes of the database's policy.
///
/// An invalid lifetime is not replaced by the database's policy: the call that stores the entry throws.
public struct EntryPolicy: Hashable, Sendable {
    private enum Kind: Hashable {
        case governed
        case keep
        case policy(UpdatePolicy)
        case seconds(Double)
        case duration(Duration)
        case until(Int64)
        case untilNotANumber
    }

    private let kind: Kind
    private var ownGrace: Duration?
    private var ownJitter: Int?

    private init(_ kind: Kind) { self.kind = kind }

    /// The entry follows the database's current policy. The default.
    public static let database = EntryPolicy(.governed)
    /// The new value keeps the rule of the fresh entry that it replaces: the database's policy, or that entry's own
    /// deadline. Without a fresh entry this is ``database``.
    public static let keep = EntryPolicy(.keep)

    /// 10 seconds.
    public static let highest = policy(.highest)
    /// 1 minute.
    public static let high = policy(.high)
    /// 1 hour.
    public static let middle = policy(.middle)
    /// 24 hours.
    public static let low = policy(.low)
    /// 7 days.
    public static let lowest = policy(.lowest)
    /// The entry does not expire.
    public static let never = policy(.never)

    /// An interval from the moment of storing.
    public static func policy(_ policy: UpdatePolicy) -> EntryPolicy { EntryPolicy(.policy(policy)) }

    /// An interval from the moment of storing, in whole milliseconds: `.after(.seconds(90))`. The call that stores the
    /// entry throws `invalidArgument` unless it is at least a millisecond and at most 9,000,000,000 seconds (about 285
    /// years): zero and negative intervals are errors. For a deadline at an instant, which may be in the past, use
    /// ``until(millisecondsSince1970:)``.
    public static func after(_ duration: Duration) -> EntryPolicy { EntryPolicy(.duration(duration)) }

    /// Seconds from the moment of storing; fractions are allowed. Limits as for ``after(_:)``; NaN is an error too.
    public static func seconds(_ count: Double) -> EntryPolicy { EntryPolicy(.seconds(count)) }
    /// Minutes from the moment of storing. Limits as for ``after(_:)``.
    public static func minutes(_ count: Double) -> EntryPolicy { seconds(count * 60) }
    /// Hours from the moment of storing. Limits as for ``after(_:)``.
    public static func hours(_ count: Double) -> EntryPolicy { seconds(count * 3_600) }
    /// Days of 24 hours from the moment of storing. Limits as for ``after(_:)``.
    public static func days(_ count: Double) -> EntryPolicy { seconds(count * 86_400) }

    /// A computed instant that is not a number. The call that stores the entry throws `invalidArgument`.
    package static let untilNotANumber = EntryPolicy(.untilNotANumber)

    /// Expires at an instant, in milliseconds since 1970. An instant in the past expires the entry at once. The call
    /// that stores the entry throws `invalidArgument` for instants after the year 5138; for no expiry use ``never``.
    public static func until(millisecondsSince1970 instant: Int64) -> EntryPolicy { EntryPolicy(.until(instant)) }

    // MARK: Grace and jitter

    /// The same lifetime with its own grace instead of the database's: `.hours(1).grace(.seconds(600))`.
    ///
    /// After its deadline and until its grace is over, the entry is *stale*: only calls that fetch may return it, while
    /// the new value is being fetched. For all other calls it has expired. In whole milliseconds. The call that stores
    /// the entry throws `invalidArgument` unless the grace is at least zero, which means none, and at most
    /// 9,000,000,000 seconds. Redis keeps nothing after its deadline: a client of Redis stores the entry without a
    /// grace.
    public func grace(_ duration: Duration) -> EntryPolicy {
        var policy = self
        policy.ownGrace = duration
        return policy
    }

    /// A lifetime that is shortened at random by at most `percent` percent, so that entries stored together do not
    /// expire together: `.hours(1).jitter(percent: 10)` is 54 to 60 minutes.
    ///
    /// The entry then has its own deadline. Has no effect on ``never`` and ``keep``. The call that stores the entry
    /// throws `invalidArgument` unless `percent` is in 0...100.
    public func jitter(percent: Int) -> EntryPolicy {
        var policy = self
        policy.ownJitter = percent
        return policy
    }
}

extension EntryPolicy: CustomStringConvertible {
    /// `database`, `keep`, an interval in the format of ``UpdatePolicy`` (`low`, `every:90`), or `until:` and
    /// milliseconds since 1970; then, if there are any, the grace and the jitter: `every:90 grace:10 jitter:5%`. An
    /// invalid interval appears unchanged.
    public var description: String {
        let grace = ownGrace.map { " grace:" + ((try? Self.checked(grace: $0)).map(Self.graceText) ?? "\($0)") } ?? ""
        return lifetime + grace + (ownJitter.map { " jitter:\($0)%" } ?? "")
    }

    private var lifetime: String {
        switch kind {
        case .governed: "database"
        case .keep: "keep"
        case .policy(let policy): policy.description
        case .seconds(let seconds): UpdatePolicy.every(seconds)?.description ?? "every:\(seconds)"
        case .duration(let duration): (try? UpdatePolicy.checked(duration))?.description ?? "every:\(duration)"
        case .until(let instant): "until:\(instant)"
        case .untilNotANumber: "until:nan"
        }
    }
}

extension EntryPolicy {
    /// An ``EntryPolicy`` with checked numbers.
    package struct Checked: Hashable, Sendable {
        package enum Lifetime: Hashable, Sendable {
            case governed
            case keep
            case policy(UpdatePolicy)
            /// In milliseconds since 1970; not negative.
            case until(Int64)
        }

        package let lifetime: Lifetime
        /// In milliseconds; nil for the database's, or with `keep` that of the replaced entry.
        package let grace: Int64?
        /// In percent; nil for the database's, which affects only lifetimes set by its policy.
        package let jitter: Int?
    }

    /// Why a policy is invalid: the text of an error.
    package struct Impossible: Error {
        package let message: String
    }

    /// The latest deadline that an entry can have: in the year 5138, in milliseconds since 1970.
    package static let latestMilliseconds: Int64 = 100_000_000_000_000

    package func checked() throws(Impossible) -> Checked {
        Checked(
            lifetime: try checkedLifetime(),
            grace: try ownGrace.map { (grace) throws(Impossible) in try Self.checked(grace: grace) },
            jitter: try ownJitter.map { (jitter) throws(Impossible) in try Self.checked(jitter: jitter) })
    }

    /// Why the lifetime of a stored entry cannot be combined with a grace.
    package static let graceStays =
        "the grace of a stored entry cannot be changed: omit the grace, or store the entry again"

    /// A grace in milliseconds.
    package static func checked(grace: Duration) throws(Impossible) -> Int64 {
        let milliseconds = grace.roundedMilliseconds
        guard let milliseconds, (0...UpdatePolicy.longestMilliseconds).contains(milliseconds) else {
            throw Impossible(
                message: "invalid grace \(grace): it must be at least 0 seconds and at most "
                    + "\(UpdatePolicy.longestMilliseconds / 1000)")
        }
        return milliseconds
    }

    /// A jitter in percent.
    package static func checked(jitter: Int) throws(Impossible) -> Int {
        guard (0...Jitter.percentMax).contains(jitter) else {
            throw Impossible(
                message: "invalid jitter of \(jitter) percent: it must be from 0 to \(Jitter.percentMax)")
        }
        return jitter
    }

    /// Formats milliseconds as the daemon accepts a grace: in seconds, with a fraction if necessary.
    package static func graceText(_ milliseconds: Int64) -> String {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return rest == 0 ? "\(seconds)" : "\(seconds)." + String(1000 + rest).dropFirst()
    }

    private func checkedLifetime() throws(Impossible) -> Checked.Lifetime {
        switch kind {
        case .governed: return .governed
        case .keep: return .keep
        case .policy(let policy): return .policy(policy)
        case .seconds(let seconds): return .policy(try UpdatePolicy.checked(seconds))
        case .duration(let duration): return .policy(try UpdatePolicy.checked(duration))
        case .until(let instant):
            guard instant <= Self.latestMilliseconds else {
                throw Impossible(
                    message: "the deadline \(instant) ms since 1970 is after \(Self.latestMilliseconds); "
                        + "use the policy 'never' for an entry that does not expire")
            }
            return .until(max(0, instant))
        case .untilNotANumber: throw Impossible(message: "the deadline is not a number (NaN)")
        }
    }
}

extension Duration {
    /// In whole milliseconds; nil if it is longer than any policy allows.
    package var roundedMilliseconds: Int64? {
        let (seconds, attoseconds) = components
        // Seconds in this range cannot overflow as milliseconds.
        let most = UpdatePolicy.longestMilliseconds / 1000
        guard (-most...most).contains(seconds) else { return nil }
        let half: Int64 = attoseconds < 0 ? -500_000_000_000_000 : 500_000_000_000_000
        return seconds * 1000 + (attoseconds + half) / 1_000_000_000_000_000
    }
}

extension UpdatePolicy {
    static func checked(_ duration: Duration) throws(EntryPolicy.Impossible) -> UpdatePolicy {
        guard let policy = UpdatePolicy.every(milliseconds: duration.roundedMilliseconds ?? 0) else {
            throw EntryPolicy.Impossible(
                message: "invalid interval \(duration): it must be at least 0.001 seconds and at most "
                    + "\(longestMilliseconds / 1000); use the policy 'never' for entries that do not expire")
        }
        return policy
    }

    /// Like ``every(_:)-(Double)``, with an error that names the valid range.
    package static func checked(_ seconds: Double) throws(EntryPolicy.Impossible) -> UpdatePolicy {
        guard let policy = UpdatePolicy.every(seconds) else {
            throw EntryPolicy.Impossible(
                message: "invalid interval of \(seconds) seconds: it must be at least 0.001 and at most "
                    + "\(longestMilliseconds / 1000); use the policy 'never' for entries that do not expire")
        }
        return policy
    }
}
