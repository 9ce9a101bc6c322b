import LarderEngine
import Synchronization

/// larderd's options. To add an option, add an element here. The command line, the configuration file, `--help`,
/// CONFIG, the manual page and the table in docs/Operating.md are all generated from these elements.
extension DaemonOption {
    package static let all: [DaemonOption] = groups.flatMap { $0 }

    /// The options, in the groups of `--help`.
    package static let groups: [[DaemonOption]] = [configuring, serving, purging, checking, telling]

    /// Options for serving. Only these are allowed in a configuration file.
    package static let serving = main + origins + granting + redisCompatible + logging

    /// Returns an option that sets one of the limits when larderd starts.
    static func limit<Value: BinaryInteger & Sendable>(
        _ name: String, _ value: String, _ help: [String],
        _ limit: any WritableKeyPath<Limits, Value> & Sendable,
        _ parse: @escaping @Sendable (OptionValue) throws -> Value
    ) -> DaemonOption {
        DaemonOption(name, value, help, settings: [.own { String($0.limits[keyPath: limit]) }]) {
            $0.configuration.limits[keyPath: limit] = try parse($1)
        }
    }

    private static let main: [DaemonOption] = [
        DaemonOption(
            "--dir", "PATH",
            [
                "the larder's directory; created with mode 0700 if it is missing",
                "(default: /var/cache/larder for root, else $XDG_CACHE_HOME/larder, else ~/.cache/larder)",
            ],
            settings: [Setting("dir", .protected) { $0.engine.directory }]
        ) {
            $0.configuration.directory = try $1.path()
            $0.hasDirectory = true
        },
        DaemonOption(
            "--socket", "PATH",
            [
                "the socket to listen on",
                "(default: $LARDER_SOCKET, else /run/larder/larder.sock for root,",
                "else $XDG_RUNTIME_DIR/larder/larder.sock, else /tmp/larder-UID/larder.sock)",
            ],
            settings: [
                .own { $0.socketPath }, Setting("unixsocket") { $0.socketPath },
            ]
        ) { $0.configuration.socketPath = try $1.path() },
        DaemonOption(
            "--socket-mode", "MODE",
            ["the mode of the socket, as for chmod (default: 600, and 660 with --socket-group)"],
            settings: [
                .own { $0.socketAccess.modeText }, Setting("unixsocketperm") { $0.socketAccess.modeText },
            ]
        ) { $0.configuration.socketAccess.mode = try $1.mode() },
        DaemonOption(
            "--socket-group", "GROUP",
            ["the group of the socket, and of its directory if that is created: a name or a number"],
            settings: [.own { $0.socketAccess.group.map { String($0) } ?? "" }]
        ) { $0.configuration.socketAccess.group = try $1.group() },
        DaemonOption(
            "--policy", "POLICY",
            [
                "how long entries of new databases stay fresh: highest (10 s), high (1 min),",
                "middle (1 h), low (24 h), lowest (7 days), never, or a TIME: seconds, or 90s, 15m",
                "(default: lowest); existing databases keep their policy",
            ],
            settings: [.own { "\($0.engine.options.defaultPolicy)" }]
        ) { $0.configuration.engine.defaultPolicy = try $1.policy() },
        DaemonOption(
            "--durability", "LEVEL",
            [
                "what an acknowledged write survives: os (a crash of the daemon), everysecond",
                "(fsync at least once a second), always (fsync before the reply)",
                "(default: everysecond)",
            ],
            settings: [
                .own { $0.engine.options.durability.rawValue },
                Setting("appendfsync", .currentValueOnly) { state in
                    switch state.engine.options.durability {
                    case .os: "no"
                    case .everysecond: "everysec"
                    case .always: "always"
                    }
                },
            ]
        ) {
            $0.configuration.engine.durability = try $1.oneOf(
                Durability.allCases.map(\.rawValue).joined(separator: ", ")
            ) { Durability(rawValue: $0) }
        },
        DaemonOption(
            "--memory", "BYTES",
            [
                "memory of larderd, such as 256M: at least half of it for hot entries; 0 for none of them.",
                "A checkpoint begins when entries that are not in LevelDB take half of it, or 32M",
                "(default: a 16th of the machine's or container's, from 16M to 512M)",
            ],
            settings: [
                .own { String($0.engine.memory.limitBytes) },
                Setting(
                    "maxmemory",
                    .checked { _, text in
                        guard let bytes = Setting.bytes(text) else {
                            return .failure(UsageError("argument must be a memory value"))
                        }
                        return .success { $0.engine.changeMemoryLimit(to: Int(clamping: bytes)) }
                    }, { String($0.engine.memory.limitBytes) }),
            ], live: Live { $0.engine.changeMemoryLimit(to: $1.configuration.engine.memoryBytes) }
        ) { $0.configuration.setMemory(try $1.byteCount()) },
        DaemonOption(
            "--max-disk", "BYTES",
            [
                "limit for all files of the larder, at least 16M; a full budget, or a full file system,",
                "evicts the least valuable entries. Files can exceed it briefly by one checkpoint and one",
                "compaction: 1/32 of the limit, and 26 to 52 MiB (docs/Limits.md);",
                "0 or none for no limit (default: a tenth of the file system, from 16M to 8G)",
            ],
            settings: [.own { String($0.engine.diskLimitBytes ?? 0) }],
            live: Live { $0.engine.changeDiskLimit(to: $1.configuration.diskBytesMax) }
        ) {
            $0.configuration.diskBytes = try $1.parsed(ServerConfiguration.diskLimitRule) {
                ServerConfiguration.diskLimit($0)
            }
        },
        DaemonOption(
            "--max-change-log", "BYTES",
            [
                "memory for the latest changes of databases with followers (CHANGES); a follower that falls",
                "behind by more starts with a full pass; at least 4K (default: 32M)",
            ],
            settings: [.own { String($0.engine.options.changeLogBytes) }]
        ) { $0.configuration.engine.changeLogBytes = try $1.byteCount(least: 4096) },
        DaemonOption(
            "--checkpoint", "BYTES",
            [
                "size of the journal that starts a checkpoint, which writes entries to the databases;",
                "a smaller one saves disk and memory; below 1M (tests), writers wait; from 1K (default: 64M)",
            ],
            settings: [.own { String($0.engine.options.checkpointBytes) }]
        ) { $0.configuration.setCheckpoint(try $1.byteCount(least: ServerConfiguration.checkpointBytesMin)) },
        DaemonOption(
            "--threads", "N",
            ["event loops, 1 to 64 (default: 1)"],
            settings: [
                .own { String($0.threadCount) }, Setting("io-threads") { String($0.threadCount) },
            ]
        ) { $0.configuration.threads = try $1.number(1...64) },
        DaemonOption(
            "--max-clients", "N",
            [
                "maximum open connections (default: 10000); fewer if the limit of open descriptors",
                "(ulimit -n) leaves too few for the larder's files, which is logged",
            ],
            settings: [
                .own { String($0.clientsMax) },
                .number(
                    "maxclients", 1...4_294_967_295, get: { Int64($0.clientsMax) },
                    check: { tooManyClients($0, $1) },
                    set: { $0.settings.clientsMax.store(Int(clamping: $1), ordering: .relaxed) }),
            ],
            live: Live(
                problem: { tooManyClients($0, Int64($1.configuration.limits.clientsMax)) },
                set: { $0.settings.clientsMax.store($1.configuration.limits.clientsMax, ordering: .relaxed) })
        ) { $0.configuration.limits.clientsMax = try $1.number(1...1_000_000) },
        DaemonOption(
            "--max-databases", "N",
            ["databases in the larder (default: 64)"],
            settings: [.own { String($0.engine.options.databasesMax) }]
        ) { $0.configuration.engine.databasesMax = try $1.number(1...10_000) },
        DaemonOption(
            "--notify-keyspace-events", "FLAGS",
            [
                "keyspace events to publish, as in Redis: K, E or both, and A or some of",
                "g $ x e n (default: none)",
            ],
            settings: [
                Setting(
                    "notify-keyspace-events",
                    .checked { _, text in
                        guard Notifier.isValid(text) else { return .failure(UsageError(Notifier.eventsError)) }
                        return .success { _ = $0.notifier.setEvents(text) }
                    }, { $0.notifier.eventsText })
            ], live: Live { _ = $0.notifier.setEvents($1.configuration.keyspaceEvents) }
        ) { $0.configuration.keyspaceEvents = try $1.events() },
        DaemonOption(
            "--max-tracked-keys", "N",
            ["maximum keys tracked for all clients with CLIENT TRACKING (default: 1000000)"],
            settings: [
                .own { String($0.tracking.keysMax) },
                .number(
                    "tracking-table-max-keys", 0...Int64.max, get: { Int64($0.tracking.keysMax) },
                    set: { $0.tracking.changeLimit(to: Int(clamping: $1)) }),
            ], live: Live { $0.tracking.changeLimit(to: $1.configuration.limits.trackedKeysMax) }
        ) { $0.configuration.limits.trackedKeysMax = try $1.number(1...1_000_000_000) },
        DaemonOption(
            "--max-subscriber-output", "BYTES",
            [
                "disconnects a subscriber with more bytes of unread messages (default: 32M),",
                "or with more than a quarter of that for one minute",
            ],
            settings: [
                .own { String($0.settings.subscriberBytesMax.read()) },
                Setting("client-output-buffer-limit", .checked(Setting.changeOutputLimits), Setting.outputLimits),
            ],
            live: Live { $0.settings.changeSubscriberLimit($1.configuration.limits) }
        ) { $0.configuration.limits.subscriberBytesMax = try $1.byteCount() },
        DaemonOption(
            "--max-output", "BYTES",
            [
                "unread output of all clients together; 0 for no limit. Above it, those with the most",
                "are disconnected (default: an eighth of the machine's memory, at least 1G)",
            ],
            settings: [
                .own { String($0.settings.outputBytesMax.read()) },
                Setting(
                    "maxmemory-clients",
                    .checked { _, text in
                        guard let bytes = Setting.bytes(text) else {
                            return .failure(UsageError("argument must be a memory value"))
                        }
                        return .success { $0.settings.outputBytesMax.store(Int(clamping: bytes), ordering: .relaxed) }
                    }, { String($0.settings.outputBytesMax.read()) }),
            ],
            live: Live { $0.settings.outputBytesMax.store($1.configuration.limits.outputBytesMax, ordering: .relaxed) }
        ) { $0.configuration.limits.outputBytesMax = try $1.byteCount() },
        .limit(
            "--max-reply", "BYTES", ["total size of the values of one MGET (default: 512M)"], \.replyBytesMax
        ) { try $0.byteCount() },
        .limit(
            "--max-transaction", "BYTES",
            ["size of the commands between MULTI and EXEC, per connection (default: 64M)"], \.transactionBytesMax
        ) { try $0.byteCount() },
        DaemonOption(
            "--script-time-limit", "TIME",
            [
                "how long a script may run before it is stopped without effect: milliseconds, or",
                "5s (default: 5000)",
            ],
            settings: [
                .own { String($0.limits.scriptMilliseconds) },
                Setting("lua-time-limit", .currentValueOnly) { String($0.limits.scriptMilliseconds) },
            ]
        ) { $0.configuration.limits.scriptMilliseconds = try $1.time(.milliseconds, 1...3_600_000) },
        .limit(
            "--query-scan", "N", ["entries that a QUERY may examine without an index (default: 100000)"], \.queryScanMax
        ) { try $0.number(0...Int.max) },
        DaemonOption(
            "--query-time-limit", "TIME",
            ["how long a QUERY may run before it fails: milliseconds, or 5s (default: 10000)"],
            settings: [.own { String($0.limits.queryMilliseconds) }]
        ) { $0.configuration.limits.queryMilliseconds = try $1.time(.milliseconds, 1...3_600_000) },
        .limit(
            "--max-script-memory", "BYTES", ["the memory of one script's interpreter (default: 64M)"], \.scriptMemoryMax
        ) { try $0.byteCount(least: 1 << 20) },
        .limit(
            "--max-scripts", "BYTES", ["total size of the scripts cached for EVALSHA (default: 16M)"], \.scriptsBytesMax
        ) { try $0.byteCount() },
        .limit(
            "--max-watched-keys", "N", ["maximum keys that one connection may WATCH (default: 10000)"], \.watchedKeysMax
        ) { try $0.number(0...1_000_000) },
        .limit(
            "--max-leases", "N",
            ["maximum leases of one connection; 100000 for all connections (default: 10000)"], \.leasesMax
        ) { try $0.number(1...LeaseContext.leasesMax) },
        .limit(
            "--max-subscriptions", "BYTES",
            ["size of the channel names that one connection subscribes to (default: 16M)"], \.subscriptionBytesMax
        ) { try $0.byteCount() },
        DaemonOption(
            "--reply-timeout", "TIME",
            [
                "how long a client may leave replies unread before it is disconnected: seconds, or 5m",
                "(default: 60)",
            ],
            settings: [.own { String($0.limits.outputStallMilliseconds / 1000) }]
        ) { $0.configuration.limits.outputStallMilliseconds = try $1.time(.seconds, 1...86_400) * 1000 },
        DaemonOption(
            "--password-file", "PATH",
            ["the first line of the file is the password for AUTH (default: none)"],
            settings: [
                .own { $0.settings.passwordPath }, Setting("requirepass", .currentValueOnly) { _ in "" },
            ],
            live: Live(isForClients: false) {
                $0.settings.change(password: $1.configuration.password, path: $1.configuration.passwordPath)
            }
        ) {
            let password = try $1.password()
            $0.configuration.password = password
            $0.contents["--password-file"] = password
            $0.configuration.passwordPath = $1.text
        },
        DaemonOption(
            "--disable-commands", "NAMES",
            [
                "commands disabled for all users, separated by commas: FLUSHALL,CONFIG|SET;",
                "they return NOPERM, also in scripts (default: none)",
            ],
            settings: [.own { $0.disabledCommands.names.joined(separator: ",") }]
        ) { $0.configuration.disabledCommands = try $1.commands() },
        DaemonOption(
            flag: "--enable-debug", ["allow the command DEBUG"],
            settings: [
                .own { $0.limits.allowsDebug ? "yes" : "no" },
                Setting("enable-debug-command") { $0.limits.allowsDebug ? "yes" : "no" },
            ]
        ) { $0.configuration.limits.allowsDebug = true },
    ]

