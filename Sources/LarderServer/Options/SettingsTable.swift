import LarderEngine
import RESP
import Synchronization
import Threading

/// What CONFIG SET can change while the daemon runs, and is in nobody else's hands.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the texts are read and written with the lock held, the rest is atomic.
final class Settings: @unchecked Sendable {
    /// Connections at a time.
    let clientsMax: Atomic<Int>
    /// Seconds without a request after which a connection is closed; 0 for never.
    let idleSeconds = Atomic<Int>(0)
    /// What a subscriber may leave unread: see ``OutputLimit``.
    let subscriberBytesMax: Atomic<Int>
    let subscriberBytesSoft: Atomic<Int>
    let subscriberSoftSeconds: Atomic<Int>
    private let lock = Lock()
    private var texts: [String: String] = [:]

    init(limits: Limits) {
        clientsMax = Atomic(limits.clientsMax)
        subscriberBytesMax = Atomic(limits.subscriberBytesMax)
        subscriberBytesSoft = Atomic(limits.subscriberBytesSoft)
        subscriberSoftSeconds = Atomic(Int(limits.subscriberSoftMilliseconds / 1000))
    }

    /// A setting that is only kept.
    func text(_ name: String) -> String? { lock.withLock { texts[name] } }
    func keep(_ name: String, _ text: String) { lock.withLock { texts[name] = text } }
}

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

/// All settings. Adding one is a row.
enum SettingsTable {
    static func find(_ name: String) -> Setting? { byName[name.lowercased()] }

    private static let byName: [String: Setting] = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    static let all: [Setting] = [
        Setting(
            "maxmemory",
            .checked { _, text in
                guard let bytes = Setting.bytes(text) else {
                    return .failure(Setting.Problem(text: "argument must be a memory value"))
                }
                return .success { $0.engine.changeMemoryLimit(to: Int(clamping: bytes)) }
            }, { String($0.engine.memory.limitBytes) }),
        Setting("maxmemory-policy", .onlyToItself) { _ in "noeviction" },
        Setting("maxmemory-samples", .onlyToItself) { _ in "5" },
        .number(
            "timeout", 0...Int64(Int32.max), get: { Int64($0.settings.idleSeconds.read()) },
            set: { $0.settings.idleSeconds.store(Int(clamping: $1), ordering: .relaxed) }),
        .number(
            "maxclients", 1...4_294_967_295, get: { Int64($0.settings.clientsMax.read()) },
            check: { server, number in
                guard number > server.clientsPossible else { return nil }
                return "The operating system is not able to handle the specified number of clients, try with "
                    + "\(server.clientsPossible)"
            }, set: { $0.settings.clientsMax.store(Int(clamping: $1), ordering: .relaxed) }),
        Setting("databases") { _ in "16" },
        .yesNo("appendonly", true),
        Setting("appendfsync", .onlyToItself) { state in
            switch state.engine.options.durability {
            case .os: "no"
            case .everysecond: "everysec"
            case .always: "always"
            }
        },
        Setting("save", .onlyToItself) { _ in "" },
        Setting("dir", .protected) { $0.engine.directory },
        Setting("dbfilename", .protected) { _ in "" },
        Setting("unixsocket") { $0.socketPath },
        Setting("unixsocketperm") { _ in "600" },
        Setting("port") { _ in "0" },
        Setting("bind") { _ in "" },
        Setting("tcp-keepalive", .onlyToItself) { _ in "0" },
        Setting("requirepass", .onlyToItself) { _ in "" },
        Setting("io-threads") { String($0.threadCount) },
        Setting("proto-max-bulk-len", .onlyToItself) { String($0.limits.requests.bulkBytesMax) },
        Setting("client-query-buffer-limit", .onlyToItself) { String($0.limits.requests.requestBytesMax) },
        Setting("hash-max-listpack-entries", .onlyToItself) { _ in "512" },
        Setting("lua-time-limit", .onlyToItself) { _ in "5000" },
        Setting("hz", .onlyToItself) { _ in "10" },
        Setting("loglevel", .onlyToItself) { _ in "notice" },
        Setting("cluster-enabled") { _ in "no" },
        Setting("enable-debug-command") { $0.limits.allowsDebug ? "yes" : "no" },
        .number(
            "slowlog-log-slower-than", -1...Int64.max,
            get: { $0.slowLog.threshold.load(ordering: .relaxed) },
            set: {
                $0.slowLog.threshold.store($1, ordering: .relaxed)
                $0.noteAttention()
            }),
        .number(
            "slowlog-max-len", 0...Int64.max, get: { Int64($0.slowLog.lengthMax.read()) },
            set: { $0.slowLog.changeLength(Int(clamping: $1)) }),
        .number(
            "latency-monitor-threshold", 0...Int64.max,
            get: { $0.latency.threshold.load(ordering: .relaxed) },
            set: { $0.latency.threshold.store($1, ordering: .relaxed) }),
        Setting(
            "notify-keyspace-events",
            .checked { _, text in
                guard Notifier.isValid(text) else { return .failure(Setting.Problem(text: Notifier.eventsError)) }
                return .success { _ = $0.notifier.setEvents(text) }
            }, { $0.notifier.eventsText }),
        .number(
            "tracking-table-max-keys", 0...Int64.max, get: { Int64($0.tracking.keysMax) },
            set: { $0.tracking.changeLimit(to: Int(clamping: $1)) }),
        Setting("client-output-buffer-limit", .checked(OutputLimit.change), OutputLimit.text),
        Setting("larder-max-subscriber-output") { String($0.settings.subscriberBytesMax.read()) },
        Setting("larder-max-watched-deadlines") { String($0.limits.watchedDeadlinesMax) },
        Setting("larder-version") { _ in Version.text },
        Setting("larder-policy") { "\($0.engine.options.defaultPolicy)" },
        Setting("larder-durability") { $0.engine.options.durability.rawValue },
        Setting("larder-checkpoint") { String($0.engine.options.checkpointBytes) },
        Setting("larder-max-databases") { String($0.engine.options.databasesMax) },
        Setting("larder-max-reply") { String($0.limits.replyBytesMax) },
        Setting("larder-max-transaction") { String($0.limits.transactionBytesMax) },
        Setting("larder-reply-timeout") { String($0.limits.outputStallMilliseconds / 1000) },
        Setting("larder-max-subscriptions") { String($0.limits.subscriptionBytesMax) },
        Setting("larder-max-watched-keys") { String($0.limits.watchedKeysMax) },
    ]
}
