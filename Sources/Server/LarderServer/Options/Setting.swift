import LarderEngine

/// A setting of CONFIG, with its name in Redis, or with a name of our own.
struct Setting: Sendable {
    let name: String
    let get: @Sendable (ServerState) -> String
    let change: Change

    /// The effect of CONFIG SET on a setting.
    enum Change: Sendable {
        /// The setting can only be set when larderd starts: CONFIG SET returns Redis' error for immutable settings.
        case never
        /// Refused, like ``never``, unless the value is the current one: some clients set it unconditionally.
        case onlyToItself
        /// Refused with Redis' error for protected settings.
        case protected
        /// The setting can be changed if its text is valid.
        /// - Returns: the change to make, or the error in the text.
        case checked(@Sendable (ServerState, String) -> Result<@Sendable (ServerState) -> Void, Problem>)
    }

    struct Problem: Error { let text: String }

    /// Redis' error for a setting that only the command line and the file can change.
    static let immutable = "can't set immutable config"

    /// Whether CONFIG SET can change it.
    var isChangeable: Bool { if case .checked = change { true } else { false } }

    init(_ name: String, _ change: Change = .never, _ get: @escaping @Sendable (ServerState) -> String) {
        self.name = name
        self.get = get
        self.change = change
    }

    /// The setting under the option's own name, for the option's row. It accepts the same values as the command line.
    static func own(_ get: @escaping @Sendable (ServerState) -> String) -> Setting { Setting("", .never, get) }

    var isOwn: Bool { name.isEmpty }

    /// A whole number within a range.
    /// - Parameters:
    ///   - unit: the unit of a time span, which may also be given as on the command line: `5m`.
    ///   - check: returns why a number within the range is still refused, or nil.
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

    /// `yes` or `no`; only the current value is accepted.
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

    /// A number of bytes in Redis' form: `100`, `64mb`, `1GB`, `2k`, which is 2000. Texts that Redis would refuse are
    /// parsed as on the command line.
    static func bytes(_ text: String) -> Int64? { ByteCount.parse(text, letters: .decimal) }
}
