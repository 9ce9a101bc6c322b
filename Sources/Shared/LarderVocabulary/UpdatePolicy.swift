/// How long an entry stays fresh after it was stored.
///
/// An entry stored at time *t* with an interval *i* is fresh while *now < t + i*, and is never returned after that. The
/// default of a new database is ``lowest``: entries are kept forever only with ``never``.
public struct UpdatePolicy: Hashable, Sendable {
    /// How long an entry stays fresh, in milliseconds; nil if it does not expire.
    public let intervalMilliseconds: Int64?

    private init(milliseconds: Int64?) { intervalMilliseconds = milliseconds }

    /// 10 seconds.
    public static let highest = UpdatePolicy(milliseconds: 10_000)
    /// 1 minute.
    public static let high = UpdatePolicy(milliseconds: 60_000)
    /// 1 hour.
    public static let middle = UpdatePolicy(milliseconds: 3_600_000)
    /// 24 hours.
    public static let low = UpdatePolicy(milliseconds: 86_400_000)
    /// 7 days. The default of a new database.
    public static let lowest = UpdatePolicy(milliseconds: 604_800_000)
    /// Entries do not expire.
    public static let never = UpdatePolicy(milliseconds: nil)

    /// The longest interval: about 285 years, so that the sum of a time and an interval never overflows.
    public static let longestMilliseconds: Int64 = 9_000_000_000_000

    /// Fresh for `seconds`, in whole milliseconds.
    /// - Returns: nil unless `seconds` is at least 0.001 and at most 9,000,000,000 (about 285 years).
    public static func every(_ seconds: Double) -> UpdatePolicy? {
        guard seconds.isFinite, seconds >= 0.001, seconds <= Double(longestMilliseconds / 1000) else { return nil }
        return UpdatePolicy(milliseconds: Int64((seconds * 1000).rounded()))
    }

    /// Fresh for `milliseconds`.
    /// - Returns: nil unless `milliseconds` is in 1…``longestMilliseconds``.
    public static func every(milliseconds: Int64) -> UpdatePolicy? {
        guard milliseconds >= 1, milliseconds <= longestMilliseconds else { return nil }
        return UpdatePolicy(milliseconds: milliseconds)
    }

    /// Fresh for `count` seconds: `.seconds(90)`. For a number that is not a constant use ``every(_:)``, which returns
    /// nil instead of trapping.
    /// - Precondition: the interval is at least 1 ms and at most 9,000,000,000 seconds (about 285 years).
    public static func seconds(_ count: Double) -> UpdatePolicy {
        guard let policy = every(count) else { preconditionFailure("invalid interval of \(count) seconds") }
        return policy
    }
    /// Fresh for `count` minutes. Precondition as for ``seconds(_:)``.
    public static func minutes(_ count: Double) -> UpdatePolicy { seconds(count * 60) }
    /// Fresh for `count` hours: `.hours(24)`. Precondition as for ``seconds(_:)``.
    public static func hours(_ count: Double) -> UpdatePolicy { seconds(count * 3_600) }
    /// Fresh for `count` days of 24 hours. Precondition as for ``seconds(_:)``.
    public static func days(_ count: Double) -> UpdatePolicy { seconds(count * 86_400) }

    private static let named: [(name: String, policy: UpdatePolicy)] = [
        ("highest", .highest), ("high", .high), ("middle", .middle), ("low", .low), ("lowest", .lowest),
        ("never", .never),
    ]

    /// The values that ``init(_:)`` accepts, for messages.
    public static let syntax = "highest, high, middle, low, lowest, never, or a number of seconds"

    /// Parses a policy's name (in any case), or a number of seconds: `low`, `90`, `0.5`, `every:90`.
    public init?(_ text: String) {
        let word = text.lowercased()
        if let match = Self.named.first(where: { $0.name == word }) {
            self = match.policy
            return
        }
        let number = word.hasPrefix("every:") ? String(word.dropFirst(6)) : word
        // Double's own parser also accepts hexadecimal, "inf" and "nan"; only digits and a point are allowed here.
        guard !number.isEmpty, number.utf8.allSatisfy({ ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2E }),
            let seconds = Double(number), let policy = Self.every(seconds)
        else { return nil }
        self = policy
    }

    /// The values that ``typed(_:)`` accepts, for messages.
    package static let typedSyntax =
        "highest, high, middle, low, lowest, never, or \(TimeSpan.rule(.seconds, takesFractions: true))"

    /// Parses user input: the format of ``init(_:)``, or a duration with a unit: `90s`, `5m`.
    package static func typed(_ text: String) -> UpdatePolicy? {
        if let policy = UpdatePolicy(text) { return policy }
        // A number without a unit is in seconds, which was tried above; this one is too large.
        guard text.utf8.contains(where: { $0 < 0x30 || $0 > 0x39 }) else { return nil }
        return TimeSpan.parse(text, unit: .milliseconds).flatMap { every(milliseconds: $0) }
    }
}

extension UpdatePolicy: CustomStringConvertible {
    /// The policy's name, or `every:` and its seconds; ``init(_:)`` parses it.
    public var description: String {
        if let match = Self.named.first(where: { $0.policy == self }) { return match.name }
        guard let interval = intervalMilliseconds else { return "never" }
        let (seconds, rest) = interval.quotientAndRemainder(dividingBy: 1000)
        guard rest != 0 else { return "every:\(seconds)" }
        let fraction = String(1000 + rest).dropFirst()
        return "every:\(seconds).\(fraction)"
    }
}
