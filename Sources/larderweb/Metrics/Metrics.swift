import LarderClient
import LarderVocabulary

/// Generates the metrics for a scrape. Their number is limited by the number of commands and by ``databasesMax``.
enum Metrics {
    /// The maximum number of databases with their own series. If there are more, only the largest have one.
    static let databasesMax = 100

    static func text(_ collector: Collector, _ format: MetricsText.Format) -> String {
        var text = MetricsText(format)
        text.add(.info, "larder_web", "The version of larderweb.", 1, labels: [("version", Version.text)])
        let figures = try? collector.figures.value()
        text.add(.gauge, "larder_up", "Whether the daemon is available.", figures == nil ? 0 : 1)
        guard let figures else { return text.finished }
        let version = figures.info.text("larder_version") ?? ""
        text.add(.info, "larder_build", "The version of the daemon.", 1, labels: [("version", version)])
        for row in FieldMetric.all {
            guard let value = figures.info.number(row.field) else { continue }
            text.add(row.kind, "larder_" + row.name, row.help, value * row.scale)
        }
        addCommands(figures, to: &text)
        // The databases with an origin are limited in the order of INFO.
        let origins = figures.info.lists("origin_").prefix(databasesMax)
        for row in FieldMetric.origins {
            text.add(row.kind, "larder_" + row.name, row.help, by: "database", origins) { origin in
                origin.parts[row.field].map { (origin.name, $0 * row.scale) }
            }
        }
        if let databases = try? collector.databases.value() { addDatabases(databases, figures, to: &text) }
        return text.finished
    }

    private static func addCommands(_ figures: DaemonFigures, to text: inout MetricsText) {
        let samples = figures.commands.filter { $0.calls > 0 }.flatMap { command in
            let labels = [("command", command.name)]
            let percentiles = [("0.5", command.p50), ("0.99", command.p99), ("0.999", command.p999)]
            return percentiles.compactMap { share, time in
                time.map { MetricsText.Sample(labels: labels + [("quantile", share)], value: $0 / 1_000_000) }
            } + [
                MetricsText.Sample(suffix: "_sum", labels: labels, value: Double(command.microseconds) / 1_000_000),
                MetricsText.Sample(suffix: "_count", labels: labels, value: Double(command.calls)),
            ]
        }
        text.add(
            .summary, "larder_command_duration_seconds",
            "Execution time of commands, without waiting for threads and commits.", samples)
        func counter(_ name: String, _ help: String, _ value: (CommandFigures) -> Int64) {
            text.add(.counter, name, help, by: "command", figures.commands) {
                value($0) > 0 ? ($0.name, Double(value($0))) : nil
            }
        }
        counter("larder_command_failures", "Calls that failed.") { $0.failed }
        counter("larder_command_rejections", "Calls refused before execution.") { $0.rejected }
        text.add(
            .counter, "larder_errors", "Error replies by code.", by: "code", figures.info.lists("errorstat_")
        ) { code in code.parts["count"].map { (code.name, $0) } }
    }

    private static func addDatabases(
        _ databases: [DatabaseInfo], _ figures: DaemonFigures, to text: inout MetricsText
    ) {
        let shown = databases.sorted { ($1.bytes, $0.name) < ($0.bytes, $1.name) }.prefix(databasesMax)
        text.add(
            .gauge, "larder_databases_omitted", "Databases without their own series, because there are too many.",
            Double(databases.count - shown.count))
        func gauge(_ name: String, _ help: String, _ value: (DatabaseInfo) -> Double?) {
            text.add(.gauge, "larder_database_" + name, help, by: "database", shown) { database in
                value(database).map { (database.name, $0) }
            }
        }
        gauge("entries", "Fresh entries.") { $0.entries.map(Double.init) }
        gauge("stale_entries", "Expired entries within their grace period.") { $0.staleEntries.map(Double.init) }
        gauge("expiring_entries", "Fresh entries with a deadline.") { figures.expiring[$0.name] }
        gauge("bytes", "Approximate disk usage of the database.") { Double($0.bytes) }
        gauge("limit_bytes", "Disk limit of the database; 0 for no limit.") { Double($0.limit ?? 0) }
        gauge("interval_seconds", "Time for which the policy keeps entries fresh.") {
            $0.intervalMilliseconds.map { Double($0) / 1000 }
        }
        gauge("healthy", "Whether the database is healthy.") { ["open", "closed"].contains($0.state) ? 1 : 0 }
    }
}
