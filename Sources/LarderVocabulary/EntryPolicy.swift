/// How long one entry stays fresh, said when it is stored.
///
/// ``database``, the default, leaves it to the database's policy, also when that is changed later. Everything else is
/// the entry's own rule, which later changes of the database's policy do not touch.
///
/// No value is nil: a lifetime that a program computes and that is not possible is refused by the call that stores the
/// entry, and never taken for the database's policy.
public struct EntryPolicy: Hashable, Sendable {
    private enum Kind: Hashable {
        case governed
        case policy(UpdatePolicy)
        case seconds(Double)
        case milliseconds(Int64)
        case until(Int64)
        case untilNotANumber
    }

    private let kind: Kind

    private init(_ kind: Kind) { self.kind = kind }

    /// The entry follows the database's policy, whatever it is when the entry is read. The default.
    public static let database = EntryPolicy(.governed)

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

    /// `seconds` from the moment of storing, kept to whole milliseconds. The call that stores the entry throws
    /// `invalidArgument` unless they are at least 0.001 and at most 9,000,000,000 (about 285 years): 0, what is negative
    /// and what is no number are errors. An entry that is to end at an instant, which may be in the past, takes
    /// ``until(millisecondsSince1970:)``.
    public static func every(_ seconds: Double) -> EntryPolicy { EntryPolicy(.seconds(seconds)) }

    /// As ``every(_:)``, in milliseconds: from 1 to 9,000,000,000,000.
    public static func every(milliseconds: Int64) -> EntryPolicy { EntryPolicy(.milliseconds(milliseconds)) }

    /// Until an instant that was computed and is no number. The call that stores the entry throws `invalidArgument`.
    package static let untilNotANumber = EntryPolicy(.untilNotANumber)

    /// Until an instant, in milliseconds since 1970. In the past means expired at once. The call that stores the entry
    /// throws `invalidArgument` for instants after the year 5138: for ever is ``never``.
    public static func until(millisecondsSince1970 instant: Int64) -> EntryPolicy { EntryPolicy(.until(instant)) }
}

extension EntryPolicy {
    /// An ``EntryPolicy`` whose numbers were checked.
    package enum Checked: Hashable, Sendable {
        case governed
        case policy(UpdatePolicy)
        /// In milliseconds since 1970, from 0 on.
        case until(Int64)
    }

    /// Why a policy is impossible, in words for an error's message.
    package struct Impossible: Error {
        package let message: String
    }

    /// The latest instant that an entry can have as its own: in the year 5138, in milliseconds since 1970.
    package static let latestMilliseconds: Int64 = 100_000_000_000_000

    package func checked() throws(Impossible) -> Checked {
        switch kind {
        case .governed: return .governed
        case .policy(let policy): return .policy(policy)
        case .seconds(let seconds): return .policy(try UpdatePolicy.checked(seconds))
        case .milliseconds(let milliseconds):
            guard let policy = UpdatePolicy.every(milliseconds: milliseconds) else {
                throw Impossible(
                    message: "an interval of \(milliseconds) milliseconds is not possible: it must be at least 1 and "
                        + "at most \(UpdatePolicy.longestMilliseconds); use the policy 'never' for entries that do not "
                        + "expire")
            }
            return .policy(policy)
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
