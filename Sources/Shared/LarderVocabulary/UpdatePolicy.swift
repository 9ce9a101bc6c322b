/// How long an entry stays fresh after it was stored.
///
/// An entry that is stored at time *t* with the interval *i* is fresh while *now < t + i*. After that, only calls that
/// fetch may return it, during its grace. With ``never``, entries do not expire. The default of a new database is
/// ``lowest`` (7 days).
public struct UpdatePolicy: Hashable, Sendable {
    /// How long an entry stays fresh, in milliseconds; nil if it does not expire. Outside 1…``longestMilliseconds`` if
    /// the policy is invalid: see ``seconds(_:)``.
    public let intervalMilliseconds: Int64?

    private init(milliseconds: Int64?) { intervalMilliseconds = milliseconds }

    /// Entries expire after 10 seconds.
    public static let highest = UpdatePolicy(milliseconds: 10_000)
    /// Entries expire after 1 minute.
    public static let high = UpdatePolicy(milliseconds: 60_000)
    /// Entries expire after 1 hour.
    public static let middle = UpdatePolicy(milliseconds: 3_600_000)
    /// Entries expire after 24 hours.
    public static let low = UpdatePolicy(milliseconds: 86_400_000)
    /// Entries expire after 7 days. The default of a new database.
    public static let lowest = UpdatePolicy(milliseconds: 604_800_000)
    /// Entries do not expire.
    public static let never = UpdatePolicy(milliseconds: nil)

    /// The longest interval in milliseconds: about 285 years. The sum of a time and an interval never overflows.
    public static let longestMilliseconds: Int64 = 9_000_000_000_000

    /// Returns a policy with an interval of `seconds`, rounded to whole milliseconds.
    /// - Returns: nil unless `seconds` is at least 0.001 and at most 9,000,000,000 (about 285 years).
    public static func every(_ seconds: Double) -> UpdatePolicy? {
        guard seconds.isFinite, seconds >= 0.001, seconds <= Double(longestMilliseconds / 1000) else { return nil }
        return UpdatePolicy(milliseconds: Int64((seconds * 1000).rounded()))
    }

    /// Returns a policy with an interval of `milliseconds`.
    /// - Returns: nil unless `milliseconds` is in 1…``longestMilliseconds``.
    public static func every(milliseconds: Int64) -> UpdatePolicy? {
        guard milliseconds >= 1, milliseconds <= longestMilliseconds else { return nil }
        return UpdatePolicy(milliseconds: milliseconds)
    }

    /// Returns a policy with an interval of `count` seconds: `.seconds(90)`. The interval must be from one millisecond
    /// to 9,000,000,000 seconds (about 285 years); otherwise the call that uses the policy throws `invalidArgument`.
    public static func seconds(_ count: Double) -> UpdatePolicy {
        every(count) ?? UpdatePolicy(milliseconds: count > 1 ? longestMilliseconds + 1 : 0)
    }
    /// Returns a policy with an interval of `count` minutes. Limits as for ``seconds(_:)``.
    public static func minutes(_ count: Double) -> UpdatePolicy { seconds(count * 60) }
    /// Returns a policy with an interval of `count` hours: `.hours(24)`. Limits as for ``seconds(_:)``.
    public static func hours(_ count: Double) -> UpdatePolicy { seconds(count * 3_600) }
    /// Returns a policy with an interval of `count` days of 24 hours. Limits as for ``seconds(_:)``.
    public static func days(_ count: Double) -> UpdatePolicy { seconds(count * 86_400) }

    private static let named: [(name: String, policy: UpdatePolicy)] = [
        ("highest", .highest), ("high", .high), ("middle", .middle), ("low", .low), ("lowest", .lowest),
        ("never", .never),
    ]

    /// The description of the texts that ``init(_:)`` accepts, for messages.
    public static let syntax = "highest, high, middle, low, lowest, never, or a number of seconds"

    /// Parses a policy's name (in any case), or a number of seconds: `low`, `90`, `0.5`, `every:90`.
    public init?(_ text: String) {
        let word = text.lowercased()
        if let match = Self.named.first(where: { $0.name == word }) {
            self = match.policy
            return
        }
        let number = word.hasPrefix("every:") ? String(word.dropFirst(6)) : word
        // Allow only digits and a point, because `Double(_:)` would also accept hexadecimal numbers, "inf" and "nan".
        guard !number.isEmpty, number.utf8.allSatisfy({ ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2E }),
            let seconds = Double(number), let policy = Self.every(seconds)
        else { return nil }
        self = policy
    }

    /// The description of the texts that ``typed(_:)`` accepts, for messages.
    package static let typedSyntax =
        "highest, high, middle, low, lowest, never, or \(TimeSpan.rule(.seconds, takesFractions: true)); at least 1ms"

    /// Parses user input: the format of ``init(_:)``, or a duration with a unit: `90s`, `5m`.
    package static func typed(_ text: String) -> UpdatePolicy? {
        if let policy = UpdatePolicy(text) { return policy }
        // A number without a unit is parsed above as seconds. If that failed, it is out of range.
        guard text.utf8.contains(where: { $0 < 0x30 || $0 > 0x39 }) else { return nil }
        return TimeSpan.parse(text, unit: .milliseconds).flatMap { every(milliseconds: $0) }
    }
}

extension UpdatePolicy: CustomStringConvertible {
    /// The policy's name, or `every:` followed by the interval in seconds. ``init(_:)`` accepts this text.
    public var description: String {
        if let match = Self.named.first(where: { $0.policy == self }) { return match.name }
        guard let interval = intervalMilliseconds else { return "never" }
        let (seconds, rest) = interval.quotientAndRemainder(dividingBy: 1000)
        guard rest != 0 else { return "every:\(seconds)" }
        let fraction = String(1000 + rest).dropFirst()
        return "every:\(seconds).\(fraction)"
    }
}
