import LarderEngine
import Synchronization

extension DaemonOption {
    /// Options about the configuration file itself, which are therefore allowed only on the command line.
    static let configuring: [DaemonOption] = [
        DaemonOption(
            "--config", "FILE",
            [
                "also read options from this file: lines `name = value`, with the names in this list",
                "without the dashes; the command line takes precedence. With a minus before the path, as in",
                "--config=-/etc/larder/larderd.conf, the file may be missing. SIGHUP reloads it",
            ]
        ) {
            let path = try $1.path()
            let isOptional = path.hasPrefix("-")
            $0.file = (
                try OptionValue(option: $1.option, text: String(path.dropFirst(isOptional ? 1 : 0))).path(), isOptional
            )
        },
        DaemonOption(
            flag: "--check-config",
            ["check the configuration file and the command line, print all errors and exit; 0 if there are none"]
        ) { try $0.set(.checkConfiguration) },
    ]

    /// Options for which Redis has settings with the same names and units.
    static let redisCompatible: [DaemonOption] = [
        DaemonOption(
            "--timeout", "TIME",
            ["close connections that send nothing for this long: seconds, or 5m; 0 for never (default: 0)"],
            settings: [
                .number(
                    "timeout", 0...Int64(Int32.max), unit: .seconds, get: { Int64($0.settings.idleSeconds.read()) },
                    set: { $0.settings.idleSeconds.store(Int(clamping: $1), ordering: .relaxed) })
            ],
            live: Live { $0.settings.idleSeconds.store($1.configuration.limits.idleSeconds, ordering: .relaxed) }
        ) { $0.configuration.limits.idleSeconds = Int(try $1.time(.seconds, 0...Int64(Int32.max))) },
        DaemonOption(
            "--slowlog-log-slower-than", "TIME",
            ["record slower commands: microseconds, or 10ms; -1 for none (default: 10000)"],
            settings: [
                .number(
                    "slowlog-log-slower-than", -1...Int64.max, unit: .microseconds,
                    get: { $0.slowLog.threshold.load(ordering: .relaxed) },
                    set: { $0.changeSlowThreshold($1) })
            ], live: Live { $0.changeSlowThreshold($1.configuration.limits.slowMicroseconds) }
        ) {
            let isOff = $1.text == "-1"
            $0.configuration.limits.slowMicroseconds =
                isOff ? -1 : try $1.time(.microseconds, 0...Int64.max, besides: "-1 for none, or ")
        },
        DaemonOption(
            "--slowlog-max-len", "N", ["commands that SLOWLOG keeps (default: 128)"],
            settings: [
                .number(
                    "slowlog-max-len", 0...Int64.max, get: { Int64($0.slowLog.lengthMax.read()) },
                    set: { $0.slowLog.changeLength(Int(clamping: $1)) })
            ], live: Live { $0.slowLog.changeLength($1.configuration.limits.slowCommandsMax) }
        ) { $0.configuration.limits.slowCommandsMax = try $1.number(0...1_000_000) },
        DaemonOption(
            "--latency-monitor-threshold", "TIME",
            ["record longer events: milliseconds, or 1s; 0 for none (default: 0)"],
            settings: [
                .number(
                    "latency-monitor-threshold", 0...Int64.max, unit: .milliseconds,
                    get: { $0.latency.threshold.load(ordering: .relaxed) },
                    set: { $0.latency.threshold.store($1, ordering: .relaxed) })
            ],
            live: Live { $0.latency.threshold.store($1.configuration.limits.latencyMilliseconds, ordering: .relaxed) }
        ) { $0.configuration.limits.latencyMilliseconds = try $1.time(.milliseconds, 0...Int64.max) },
    ]

    /// Redis' log levels, and the levels of larderd's log that they set.
    private static let redisLogLevels: [(name: String, level: Log.Level)] = [
        ("debug", .debug), ("verbose", .debug), ("notice", .info), ("warning", .warning),
    ]

    static let logging: [DaemonOption] = [
        DaemonOption(
            "--log-level", "LEVEL",
            [
                "debug, info, warning or error; one line per event on standard error",
                "(default: info)",
            ],
            settings: [
                .own { "\($0.log.level)" },
                Setting(
                    "loglevel",
                    .checked { _, text in
                        guard let level = redisLogLevels.first(where: { $0.name == text.lowercased() })?.level else {
                            let names = redisLogLevels.map(\.name).joined(separator: ", ")
                            return .failure(UsageError("argument(s) must be one of the following: \(names)"))
                        }
                        return .success { $0.log.level = level }
                    },
                    { state in redisLogLevels.first { $0.level == state.log.level }?.name ?? "warning" }),
            ],
            live: Live { $0.log.level = $1.logLevel }
        ) { $0.logLevel = try $1.oneOf("debug, info, warning, error") { Log.Level($0) } },
        DaemonOption(
            "--log-format", "FORMAT",
            [
                "text: `time level message`; systemd: with systemd's priorities, such as <6>, and without the",
                "time; json: an object in each line; auto: systemd if standard error goes to its journal,",
                "else text (default: auto)",
            ],
            settings: [.own { $0.log.format.rawValue }]
        ) {
            $0.logFormat = try $1.oneOf("auto, text, systemd, json") { text in
                text == "auto" ? LogFormat.automatic : LogFormat(rawValue: text)
            }
        },
    ]
}

/// All settings of CONFIG. Add a new setting here, or, if it belongs to an option of larderd, to that option.
extension Setting {
    static func find(_ name: String) -> Setting? { byName[name.lowercased()] }

    /// The key of the setting's option; for a setting without an option, the setting's name. Settings with the same key
    /// change the same value.
    static func key(_ setting: Setting) -> String {
        DaemonOption.all.first { $0.settings.contains { $0.name == setting.name } }?.key ?? setting.name
    }

    private static let byName: [String: Setting] = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// All settings: first those that belong to options, then the others.
    static let all: [Setting] = DaemonOption.all.flatMap(\.settings) + others

    private static let others: [Setting] = [
        Setting("maxmemory-policy", .currentValueOnly) { _ in "noeviction" },
        Setting("maxmemory-samples", .currentValueOnly) { _ in "5" },
        Setting("databases") { _ in "16" },
        .yesNo("appendonly", true),
        Setting("save", .currentValueOnly) { _ in "" },
        Setting("dbfilename", .protected) { _ in "" },
        Setting("port") { _ in "0" },
        Setting("bind") { _ in "" },
        Setting("tcp-keepalive", .currentValueOnly) { _ in "0" },
        Setting("proto-max-bulk-len", .currentValueOnly) { String($0.limits.requests.bulkBytesMax) },
        Setting("client-query-buffer-limit", .currentValueOnly) { String($0.limits.requests.requestBytesMax) },
        Setting("hash-max-listpack-entries", .currentValueOnly) { _ in "512" },
        Setting("hz", .currentValueOnly) { _ in "10" },
        Setting("cluster-enabled") { _ in "no" },
        Setting("larder-version") { _ in Version.text },
    ]
}
