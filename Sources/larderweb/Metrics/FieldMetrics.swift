/// A metric that is one numeric field of INFO. To add a metric, add a row to the tables below.
struct FieldMetric: Sendable {
    let kind: MetricsText.Kind
    /// The name after `larder_`.
    let name: String
    let field: String
    let help: String
    /// The factor by which the field's value is multiplied to get the metric's unit.
    let scale: Double

    static func counter(_ name: String, _ field: String, _ help: String, scale: Double = 1) -> FieldMetric {
        FieldMetric(kind: .counter, name: name, field: field, help: help, scale: scale)
    }

    static func gauge(_ name: String, _ field: String, _ help: String, scale: Double = 1) -> FieldMetric {
        FieldMetric(kind: .gauge, name: name, field: field, help: help, scale: scale)
    }

    static let all: [FieldMetric] = [
        // Requests.
        counter("commands_processed", "total_commands_processed", "Commands executed."),
        counter("error_replies", "total_error_replies", "Error replies."),
        counter("connections_received", "total_connections_received", "Connections accepted."),
        counter("connections_rejected", "rejected_connections", "Connections refused because of the limit."),
        gauge("connected_clients", "connected_clients", "Connections now."),
        gauge("clients_limit", "maxclients", "Limit of open connections."),
        gauge("blocked_clients", "blocked_clients", "Connections waiting for another client."),
        gauge("tracking_clients", "tracking_clients", "Connections with client-side caching (CLIENT TRACKING)."),
        counter("net_input_bytes", "total_net_input_bytes", "Bytes received from clients."),
        counter("net_output_bytes", "total_net_output_bytes", "Bytes sent to clients."),
        counter("dropped_commands", "dropped_commands", "Commands dropped because the client disconnected."),
        // Entries.
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
        counter("evicted_bytes", "evicted_bytes", "Bytes of entries evicted to keep a disk limit."),
        gauge("expiry_lag_p99_seconds", "expiry_lag_p99_ms", "Delay of reclamation after expiry, p99.", scale: 0.001),
        gauge(
            "expiry_lag_max_seconds", "expiry_lag_max_ms", "Maximum delay of reclamation after expiry.", scale: 0.001),
        counter("purges", "purges", "Purges of databases."),
        gauge("databases", "databases", "Databases in the larder."),
        gauge("open_snapshots", "open_snapshots", "Open snapshots."),
        gauge("origins_unusable", "origins_unusable", "Databases without access to their origin."),
        counter("queries", "queries", "Queries."),
        counter("query_scans", "query_scans", "Queries that used no index."),
        counter("query_entries_examined", "query_entries_examined", "Entries examined by queries."),
        // Fetching.
        gauge("leases", "leases", "Leases held: keys being refreshed by a client."),
        gauge("lease_waiters", "lease_waiters", "Calls waiting for another client's refresh."),
        counter("leases_granted", "leases_granted", "Leases granted."),
        counter("stale_served", "stale_served", "Fetches that returned a stale value."),
        counter("leases_lost", "leases_lost", "Leases that expired or were released without a value."),
        counter("fetch_failures", "fetch_failures", "Failed refreshes."),
        // Files.
        gauge("disk_bytes", "disk_bytes", "Disk usage of the larder."),
        gauge("disk_limit_bytes", "disk_limit", "Disk limit of the larder; 0 for no limit."),
        gauge("journal_bytes", "journal_bytes", "The journal's size."),
        gauge("pending_bytes", "pending_bytes", "Bytes of uncommitted writes."),
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
        gauge("change_log_bytes", "change_log_bytes", "Memory use of the change log."),
        gauge("change_log_disk_bytes", "change_log_disk_bytes", "Disk usage of the change log."),
        counter("journal_damages", "journal_damages", "Damaged journals found."),
        counter("salvages", "salvages", "Damaged databases salvaged."),
        counter("databases_set_aside", "databases_set_aside", "Damaged databases moved aside."),
        counter("databases_missing", "databases_missing", "Databases whose files were missing at the daemon's start."),
        counter("fact_losses", "fact_losses", "Times that purges of tags, functions or origins were lost."),
        // The process.
        gauge("uptime_seconds", "uptime_in_seconds", "Uptime of the daemon."),
        gauge("resident_memory_bytes", "used_memory_rss", "The daemon's resident memory."),
        gauge("memory_tier_bytes", "memory_tier_bytes", "Memory use of hot entries."),
        gauge("memory_tier_limit_bytes", "maxmemory", "Memory limit of hot entries."),
        counter("cpu_user_seconds", "used_cpu_user", "User CPU time of the daemon."),
        counter("cpu_system_seconds", "used_cpu_sys", "System CPU time of the daemon."),
        gauge(
            "clock_offset_seconds", "clock_offset_milliseconds", "Lead of the larder's time over the wall clock.",
            scale: 0.001),
        // Scripts.
        counter("script_runs", "script_runs", "Scripts run."),
        counter("script_repeats", "script_repeats", "Script restarts."),
        gauge("scripts_running", "scripts_running", "Running scripts."),
        counter("scripts_killed", "scripts_killed", "Scripts killed."),
        counter("scripts_timed_out", "scripts_timed_out", "Scripts that exceeded the time limit."),
        gauge("cached_scripts", "number_of_cached_scripts", "Cached scripts."),
        gauge("function_libraries", "number_of_libraries", "Function libraries."),
    ]

    /// The metrics of a database with an origin: each is a field of the database's line in INFO.
    static let origins: [FieldMetric] = [
        gauge("origin_servers", "servers", "Servers of the origin."),
        gauge("origin_servers_down", "servers-down", "Servers that are down, or suspended because of a cycle."),
        gauge("origin_down_seconds", "down-milliseconds", "Longest current downtime of a server.", scale: 0.001),
        gauge("origin_known_entries", "known", "Entries tracked as current."),
        counter("origin_asked", "asked", "Keys requested from the origin."),
        counter("origin_joined", "joined", "Reads that joined a request in progress."),
        counter("origin_failures", "failed", "Failed requests."),
        counter("origin_timeouts", "timeouts", "Requests that timed out."),
        counter("origin_redirections", "redirections", "Redirections by servers of a cluster."),
        counter("origin_stale_served", "stale-served", "Reads that returned a stale value."),
        counter("origin_writes", "written", "Writes executed by the origin or queued."),
        counter("origin_invalidated", "invalidated", "Keys invalidated by the origin."),
        counter("origin_losses", "lost", "Times that the origin's invalidations were lost."),
        gauge(
            "origin_heartbeat_seconds", "heartbeat-microseconds", "Last heartbeat's latency of the slowest server.",
            scale: 0.000_001),
        gauge("origin_outbox_entries", "outbox", "Keys with queued writes."),
        gauge(
            "origin_outbox_oldest_seconds", "outbox-oldest-milliseconds",
            "Age of the oldest queued write.", scale: 0.001),
        counter("origin_delivered", "delivered", "Queued writes delivered."),
        counter("origin_retried", "retried", "Retries of queued writes."),
        counter("origin_refused", "refused", "Queued writes refused by the origin."),
        counter("origin_superseded", "superseded", "Queued writes dropped because the origin had a newer value."),
    ]
}