    static let origins: [DaemonOption] = [
        .limit(
            "--origin-limit", "TIME",
            [
                "how long a command waits for the origin of its database: milliseconds, or 2s",
                "(default: 2000)",
            ], \.origin.call
        ) { Int(try $0.time(.milliseconds, 10...60_000)) },
        .limit(
            "--origin-heartbeat", "TIME",
            [
                "interval of heartbeats to each server of an origin: milliseconds, or 1s. Together with",
                "--origin-heartbeat-limit, it bounds how long a value may be read after a newer one was",
                "acknowledged elsewhere (default: 250)",
            ], \.origin.heartbeat
        ) { Int(try $0.time(.milliseconds, 10...60_000)) },
        .limit(
            "--origin-heartbeat-limit", "TIME",
            [
                "how long a heartbeat's reply may take; then the server's invalidations are considered lost:",
                "milliseconds, or 1s (default: 500)",
            ], \.origin.heartbeatLimit
        ) { Int(try $0.time(.milliseconds, 10...60_000)) },
        .limit(
            "--origin-patience", "TIME",
            [
                "how long FETCH, and with STALE also reads such as GET, wait for a slow origin before they",
                "return a stale value: milliseconds, or 1s; 0: until the origin has failed (default: 0)",
            ], \.originPatience
        ) { try $0.time(.milliseconds, 0...60_000) },
        .limit(
            "--max-origin-keys", "N",
            [
                "maximum tracked entries per database with an origin;",
                "others are requested at each read (default: 1000000)",
            ], \.originKeysMax
        ) { try $0.number(16...1_000_000_000) },
    ]

