extension DaemonOption {
    /// The options for the origins of databases.
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
}
