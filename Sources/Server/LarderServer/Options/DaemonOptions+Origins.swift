extension DaemonOption {
    /// How the origins of databases are asked.
    static let origins = [
        DaemonOption(
            "--origin-limit", "TIME",
            [
                "the most that a command waits for the origin of its database: milliseconds, or 2s",
                "(default: 2000)",
            ],
            settings: [.own { String($0.limits.origin.call) }]
        ) { $0.configuration.limits.origin.call = Int(try $1.time(.milliseconds, 10...60_000)) },
        DaemonOption(
            "--origin-heartbeat", "TIME",
            [
                "how often each server of an origin is asked whether it is there: milliseconds, or 1s;",
                "nothing is read that is older than this and --origin-heartbeat-limit together after a",
                "change was acknowledged elsewhere (default: 250)",
            ],
            settings: [.own { String($0.limits.origin.heartbeat) }]
        ) { $0.configuration.limits.origin.heartbeat = Int(try $1.time(.milliseconds, 10...60_000)) },
        DaemonOption(
            "--origin-heartbeat-limit", "TIME",
            [
                "how long its answer may take; then what the server has said is no longer believed:",
                "milliseconds, or 1s (default: 500)",
            ],
            settings: [.own { String($0.limits.origin.heartbeatLimit) }]
        ) { $0.configuration.limits.origin.heartbeatLimit = Int(try $1.time(.milliseconds, 10...60_000)) },
        DaemonOption(
            "--origin-patience", "TIME",
            [
                "after which time FETCH, and with STALE also GET and the like, get what is stale while",
                "the origin is still asked: milliseconds, or 1s; 0: when it has failed (default: 0)",
            ],
            settings: [.own { String($0.limits.originPatience) }]
        ) { $0.configuration.limits.originPatience = try $1.time(.milliseconds, 0...60_000) },
        DaemonOption(
            "--max-origin-keys", "N",
            [
                "how many entries of each database with an origin are known to be what it has;",
                "others are asked for again (default: 1000000)",
            ],
            settings: [.own { String($0.limits.originKeysMax) }]
        ) { $0.configuration.limits.originKeysMax = try $1.number(16...1_000_000_000) },
    ]
}