    @Sendable private static func tooManyClients(_ server: ServerState, _ number: Int64) -> String? {
        guard number > server.clientsPossible else { return nil }
        return "The operating system is not able to handle the specified number of clients, try with "
            + "\(server.clientsPossible)"
    }

    /// Options that remove entries and then exit, instead of serving.
    static let purging: [DaemonOption] = [
        DaemonOption(
            flag: "--purge", ["remove all entries of all databases, then exit; policies are kept"]
        ) { try $0.set(.purge(.all)) },
        DaemonOption(
            "--purge", "NAME", ["remove all entries of one database, then exit"], form: .attached
        ) { try $0.set(.purge(.database(try $1.databaseName()))) },
        DaemonOption(
            flag: "--purge-expired",
            [
                "remove the expired entries of all databases, then exit;",
                "a purge is sent to the daemon that has the larder open, or else works directly on",
                "the files. It prints the number of removed entries.",
            ]
        ) { try $0.set(.purge(.expired)) },
    ]

    static let checking: [DaemonOption] = [
        DaemonOption(
            flag: "--check",
            [
                "check all files of a larder that no daemon has open, print one line per problem, and",
                "exit without changes. With --log-format json: one JSON object. For a running daemon:",
                "larderctl check",
            ]
        ) { try $0.set(.check(nil)) },
        DaemonOption(
            "--check", "NAME", ["check one database, or LEDGER, and the files that all databases share"],
            form: .attached
        ) { try $0.set(.check(try $1.databaseName(orLedger: true))) },
        DaemonOption(
            flag: "--repair",
            [
                "with --check: also salvage damaged databases and the journal, as at a start, complete",
                "indexes, and check again; the damaged files are kept below DAMAGED",
            ]
        ) { $0.repairs = true },
    ]

    static let telling: [DaemonOption] = Row.telling(
        help: { line, _ in try line.set(.help) }, version: { line, _ in try line.set(.version) }
    ).map { DaemonOption($0) }

    package static let table: OptionTable<DaemonCommandLine> = OptionTable(
        "larderd", all.map(\.row), removed: removed)

    /// Options of earlier versions, and what their users must do now.
    static let removed = ["--max-watched-deadlines": "there is no limit any more, so delete it"]
}
