extension DaemonOption {
    /// The options for the origins of databases.
    static let origins = [
        DaemonOption(
            "--origin-limit", "TIME",
            [
                "how long a command waits for the origin of its database: milliseconds, or 2s",
                "(default: 2000)",
            ],
            settings: [.own { String($0.limits.origin.call) }]
        ) { $0.configuration.limits.origin.call = Int(try $1.time(.milliseconds, 10...60_000)) },
        DaemonOption(
            "--origin-heartbeat", "TIME",
            [
                "interval of heartbeats to each server of an origin: milliseconds, or 1s. Together with",
                "--origin-heartbeat-limit, it bounds how long a value may be read after a newer one was",
                "acknowledged elsewhere (default: 250)",
            ],
            settings: [.own { String($0.limits.origin.heartbeat) }]
        ) { $0.configuration.limits.origin.heartbeat = Int(try $1.time(.milliseconds, 10...60_000)) },
        DaemonOption(
            "--origin-heartbeat-limit", "TIME",
            [
                "how long a heartbeat's reply may take; then the server's invalidations are considered lost:",
                "milliseconds, or 1s (default: 500)",
            ],
            settings: [.own { String($0.limits.origin.heartbeatLimit) }]
        ) { $0.configuration.limits.origin.heartbeatLimit = Int(try $1.time(.milliseconds, 10...60_000)) },
        DaemonOption(
            "--origin-patience", "TIME",
            [
                "how long FETCH, and with STALE also reads such as GET, wait for a slow origin before they",
                "return a stale value: milliseconds, or 1s; 0: until the origin has failed (default: 0)",
            ],
            settings: [.own { String($0.limits.originPatience) }]
        ) { $0.configuration.limits.originPatience = try $1.time(.milliseconds, 0...60_000) },
        DaemonOption(
            "--max-origin-keys", "N",
            [
                "maximum tracked entries per database with an origin;",
                "others are requested at each read (default: 1000000)",
            ],
            settings: [.own { String($0.limits.originKeysMax) }]
        ) { $0.configuration.limits.originKeysMax = try $1.number(16...1_000_000_000) },
    ]
}
