/// How long an entry stays fresh after it was stored: a database's policy, or a single entry's.
///
/// Thread-safe: a value.
public struct ClientPolicy: Hashable, Sendable {
    /// How long an entry stays fresh, in milliseconds; nil when it does not expire.
    public let intervalMilliseconds: Int64?

    private init(milliseconds: Int64?) { intervalMilliseconds = milliseconds }

    /// 10 seconds.
    public static let highest = ClientPolicy(milliseconds: 10_000)
    /// 1 minute.
    public static let high = ClientPolicy(milliseconds: 60_000)
    /// 1 hour.
    public static let middle = ClientPolicy(milliseconds: 3_600_000)
    /// 24 hours.
    public static let low = ClientPolicy(milliseconds: 86_400_000)
    /// 7 days. The default of a new database.
    public static let lowest = ClientPolicy(milliseconds: 604_800_000)
    /// Entries do not expire.
    public static let never = ClientPolicy(milliseconds: nil)

    /// The longest interval: about 285 years.
    public static let longestMilliseconds: Int64 = 9_000_000_000_000

    /// Fresh for `seconds`, kept to whole milliseconds.
    /// - Returns: nil unless `seconds` is at least 0.001 and at most 9,000,000,000 (about 285 years).
    public static func every(_ seconds: Double) -> ClientPolicy? {
        guard seconds.isFinite, seconds >= 0.001, seconds <= Double(longestMilliseconds / 1000) else { return nil }
        return ClientPolicy(milliseconds: Int64((seconds * 1000).rounded()))
    }

    /// Fresh for `milliseconds`.
    /// - Returns: nil unless `milliseconds` is in 1…``longestMilliseconds``.
    public static func every(milliseconds: Int64) -> ClientPolicy? {
        guard milliseconds >= 1, milliseconds <= longestMilliseconds else { return nil }
        return ClientPolicy(milliseconds: milliseconds)
    }

    private static let named: [(name: String, policy: ClientPolicy)] = [
        ("highest", .highest), ("high", .high), ("middle", .middle), ("low", .low), ("lowest", .lowest),
        ("never", .never),
    ]

    /// What ``init(_:)`` accepts, for messages.
    public static let syntax = "highest, high, middle, low, lowest, never, or a number of seconds"

    /// Reads a policy's name (in any case), or a number of seconds: `low`, `90`, `0.5`, `every:90`.
    public init?(_ text: String) {
        let word = text.lowercased()
        if let match = Self.named.first(where: { $0.name == word }) {
            self = match.policy
            return
        }
        let number = word.hasPrefix("every:") ? String(word.dropFirst(6)) : word
        // Double's own parser also takes hexadecimal, "inf" and "nan": only digits and a point are meant here.
        guard !number.isEmpty, number.utf8.allSatisfy({ ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2E }),
            let seconds = Double(number), let policy = Self.every(seconds)
        else { return nil }
        self = policy
    }

    /// The policy with the interval that the server tells: milliseconds, or -1 for never.
    init?(serverInterval milliseconds: Int64) {
        if milliseconds == -1 {
            self = .never
        } else if milliseconds >= 1 {
            self.init(milliseconds: milliseconds)
        } else {
            return nil
        }
    }
}

extension ClientPolicy: CustomStringConvertible {
    /// The policy's name, or `every:` and its seconds; ``init(_:)`` and the server read it back.
    public var description: String {
        if let match = Self.named.first(where: { $0.policy == self }) { return match.name }
        guard let interval = intervalMilliseconds else { return "never" }
        let (seconds, rest) = interval.quotientAndRemainder(dividingBy: 1000)
        guard rest != 0 else { return "every:\(seconds)" }
        return "every:\(seconds).\(String(1000 + rest).dropFirst())"
    }
}
