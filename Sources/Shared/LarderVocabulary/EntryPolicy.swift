/// The lifetime of one entry. A parameter of the calls that store an entry.
///
/// With ``database``, the default, the entry follows the database's policy, even if the policy is changed later. All
/// other values give the entry its own rule, which later changes of the database's policy do not affect.
///
/// If the lifetime is invalid, the call that stores the entry throws.
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
    /// The new entry gets the rule of the fresh entry that it replaces: the database's policy, or that entry's own
    /// deadline. If there is no fresh entry, the new entry follows the database's policy.
    public static let keep = EntryPolicy(.keep)

    /// The entry expires after 10 seconds.
    public static let highest = policy(.highest)
    /// The entry expires after 1 minute.
    public static let high = policy(.high)
    /// The entry expires after 1 hour.
    public static let middle = policy(.middle)
    /// The entry expires after 24 hours.
    public static let low = policy(.low)
    /// The entry expires after 7 days.
    public static let lowest = policy(.lowest)
    /// The entry does not expire.
    public static let never = policy(.never)

    /// The entry expires when the interval of `policy` has passed since the entry was stored.
    public static func policy(_ policy: UpdatePolicy) -> EntryPolicy { EntryPolicy(.policy(policy)) }

    /// The entry expires this long after it is stored: `.after(.seconds(90))`. Rounded to whole milliseconds. The
    /// interval must be from one millisecond to 9,000,000,000 seconds (about 285 years); otherwise the call that stores
    /// the entry throws `invalidArgument`. For a given deadline, which may be in the past, use
    /// ``until(millisecondsSince1970:)``.
    public static func after(_ duration: Duration) -> EntryPolicy { EntryPolicy(.duration(duration)) }

    /// The entry expires this many seconds after it is stored (with fractions; not NaN). Limits as for ``after(_:)``.
    public static func seconds(_ count: Double) -> EntryPolicy { EntryPolicy(.seconds(count)) }
    /// The entry expires this many minutes after it is stored. Limits as for ``after(_:)``.
    public static func minutes(_ count: Double) -> EntryPolicy { seconds(count * 60) }
    /// The entry expires this many hours after it is stored. Limits as for ``after(_:)``.
    public static func hours(_ count: Double) -> EntryPolicy { seconds(count * 3_600) }
    /// The entry expires this many days of 24 hours after it is stored. Limits as for ``after(_:)``.
    public static func days(_ count: Double) -> EntryPolicy { seconds(count * 86_400) }

    /// A deadline whose computation returned NaN. The call that stores the entry throws `invalidArgument`.
    package static let untilNotANumber = EntryPolicy(.untilNotANumber)

    /// The entry expires at this time, in milliseconds since 1970; if that is in the past, immediately. The call that
    /// stores the entry throws `invalidArgument` for times after the year 5138; for no expiry use ``never``.
    public static func until(millisecondsSince1970 instant: Int64) -> EntryPolicy { EntryPolicy(.until(instant)) }

    // MARK: Grace and jitter

    /// Returns the same lifetime with its own grace in place of the database's: `.hours(1).grace(.seconds(600))`.
    ///
    /// From its deadline to the end of its grace, the entry is *stale*. Calls that fetch may return the stale entry
    /// while they fetch the new value. For all other calls it has expired. The grace is rounded to whole milliseconds.
    /// Zero means no grace. The call that stores the entry throws `invalidArgument` if the grace is negative or more
    /// than 9,000,000,000 seconds. Redis has no grace: a client of Redis stores the entry without one.
    public func grace(_ duration: Duration) -> EntryPolicy {
        var policy = self
        policy.ownGrace = duration
        return policy
    }

    /// Returns the same lifetime, but shortened at random by at most `percent` percent when the entry is stored. So
    /// entries that are stored together do not expire together: `.hours(1).jitter(percent: 10)` is 54 to 60 minutes.
    ///
    /// An entry with a jitter has its own deadline. A jitter has no effect on ``never`` and ``keep``. The call that
    /// stores the entry throws `invalidArgument` unless `percent` is in 0...100.
    public func jitter(percent: Int) -> EntryPolicy {
        var policy = self
        policy.ownJitter = percent
        return policy
    }
}

