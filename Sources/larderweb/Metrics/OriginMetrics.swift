import LarderClient

/// The metrics of databases with an origin: of each one part of its line in INFO. To add one, add a row.
enum OriginMetrics {
    /// Their names stand behind `larder_origin_`.
    private static let rows: [FieldMetric] = [
        .gauge("servers", "servers", "Servers of the database's origin."),
        .gauge(
            "servers_down", "servers-down", "Of these, those that do not answer, or are not asked because of a cycle."),
        .seconds("down_seconds", "down-milliseconds", "For how long one of them has been down.", scale: 0.001),
        .gauge("known_entries", "known", "Entries that are known to be what it has."),
        .counter("asked", "asked", "Keys that it was asked for."),
        .counter("joined", "joined", "Reads that waited for another read's request."),
        .counter("failures", "failed", "Questions that failed."),
        .counter("timeouts", "timeouts", "Questions without an answer in time."),
        .counter("redirections", "redirections", "Redirections by servers of a cluster."),
        .counter("stale_served", "stale-served", "Reads that were answered with a stale value."),
        .counter("writes", "written", "Writes that it took, or that wait for it."),
        .counter("invalidated", "invalidated", "Keys of which it said that they had changed."),
        .counter("losses", "lost", "How often what it had said was no longer believed."),
        .seconds(
            "heartbeat_seconds", "heartbeat-microseconds", "How long the slowest server's last heartbeat took.",
            scale: 0.000_001),
        .gauge("outbox_entries", "outbox", "Keys whose writes wait for the origin."),
        .seconds(
            "outbox_oldest_seconds", "outbox-oldest-milliseconds",
            "For how long the oldest of these writes has waited.", scale: 0.001),
        .counter("delivered", "delivered", "Writes that were delivered to it."),
        .counter("retried", "retried", "Attempts to bring a write that failed."),
        .counter("refused", "refused", "Writes that it has refused."),
        .counter("superseded", "superseded", "Writes that were not delivered, because the origin had something newer."),
    ]

    /// - Parameter databasesMax: databases that have series, by the order of INFO.
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
