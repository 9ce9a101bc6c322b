import LarderEngine
import LarderServices

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
        case checked(@Sendable (ServerState, String) -> Result<@Sendable (ServerState) -> Void, UsageError>)
    }

    /// Redis' error for a setting that cannot be changed while the daemon runs.
    static let immutable = "can't set immutable config"

    /// Whether CONFIG SET can change the setting.
    var isChangeable: Bool { if case .checked = change { true } else { false } }

    init(_ name: String, _ change: Change = .never, _ get: @escaping @Sendable (ServerState) -> String) {
        (self.name, self.get, self.change) = (name, get, change)
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
                    return .failure(UsageError("argument couldn't be parsed into an integer"))
                }
                guard range.contains(value) else {
                    return .failure(
                        UsageError("argument must be between \(range.lowerBound) and \(range.upperBound) inclusive"))
                }
                if let problem = check(server, value) { return .failure(UsageError(problem)) }
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
                    return .failure(UsageError("argument must be 'yes' or 'no'"))
                }
                guard (text.lowercased() == "yes") == value else { return .failure(UsageError(immutable)) }
                return .success { _ in }
            },
            { _ in value ? "yes" : "no" })
    }

    /// Parses a number of bytes as Redis does: `100`, `64mb`, `1GB`, or `2k`, which is 2000. A text that Redis would
    /// refuse is parsed as on the command line.
    static func bytes(_ text: String) -> Int64? { ByteCount.parse(text, letters: .decimal) }
}

/// Redis' setting `client-output-buffer-limit`: limits for the output that a client has not read. Each class of clients
/// has three values: a hard limit and a soft limit, in bytes, and a number of seconds. A client above the hard limit is
/// disconnected, and so is a client that stays above the soft limit for more than these seconds. 0 means no limit.
///
/// The class `pubsub` contains subscribers (`--max-subscriber-output`). Only its limits can be changed while the daemon
/// runs. The class `normal` contains other clients. If such a client is above the soft limit, the daemon stops reading
/// from it, and disconnects a client that reads nothing for `--reply-timeout`. `slave` exists only for compatibility:
/// there are no replicas.
extension Setting {
    /// The largest limit in bytes. Larger values are reduced to it.
    private static let outputLimitMax = Int64(1) << 50

    private static func fixed(_ limits: Limits) -> [(name: String, limit: [Int64])] {
        [
            ("normal", [0, Int64(limits.outputBytesPause), limits.outputStallMilliseconds / 1000]),
            ("slave", [0, 0, 0]),
        ]
    }

    @Sendable static func outputLimits(_ server: ServerState) -> String {
        let settings = server.settings
        let subscribers = [
            settings.subscriberBytesMax.read(), settings.subscriberBytesSoft.read(),
            settings.subscriberSoftSeconds.read(),
        ]
        return (fixed(server.limits) + [("pubsub", subscribers.map(Int64.init))])
            .map { "\($0.name) " + $0.limit.map(String.init).joined(separator: " ") }
            .joined(separator: " ")
    }

    /// Parses one or more limits, each `class hard soft seconds`. Error messages are the same as in Redis.
    @Sendable static func changeOutputLimits(
        _ server: ServerState, _ text: String
    ) -> Result<@Sendable (ServerState) -> Void, UsageError> {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count % 4 == 0 else {
            return .failure(UsageError("Wrong number of arguments in buffer limit configuration."))
        }
        var asked: [(name: String, limit: [Int64])] = []
        for start in stride(from: 0, to: words.count, by: 4) {
            let name = words[start].lowercased()
            guard ["normal", "slave", "replica", "pubsub"].contains(name) else {
                return .failure(UsageError("Invalid client class specified in buffer limit configuration."))
            }
            let limit = [bytes(String(words[start + 1])), bytes(String(words[start + 2]))]
            guard let hard = limit[0], let soft = limit[1], let seconds = Int32(words[start + 3]), seconds >= 0 else {
                return .failure(
                    UsageError("Error in hard, soft or soft_seconds setting in buffer limit configuration."))
            }
            asked.append((name == "replica" ? "slave" : name, [hard, soft, Int64(seconds)]))
        }
        for (name, limit) in fixed(server.limits)
        where asked.contains(where: { $0.name == name && $0.limit != limit }) {
            return .failure(UsageError(immutable))
        }
        // As in Redis, the last of several limits for the same class applies.
        guard
            let new = asked.last(where: { $0.name == "pubsub" })?.limit.map({ Int(clamping: min($0, outputLimitMax)) })
        else { return .success { _ in } }
        return .success { server in
            server.settings.subscriberBytesMax.store(new[0], ordering: .relaxed)
            server.settings.subscriberBytesSoft.store(new[1], ordering: .relaxed)
            server.settings.subscriberSoftSeconds.store(new[2], ordering: .relaxed)
        }
    }
}
