import LarderClient
import LarderVocabulary

/// Generates the metrics for a scrape. Their number is limited by the number of commands and by ``databasesMax``.
enum Metrics {
    /// The maximum number of databases with their own series. If there are more, only the largest have one.
    static let databasesMax = 100

    static func text(_ collector: Collector, _ format: MetricsText.Format) -> String {
        var text = MetricsText(format)
        text.add(
            .info, "larder_web", help: "The version of larderweb.",
            [MetricsText.Sample(labels: [("version", Version.text)], value: 1)])
        let figures = try? collector.figures()
        text.add(
            .gauge, "larder_up", help: "Whether the daemon is available.",
            [MetricsText.Sample(value: figures == nil ? 0 : 1)])
        guard let figures else { return text.finished }
        text.add(
            .info, "larder_build", help: "The version of the daemon.",
            [MetricsText.Sample(labels: [("version", figures.info.text("larder_version") ?? "")], value: 1)])
        for row in FieldMetric.all {
            guard let value = figures.info.number(row.field) else { continue }
            text.add(
                row.kind, "larder_" + row.name, unit: row.unit, help: row.help,
                [MetricsText.Sample(value: value * row.scale)])
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
                return command.percentiles.map { share, seconds in
                    MetricsText.Sample(labels: labels + [("quantile", share)], value: seconds)
                } + [
                    MetricsText.Sample(suffix: "_sum", labels: labels, value: command.seconds),
                    MetricsText.Sample(suffix: "_count", labels: labels, value: command.calls),
                ]
            })
        func counter(_ name: String, _ help: String, _ value: (DaemonFigures.Command) -> Double) {
            text.add(
                .counter, name, help: help,
                figures.commands.filter { value($0) > 0 }.map {
                    MetricsText.Sample(labels: [("command", $0.name)], value: value($0))
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
            [MetricsText.Sample(value: Double(databases.count - shown.count))])
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
