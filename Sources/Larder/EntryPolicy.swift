/// How long one entry stays fresh, said when it is stored.
///
/// ``database``, the default, leaves it to the database's policy, also when that is changed later. Everything else is
/// the entry's own rule, which later changes of the database's policy do not touch.
public struct EntryPolicy: Hashable, Sendable {
    private enum Kind: Hashable {
        case governed
        case policy(UpdatePolicy)
        case seconds(Double)
        case until(Int64)
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
    /// ``LarderError/Code/invalidArgument`` unless they are at least 0.001 and at most 9,000,000,000 (about 285 years).
    public static func every(_ seconds: Double) -> EntryPolicy { EntryPolicy(.seconds(seconds)) }

    /// Until an instant, in milliseconds since 1970. In the past means expired at once. The call that stores the entry
    /// throws ``LarderError/Code/invalidArgument`` for instants after the year 5138: for ever is ``never``.
    public static func until(millisecondsSince1970 instant: Int64) -> EntryPolicy { EntryPolicy(.until(instant)) }
}

extension EntryPolicy {
    /// An ``EntryPolicy`` whose numbers were checked.
    enum Checked: Hashable, Sendable {
        case governed
        case policy(UpdatePolicy)
        case until(Int64)

        /// The rule of an entry that is stored at `now`.
        /// - Parameter ahead: how far the larder's time is ahead of the clock, by which instants are meant.
        func rule(now: Int64, ahead: @autoclosure () -> Int64) -> DeadlineRule {
            switch self {
            case .governed: .governed
            case .policy(let policy): .policy(policy, now: now)
            case .until(let instant): .own(instant + ahead())
            }
        }
    }

    func checked(_ database: String?, _ key: Key) throws(LarderError) -> Checked {
        switch kind {
        case .governed: return .governed
        case .policy(let policy): return .policy(policy)
        case .seconds(let seconds):
            return .policy(try UpdatePolicy.checked(seconds, "set", database, key.description))
        case .until(let instant):
            guard instant <= EngineTime.latestMilliseconds else {
                throw LarderError(
                    .invalidArgument,
                    "the deadline \(instant) ms since 1970 is after \(EngineTime.latestMilliseconds); "
                        + "use the policy 'never' for an entry that does not expire",
                    operation: "set", database: database, key: key.description)
            }
            return .until(max(0, instant))
        }
    }
}

extension UpdatePolicy {
    /// ``every(_:)`` with an error that says what is allowed.
    static func checked(_ seconds: Double, _ operation: String, _ database: String?, _ key: String? = nil)
        throws(LarderError) -> UpdatePolicy
    {
        guard let policy = UpdatePolicy.every(seconds) else {
            throw LarderError(
                .invalidArgument,
                "an interval of \(seconds) seconds is not possible: it must be at least 0.001 and at most "
                    + "\(longestMilliseconds / 1000); use the policy 'never' for entries that do not expire",
                operation: operation, database: database, key: key)
        }
        return policy
    }
}
