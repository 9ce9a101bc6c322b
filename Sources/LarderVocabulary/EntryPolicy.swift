/// How long one entry stays fresh; a parameter of the calls that store it.
///
/// ``database``, the default, leaves the lifetime to the database's policy, even if that changes later. Everything else
/// is the entry's own rule, which is not affected by later changes of the database's policy.
///
/// No policy is nil: if a program computes an impossible lifetime, the call that stores the entry refuses it, and never
/// replaces it by the database's policy.
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

    /// Until a computed instant that is not a number. The call that stores the entry throws `invalidArgument`.
    package static let untilNotANumber = EntryPolicy(.untilNotANumber)

    /// Until an instant, in milliseconds since 1970. An instant in the past means that the entry is expired at once.
    /// The call that stores the entry throws `invalidArgument` for instants after the year 5138; for no expiry use
    /// ``never``.
    public static func until(millisecondsSince1970 instant: Int64) -> EntryPolicy { EntryPolicy(.until(instant)) }
}

extension EntryPolicy: CustomStringConvertible {
    /// `database`, `keep`, an interval as ``UpdatePolicy`` is written (`low`, `every:90`), or `until:` and milliseconds
    /// since 1970. An impossible interval appears as it was given.
    public var description: String {
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
    package enum Checked: Hashable, Sendable {
        case governed
        case keep
        case policy(UpdatePolicy)
        /// In milliseconds since 1970, from 0 on.
        case until(Int64)
    }

    /// Why a policy is impossible: the text of an error.
    package struct Impossible: Error {
        package let message: String
    }

    /// The latest deadline that an entry can have: in the year 5138, in milliseconds since 1970.
    package static let latestMilliseconds: Int64 = 100_000_000_000_000

    package func checked() throws(Impossible) -> Checked {
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

extension UpdatePolicy {
    static func checked(_ duration: Duration) throws(EntryPolicy.Impossible) -> UpdatePolicy {
        let (seconds, attoseconds) = duration.components
        // Seconds in this range cannot overflow as milliseconds; other values are refused.
        let range = -longestMilliseconds / 1000...longestMilliseconds / 1000
        let milliseconds =
            range.contains(seconds) ? seconds * 1000 + (attoseconds + 500_000_000_000_000) / 1_000_000_000_000_000 : 0
        guard let policy = UpdatePolicy.every(milliseconds: milliseconds) else {
            throw EntryPolicy.Impossible(
                message: "an interval of \(duration) is not possible: it must be at least 0.001 seconds and at most "
                    + "\(longestMilliseconds / 1000); use the policy 'never' for entries that do not expire")
        }
        return policy
    }

    /// ``every(_:)-(Double)`` with an error that says what is allowed.
    package static func checked(_ seconds: Double) throws(EntryPolicy.Impossible) -> UpdatePolicy {
        guard let policy = UpdatePolicy.every(seconds) else {
            throw EntryPolicy.Impossible(
                message: "an interval of \(seconds) seconds is not possible: it must be at least 0.001 and at most "
                    + "\(longestMilliseconds / 1000); use the policy 'never' for entries that do not expire")
        }
        return policy
    }
}
