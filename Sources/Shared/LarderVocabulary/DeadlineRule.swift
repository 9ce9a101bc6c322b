/// The rule that determines how long an entry stays fresh.
public enum DeadlineRule: Hashable, Sendable {
    /// The entry follows the database's current policy: it expires at `storedAt` plus the policy's interval.
    case governed
    /// The entry has its own deadline, in milliseconds since 1970.
    case own(Int64)
    /// The entry itself is marked as never expiring.
    case ownNever

    /// Returns the rule for an entry that is stored at `now` (milliseconds since 1970) with its own policy.
    package static func policy(_ policy: UpdatePolicy, now: Int64) -> DeadlineRule {
        guard let interval = policy.intervalMilliseconds else { return .ownNever }
        return .own(now + interval)
    }
}
