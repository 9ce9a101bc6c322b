import LarderClient
import LarderVocabulary

/// Generates the metrics for a scrape. Their number is limited by the number of commands and by ``databasesMax``.
enum Metrics {
    /// The maximum number of databases with their own series. If there are more, only the largest have one.
    static let databasesMax = 100

    static func text(_ collector: Collector, _ format: MetricsText.Format) -> String {
        var text = MetricsText(format)
        text.add(.info, "larder_web", help: "The version of larderweb.", 1, labels: [("version", Version.text)])
        let figures = try? collector.figures()
        text.add(.gauge, "larder_up", help: "Whether the daemon is available.", figures == nil ? 0 : 1)
        guard let figures else { return text.finished }
        let version = figures.info.text("larder_version") ?? ""
        text.add(.info, "larder_build", help: "The version of the daemon.", 1, labels: [("version", version)])
        for row in FieldMetric.all {
            guard let value = figures.info.number(row.field) else { continue }
            text.add(row.kind, "larder_" + row.name, unit: row.unit, help: row.help, value * row.scale)
        }
        addCommands(figures, to: &text)
        OriginMetrics.add(figures.info, databasesMax: databasesMax, to: &text)
        if let databases = try? collector.databases() { addDatabases(databases, figures, to: &text) }
        return text.finished
    }

    private static func addCommands(_ figures: DaemonFigures, to text: inout MetricsText) {
        let called = figures.commands.filter { $0.calls > 0 }
        text.add(
            .summary, "larder_command_duration_seconds", unit: "seconds",
            help: "Execution time of commands, without waiting for threads and commits.",
            called.flatMap { command in
                let labels = [("command", command.name)]
                let percentiles = [("0.5", command.p50), ("0.99", command.p99), ("0.999", command.p999)]
                return percentiles.compactMap { share, time in
                    time.map { MetricsText.Sample(labels: labels + [("quantile", share)], value: $0 / 1_000_000) }
                } + [
                    MetricsText.Sample(suffix: "_sum", labels: labels, value: Double(command.microseconds) / 1_000_000),
                    MetricsText.Sample(suffix: "_count", labels: labels, value: Double(command.calls)),
                ]
            })
        func counter(_ name: String, _ help: String, _ value: (CommandFigures) -> Int64) {
            text.add(
                .counter, name, help: help,
                figures.commands.filter { value($0) > 0 }.map {
                    MetricsText.Sample(labels: [("command", $0.name)], value: Double(value($0)))
                })
        }
        counter("larder_command_failures", "Calls that failed.") { $0.failed }
        counter("larder_command_rejections", "Calls refused before execution.") { $0.rejected }
        text.add(
            .counter, "larder_errors", help: "Error replies by code.",
            figures.info.lists("errorstat_").compactMap { code, parts in
                parts["count"].map { MetricsText.Sample(labels: [("code", code)], value: $0) }
            })
    }

    private static func addDatabases(
        _ databases: [DatabaseInfo], _ figures: DaemonFigures, to text: inout MetricsText
    ) {
        let shown = databases.sorted { ($1.bytes, $0.name) < ($0.bytes, $1.name) }.prefix(databasesMax)
        text.add(
            .gauge, "larder_databases_omitted",
            help: "Databases without their own series, because there are too many.",
            Double(databases.count - shown.count))
        func gauge(
            _ name: String, unit: String? = nil, _ help: String, _ value: (DatabaseInfo) -> Double?
        ) {
            text.add(
                .gauge, name, unit: unit, help: help,
                shown.compactMap { database in
                    value(database).map { MetricsText.Sample(labels: [("database", database.name)], value: $0) }
                })
        }
        gauge("larder_database_entries", "Fresh entries.") { $0.entries.map(Double.init) }
        gauge("larder_database_stale_entries", "Expired entries within their grace period.") {
            $0.staleEntries.map(Double.init)
        }
        gauge("larder_database_expiring_entries", "Fresh entries with a deadline.") { figures.expiring[$0.name] }
        gauge("larder_database_bytes", unit: "bytes", "Approximate disk usage of the database.") {
            Double($0.bytes)
        }
        gauge("larder_database_limit_bytes", unit: "bytes", "Disk limit of the database; 0 for no limit.") {
            Double($0.limit ?? 0)
        }
        gauge("larder_database_interval_seconds", unit: "seconds", "Time for which the policy keeps entries fresh.") {
            $0.intervalMilliseconds.map { Double($0) / 1000 }
        }
        gauge("larder_database_healthy", "Whether the database is healthy.") {
            ["open", "closed"].contains($0.state) ? 1 : 0
        }
    }
}

/// The metrics of databases with an origin: each is a field of the database's line in INFO. To add a metric, add a row.
enum OriginMetrics {
    /// The metrics. Their full names begin with `larder_origin_`.
    private static let rows: [FieldMetric] = [
        .gauge("servers", "servers", "Servers of the origin."),
        .gauge("servers_down", "servers-down", "Servers that are down, or suspended because of a cycle."),
        .seconds("down_seconds", "down-milliseconds", "Longest current downtime of a server.", scale: 0.001),
        .gauge("known_entries", "known", "Entries tracked as current."),
        .counter("asked", "asked", "Keys requested from the origin."),
        .counter("joined", "joined", "Reads that joined a request in progress."),
        .counter("failures", "failed", "Failed requests."),
        .counter("timeouts", "timeouts", "Requests that timed out."),
        .counter("redirections", "redirections", "Redirections by servers of a cluster."),
        .counter("stale_served", "stale-served", "Reads that returned a stale value."),
        .counter("writes", "written", "Writes executed by the origin or queued."),
        .counter("invalidated", "invalidated", "Keys invalidated by the origin."),
        .counter("losses", "lost", "Times that the origin's invalidations were lost."),
        .seconds(
            "heartbeat_seconds", "heartbeat-microseconds", "Last heartbeat's latency of the slowest server.",
            scale: 0.000_001),
        .gauge("outbox_entries", "outbox", "Keys with queued writes."),
        .seconds(
            "outbox_oldest_seconds", "outbox-oldest-milliseconds",
            "Age of the oldest queued write.", scale: 0.001),
        .counter("delivered", "delivered", "Queued writes delivered."),
        .counter("retried", "retried", "Retries of queued writes."),
        .counter("refused", "refused", "Queued writes refused by the origin."),
        .counter("superseded", "superseded", "Queued writes dropped because the origin had a newer value."),
    ]

    /// - Parameter databasesMax: metrics are written for at most this many databases, in the order of the list in INFO.
    static func add(_ info: InfoText, databasesMax: Int, to text: inout MetricsText) {
        let origins = info.lists("origin_").prefix(databasesMax)
        for row in rows {
            text.add(
                row.kind, "larder_origin_" + row.name, unit: row.unit, help: row.help,
                origins.compactMap { database, parts in
                    parts[row.field].map {
                        MetricsText.Sample(labels: [("database", database)], value: $0 * row.scale)
                    }
                })
        }
    }
}
