/// The rule that decides how long an entry stays fresh.
public enum DeadlineRule: Hashable, Sendable {
    /// The database's current policy: `storedAt` plus its interval.
    case governed
    /// The entry's own instant, in milliseconds since 1970.
    case own(Int64)
    /// The entry's own rule: it does not expire.
    case ownNever

    /// The rule of an entry stored at `now` under a policy of its own.
    package static func policy(_ policy: UpdatePolicy, now: Int64) -> DeadlineRule {
        guard let interval = policy.intervalMilliseconds else { return .ownNever }
        return .own(now + interval)
    }
}
