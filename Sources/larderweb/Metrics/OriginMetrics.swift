import LarderClient

/// The metrics of databases with an origin: of each one field of its line in INFO. To add one, add a row.
enum OriginMetrics {
    private struct Row {
        let kind: MetricsText.Kind
        /// Behind `larder_origin_`.
        let name: String
        let field: String
        let help: String
        var unit: String?
        var scale = 1.0
    }

    private static let rows = [
        Row(kind: .gauge, name: "servers", field: "servers", help: "Servers of the database's origin."),
        Row(
            kind: .gauge, name: "servers_down", field: "servers-down",
            help: "Of these, those that do not answer, or are not asked because of a cycle."),
        Row(
            kind: .gauge, name: "down_seconds", field: "down-milliseconds",
            help: "For how long one of them has been down.",
            unit: "seconds", scale: 0.001),
        Row(kind: .gauge, name: "known_entries", field: "known", help: "Entries that are known to be what it has."),
        Row(kind: .counter, name: "asked", field: "asked", help: "Keys that it was asked for."),
        Row(kind: .counter, name: "joined", field: "joined", help: "Reads that waited for somebody else's question."),
        Row(kind: .counter, name: "failures", field: "failed", help: "Questions that failed."),
        Row(kind: .counter, name: "timeouts", field: "timeouts", help: "Questions without an answer in time."),
        Row(kind: .counter, name: "redirections", field: "redirections", help: "Redirections by servers of a cluster."),
        Row(
            kind: .counter, name: "stale_served", field: "stale-served",
            help: "Reads that were answered with a stale value."),
        Row(kind: .counter, name: "writes", field: "written", help: "Writes that it took, or that wait for it."),
        Row(
            kind: .counter, name: "invalidated", field: "invalidated",
            help: "Keys of which it said that they had changed."),
        Row(kind: .counter, name: "losses", field: "lost", help: "How often what it had said was no longer believed."),
        Row(
            kind: .gauge, name: "heartbeat_seconds", field: "heartbeat-microseconds",
            help: "How long the slowest server's last heartbeat took.", unit: "seconds", scale: 0.000_001),
        Row(kind: .gauge, name: "outbox_entries", field: "outbox", help: "Keys whose writes wait for the origin."),
        Row(
            kind: .gauge, name: "outbox_oldest_seconds", field: "outbox-oldest-milliseconds",
            help: "For how long the oldest of these writes has waited.", unit: "seconds", scale: 0.001),
        Row(kind: .counter, name: "delivered", field: "delivered", help: "Writes that were brought to it."),
        Row(kind: .counter, name: "retried", field: "retried", help: "Attempts to bring a write that failed."),
        Row(kind: .counter, name: "refused", field: "refused", help: "Writes that it has refused."),
        Row(
            kind: .counter, name: "superseded", field: "superseded",
            help: "Writes that were not brought, because the origin had something newer."),
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