extension EntryPolicy: CustomStringConvertible {
    /// The policy as text: `database`, `keep`, an interval in the format of ``UpdatePolicy`` (`low`, `every:90`), or
    /// `until:` and milliseconds since 1970. An invalid interval is printed unchanged. If there is a grace or a jitter,
    /// it follows: `every:90 grace:10 jitter:5%`.
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
    /// An ``EntryPolicy`` after validation.
    package struct Checked: Hashable, Sendable {
        package enum Lifetime: Hashable, Sendable {
            case governed
            case keep
            case policy(UpdatePolicy)
            /// The deadline in milliseconds since 1970; not negative.
            case until(Int64)
        }

        package let lifetime: Lifetime
        /// The grace in milliseconds. Nil means the database's grace, or with `keep` the grace of the replaced entry.
        package let grace: Int64?
        /// The jitter in percent. Nil means the database's jitter if the lifetime is `governed`, otherwise no jitter.
        package let jitter: Int?

        /// The checked form of ``EntryPolicy/database``.
        package static let governed = Checked(lifetime: .governed, grace: nil, jitter: nil)
    }

    /// The error for an invalid policy.
    package struct Impossible: Error {
        package let message: String
    }

    /// The latest deadline that an entry can have, in milliseconds since 1970: in the year 5138.
    package static let latestMilliseconds: Int64 = 100_000_000_000_000

    package func checked() throws(Impossible) -> Checked {
        Checked(
            lifetime: try checkedLifetime(),
            grace: try ownGrace.map { (grace) throws(Impossible) in try Self.checked(grace: grace) },
            jitter: try ownJitter.map { (jitter) throws(Impossible) in try Self.checked(jitter: jitter) })
    }

    /// The error message for a call that changes the lifetime of a stored entry and specifies a grace.
    package static let graceStays =
        "the grace of a stored entry cannot be changed: omit the grace, or store the entry again"

    /// Returns a valid grace in milliseconds.
    package static func checked(grace: Duration) throws(Impossible) -> Int64 {
        let milliseconds = grace.roundedMilliseconds
        guard let milliseconds, (0...UpdatePolicy.longestMilliseconds).contains(milliseconds) else {
            throw Impossible(
                message: "invalid grace \(grace): it must be at least 0 seconds and at most "
                    + "\(UpdatePolicy.longestMilliseconds / 1000)")
        }
        return milliseconds
    }

    /// Returns a valid jitter in percent.
    package static func checked(jitter: Int) throws(Impossible) -> Int {
        guard (0...Jitter.percentMax).contains(jitter) else {
            throw Impossible(
                message: "invalid jitter of \(jitter) percent: it must be from 0 to \(Jitter.percentMax)")
        }
        return jitter
    }

    /// Formats a grace in milliseconds for the daemon's commands: in seconds, with a fraction if necessary.
    package static func graceText(_ milliseconds: Int64) -> String {
        let (seconds, rest) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        return rest == 0 ? "\(seconds)" : "\(seconds)." + String(1000 + rest).dropFirst()
    }

    private func checkedLifetime() throws(Impossible) -> Checked.Lifetime {
        switch kind {
        case .governed: return .governed
        case .keep: return .keep
        case .policy(let policy): return .policy(try policy.checked())
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
    /// The duration rounded to whole milliseconds; nil if it is longer than any policy allows.
    package var roundedMilliseconds: Int64? {
        let (seconds, attoseconds) = components
        // In this range, the conversion to milliseconds cannot overflow.
        let most = UpdatePolicy.longestMilliseconds / 1000
        guard (-most...most).contains(seconds) else { return nil }
        let half: Int64 = attoseconds < 0 ? -500_000_000_000_000 : 500_000_000_000_000
        return seconds * 1000 + (attoseconds + half) / 1_000_000_000_000_000
    }
}

extension UpdatePolicy {
    static func checked(_ duration: Duration) throws(EntryPolicy.Impossible) -> UpdatePolicy {
        try checked(every(milliseconds: duration.roundedMilliseconds ?? 0), "\(duration)")
    }

    /// Like ``every(_:)-(Double)``, but throws an error that describes the valid range.
    static func checked(_ seconds: Double) throws(EntryPolicy.Impossible) -> UpdatePolicy {
        try checked(every(seconds), "of \(seconds) seconds")
    }

    /// Returns the policy, or throws an error that describes the valid range.
    package func checked() throws(EntryPolicy.Impossible) -> UpdatePolicy {
        guard let interval = intervalMilliseconds else { return self }
        return try Self.checked(Self.every(milliseconds: interval), "'\(self)'")
    }

    private static func checked(_ policy: UpdatePolicy?, _ text: String) throws(EntryPolicy.Impossible) -> UpdatePolicy
    {
        if let policy { return policy }
        throw EntryPolicy.Impossible(
            message: "invalid interval \(text): it must be at least 0.001 seconds and at most "
                + "\(longestMilliseconds / 1000); use the policy 'never' for entries that do not expire")
    }
}
