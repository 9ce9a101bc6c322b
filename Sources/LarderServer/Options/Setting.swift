import LarderEngine

/// One setting as CONFIG shows it, under the name that Redis has for it, or ours.
struct Setting: Sendable {
    let name: String
    let get: @Sendable (ServerState) -> String
    let change: Change

    /// What CONFIG SET does with it.
    enum Change: Sendable {
        /// It is given when larderd starts: Redis' error for those that cannot be changed.
        case never
        /// As ``never``, where setting what it is already is no error, because clients set it without asking.
        case onlyToItself
        /// As ``never``, for those that Redis does not let clients change because of what could be done with them.
        case protected
        /// Checks a text.
        /// - Returns: what is to be done, or why the text is wrong.
        case checked(@Sendable (ServerState, String) -> Result<@Sendable (ServerState) -> Void, Problem>)
    }

    struct Problem: Error { let text: String }

    /// What Redis says of a setting that only its command line and its file can change.
    static let immutable = "can't set immutable config"

    /// Whether CONFIG SET can change it.
    var isChangeable: Bool { if case .checked = change { true } else { false } }

    init(_ name: String, _ change: Change = .never, _ get: @escaping @Sendable (ServerState) -> String) {
        self.name = name
        self.get = get
        self.change = change
    }

    /// A whole number within a range.
    /// - Parameter check: why a number is refused all the same; nil where it is not.
    static func number(
        _ name: String, _ range: ClosedRange<Int64>, get: @escaping @Sendable (ServerState) -> Int64,
        check: @escaping @Sendable (ServerState, Int64) -> String? = { _, _ in nil },
        set: @escaping @Sendable (ServerState, Int64) -> Void
    ) -> Setting {
        Setting(
            name,
            .checked { server, text in
                guard let value = Int64(text) else {
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

    /// `yes` or `no`, and only what it is.
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

    /// A number of bytes as Redis takes them: `100`, `64mb`, `1GB`, `2k`, which is 2000; and as our command line does where
    /// Redis would refuse it.
    static func bytes(_ text: String) -> Int64? { ByteCount.parse(text, letters: .decimal) }
}
