import LarderClient

/// The metrics of databases with an origin: each is a field of the database's line in INFO. To add a metric, add a row.
enum OriginMetrics {
    /// The metrics. Their full names begin with `larder_origin_`.
    private static let rows: [FieldMetric] = [
        .gauge("servers", "servers", "Servers of the origin."),
        .gauge(
            "servers_down", "servers-down", "Servers that are down, or suspended because of a cycle."),
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
