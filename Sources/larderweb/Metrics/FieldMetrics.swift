/// A metric that is one numeric field of INFO. To add a metric, add a row to the tables below.
struct FieldMetric: Sendable {
    let kind: MetricsText.Kind
    /// The name after `larder_`.
    let name: String
    let field: String
    let help: String
    var unit: String?
    /// The factor by which the field's value is multiplied to get the metric's unit.
    var scale = 1.0

    static func counter(_ name: String, _ field: String, _ help: String) -> FieldMetric {
        FieldMetric(kind: .counter, name: name, field: field, help: help)
    }

    static func gauge(_ name: String, _ field: String, _ help: String) -> FieldMetric {
        FieldMetric(kind: .gauge, name: name, field: field, help: help)
    }

    static func bytes(
        _ name: String, _ field: String, _ help: String, _ kind: MetricsText.Kind = .gauge
    ) -> FieldMetric { FieldMetric(kind: kind, name: name, field: field, help: help, unit: "bytes") }

    static func seconds(
        _ name: String, _ field: String, _ help: String, _ kind: MetricsText.Kind = .gauge, scale: Double = 1
    ) -> FieldMetric { FieldMetric(kind: kind, name: name, field: field, help: help, unit: "seconds", scale: scale) }

    static let all = requests + entries + fetching + files + process + scripts

    private static let requests = [
        counter("commands_processed", "total_commands_processed", "Commands executed."),
        counter("error_replies", "total_error_replies", "Error replies."),
        counter("connections_received", "total_connections_received", "Connections accepted."),
        counter("connections_rejected", "rejected_connections", "Connections refused because of the limit."),
        gauge("connected_clients", "connected_clients", "Connections now."),
        gauge("clients_limit", "maxclients", "Limit of open connections."),
        gauge("blocked_clients", "blocked_clients", "Connections waiting for another client."),
        gauge("tracking_clients", "tracking_clients", "Connections with client-side caching (CLIENT TRACKING)."),
        bytes("net_input_bytes", "total_net_input_bytes", "Bytes received from clients.", .counter),
        bytes("net_output_bytes", "total_net_output_bytes", "Bytes sent to clients.", .counter),
        counter("dropped_commands", "dropped_commands", "Commands dropped because the client disconnected."),
    ]

    private static let entries = [
        counter("hits", "keyspace_hits", "Reads of a fresh entry."),
        counter("misses", "keyspace_misses", "Reads without a fresh entry."),
        counter("misses_expired", "keyspace_misses_expired", "Misses because the entry had expired."),
        counter("misses_purged", "keyspace_misses_purged", "Misses because a tag of the entry was purged."),
        counter(
            "misses_evicted", "keyspace_misses_evicted",
            "Misses because the entry was evicted to keep a disk limit (lower bound)."
        ),
        counter("expired_entries", "expired_keys", "Expired entries found."),
        counter("evicted_entries", "evicted_entries", "Entries evicted to keep a disk limit."),
        bytes("evicted_bytes", "evicted_bytes", "Bytes of entries evicted to keep a disk limit.", .counter),
        seconds("expiry_lag_p99_seconds", "expiry_lag_p99_ms", "Delay of reclamation after expiry, p99.", scale: 0.001),
        seconds(
            "expiry_lag_max_seconds", "expiry_lag_max_ms", "Maximum delay of reclamation after expiry.", scale: 0.001),
        counter("purges", "purges", "Purges of databases."),
        gauge("databases", "databases", "Databases in the larder."),
        gauge("open_snapshots", "open_snapshots", "Open snapshots."),
        gauge("origins_unusable", "origins_unusable", "Databases without access to their origin."),
    ]

    private static let fetching = [
        gauge("leases", "leases", "Leases held: keys being refreshed by a client."),
        gauge("lease_waiters", "lease_waiters", "Calls waiting for another client's refresh."),
        counter("leases_granted", "leases_granted", "Leases granted."),
        counter("stale_served", "stale_served", "Fetches that returned a stale value."),
        counter("leases_lost", "leases_lost", "Leases that expired or were released without a value."),
        counter("fetch_failures", "fetch_failures", "Failed refreshes."),
    ]

    private static let files = [
        bytes("disk_bytes", "disk_bytes", "Disk usage of the larder."),
        bytes("disk_limit_bytes", "disk_limit", "Disk limit of the larder; 0 for no limit."),
        bytes("journal_bytes", "journal_bytes", "The journal's size."),
        bytes("pending_bytes", "pending_bytes", "Bytes of uncommitted writes."),
        counter("checkpoints", "checkpoints", "Checkpoints of the journal into the databases."),
        counter("journal_rewrites", "journal_rewrites", "Rewrites of the journal."),
        counter("commit_groups", "commit_groups", "Commit groups written to the journal."),
        counter("commit_units", "commit_units", "Writes, batches and transactions committed."),
        counter("syncs", "syncs", "Syncs of the journal to the disk."),
        counter("commit_failures", "commit_failures", "Failed commits."),
        counter("reopens", "reopens", "Databases reopened after a failure."),
        gauge("followers", "followers", "Connections of followers (CHANGES)."),
        counter("follower_fallbacks", "follower_fallbacks", "Followers that had to start with a full pass."),
        gauge("change_log_entries", "change_log_entries", "Changes in the change log."),
        bytes("change_log_bytes", "change_log_bytes", "Memory use of the change log."),
        bytes("change_log_disk_bytes", "change_log_disk_bytes", "Disk usage of the change log."),
        counter("journal_damages", "journal_damages", "Damaged journals found."),
        counter("salvages", "salvages", "Damaged databases salvaged."),
        counter("databases_set_aside", "databases_set_aside", "Damaged databases moved aside."),
        counter("databases_missing", "databases_missing", "Databases whose files were missing at the daemon's start."),
        counter("fact_losses", "fact_losses", "Times that purges of tags, functions or origins were lost."),
    ]

    private static let process = [
        seconds("uptime_seconds", "uptime_in_seconds", "Uptime of the daemon."),
        bytes("resident_memory_bytes", "used_memory_rss", "The daemon's resident memory."),
        bytes("memory_tier_bytes", "memory_tier_bytes", "Memory use of hot entries."),
        bytes("memory_tier_limit_bytes", "maxmemory", "Memory limit of hot entries."),
        seconds("cpu_user_seconds", "used_cpu_user", "User CPU time of the daemon.", .counter),
        seconds("cpu_system_seconds", "used_cpu_sys", "System CPU time of the daemon.", .counter),
        seconds(
            "clock_offset_seconds", "clock_offset_milliseconds", "Lead of the larder's time over the wall clock.",
            scale: 0.001),
    ]

    private static let scripts = [
        counter("script_runs", "script_runs", "Scripts run."),
        counter("script_repeats", "script_repeats", "Script restarts."),
        gauge("scripts_running", "scripts_running", "Running scripts."),
        counter("scripts_killed", "scripts_killed", "Scripts killed."),
        counter("scripts_timed_out", "scripts_timed_out", "Scripts that exceeded the time limit."),
        gauge("cached_scripts", "number_of_cached_scripts", "Cached scripts."),
        gauge("function_libraries", "number_of_libraries", "Function libraries."),
    ]
}
