import LarderEngine

/// A setting of CONFIG. Some settings have their name from Redis, others have a name of Larder.
struct Setting: Sendable {
    let name: String
    let get: @Sendable (ServerState) -> String
    let change: Change

    /// What CONFIG SET does with a setting.
    enum Change: Sendable {
        /// The setting can only be set when larderd starts: CONFIG SET returns Redis' error for immutable settings.
        case never
        /// Like ``never``, except that CONFIG SET accepts the current value, which some clients always set.
        case currentValueOnly
        /// CONFIG SET returns Redis' error for protected settings.
        case protected
        /// The setting can be changed. The closure checks the new text.
        /// - Returns: a function that makes the change, or the error in the text.
        case checked(@Sendable (ServerState, String) -> Result<@Sendable (ServerState) -> Void, Problem>)
    }

    struct Problem: Error { let text: String }

    /// Redis' error for a setting that cannot be changed while the daemon runs.
    static let immutable = "can't set immutable config"

    /// Whether CONFIG SET can change the setting.
    var isChangeable: Bool { if case .checked = change { true } else { false } }

    init(_ name: String, _ change: Change = .never, _ get: @escaping @Sendable (ServerState) -> String) {
        self.name = name
        self.get = get
        self.change = change
    }

    /// Creates the setting with the name of an option. ``DaemonOption`` sets the name and the effect of CONFIG SET.
    static func own(_ get: @escaping @Sendable (ServerState) -> String) -> Setting { Setting("", .never, get) }

    var isOwn: Bool { name.isEmpty }

    /// Creates a setting whose value is a whole number in a range.
    /// - Parameters:
    ///   - unit: the unit of a time span; values such as `5m` are then valid too. Nil for other numbers.
    ///   - check: returns the reason to refuse a number that is in the range; nil to accept it.
    static func number(
        _ name: String, _ range: ClosedRange<Int64>, unit: TimeSpan.Unit? = nil,
        get: @escaping @Sendable (ServerState) -> Int64,
        check: @escaping @Sendable (ServerState, Int64) -> String? = { _, _ in nil },
        set: @escaping @Sendable (ServerState, Int64) -> Void
    ) -> Setting {
        Setting(
            name,
            .checked { server, text in
                guard let value = Int64(text) ?? unit.flatMap({ TimeSpan.parse(text, unit: $0) }) else {
                    return .failure(Problem(text: "argument couldn't be parsed into an integer"))
                }
                guard range.contains(value) else {
                    return .failure(
                        Problem(
                            text: "argument must be between \(range.lowerBound) and \(range.upperBound) inclusive"))
                }
                if let problem = check(server, value) { return .failure(Problem(text: problem)) }
                return .success { set($0, value) }
            },
            { String(get($0)) })
    }

    /// Creates a setting that is `yes` or `no` and cannot change: CONFIG SET accepts only the current value.
    static func yesNo(_ name: String, _ value: Bool) -> Setting {
        Setting(
            name,
            .checked { _, text in
                guard ["yes", "no"].contains(text.lowercased()) else {
                    return .failure(Problem(text: "argument must be 'yes' or 'no'"))
                }
                guard (text.lowercased() == "yes") == value else {
                    return .failure(Problem(text: immutable))
                }
                return .success { _ in }
            },
            { _ in value ? "yes" : "no" })
    }

    /// Parses a number of bytes as Redis does: `100`, `64mb`, `1GB`, or `2k`, which is 2000. A text that Redis would
    /// refuse is parsed as on the command line.
    static func bytes(_ text: String) -> Int64? { ByteCount.parse(text, letters: .decimal) }
}
