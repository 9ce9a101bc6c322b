/// A metric that is one number of INFO. To add one, add a row.
struct FieldMetric: Sendable {
    let kind: MetricsText.Kind
    /// Behind `larder_`.
    let name: String
    let field: String
    let help: String
    var unit: String?
    /// What a metric's unit has of the field's.
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
        counter("commands_processed", "total_commands_processed", "Commands that were carried out."),
        counter("error_replies", "total_error_replies", "Replies that were errors."),
        counter("connections_received", "total_connections_received", "Connections that were accepted."),
        counter("connections_rejected", "rejected_connections", "Connections that were refused, above the limit."),
        gauge("connected_clients", "connected_clients", "Connections now."),
        gauge("clients_limit", "maxclients", "The most connections at a time."),
        gauge("blocked_clients", "blocked_clients", "Connections that wait for another client."),
        gauge(
            "tracking_clients", "tracking_clients", "Connections that are notified of changes for their near caches."),
        bytes("net_input_bytes", "total_net_input_bytes", "Bytes received from clients.", .counter),
        bytes("net_output_bytes", "total_net_output_bytes", "Bytes sent to clients.", .counter),
        counter("dropped_commands", "dropped_commands", "Commands of clients that left before the reply."),
    ]

    private static let entries = [
        counter("hits", "keyspace_hits", "Reads that found a fresh entry."),
        counter("misses", "keyspace_misses", "Reads that found none."),
        counter("misses_expired", "keyspace_misses_expired", "Of the misses, those that met an expired entry."),
        counter(
            "misses_purged", "keyspace_misses_purged", "Of the misses, those that met an entry whose tag was purged."),
        counter(
            "misses_evicted", "keyspace_misses_evicted",
            "Of the misses, those of keys whose entry was evicted for a limit of the disk and would be fresh: at least."
        ),
        counter("expired_entries", "expired_keys", "Entries that were found expired."),
        counter("evicted_entries", "evicted_entries", "Entries that were removed to keep a limit of the disk."),
        bytes("evicted_bytes", "evicted_bytes", "Bytes of entries that were removed to keep a limit.", .counter),
        seconds(
            "expiry_lag_p99_seconds", "expiry_lag_p99_ms", "How late 99 % of what expired was reclaimed.",
            scale: 0.001),
        seconds("expiry_lag_max_seconds", "expiry_lag_max_ms", "How late it was at most.", scale: 0.001),
        counter("purges", "purges", "Purges of databases."),
        gauge("databases", "databases", "Databases in the larder."),
        gauge("open_snapshots", "open_snapshots", "Snapshots that are open."),
        gauge(
            "origins_unusable", "origins_unusable", "Databases whose origin cannot be set up, and which do not answer."),
    ]

    private static let fetching = [
        gauge("leases", "leases", "Keys that a client is refreshing."),
        gauge("lease_waiters", "lease_waiters", "Calls that wait for another client's refresh."),
        counter("leases_granted", "leases_granted", "Refreshes that were begun."),
        counter("stale_served", "stale_served", "Fetches that were answered with a stale value."),
        counter("leases_lost", "leases_lost", "Refreshes that ended without a value in time."),
        counter("fetch_failures", "fetch_failures", "Refreshes that failed."),
    ]

    private static let files = [
        bytes("disk_bytes", "disk_bytes", "What the larder's files take on the disk."),
        bytes("disk_limit_bytes", "disk_limit", "The most that they may take; 0 without a limit."),
        bytes("journal_bytes", "journal_bytes", "The journal's size."),
        bytes("pending_bytes", "pending_bytes", "Writes that are not committed yet."),
        counter("checkpoints", "checkpoints", "Checkpoints: from the journal into the databases."),
        counter("journal_rewrites", "journal_rewrites", "Rewrites of the journal into itself."),
        counter("commit_groups", "commit_groups", "Groups of writes that were written at once."),
        counter("commit_units", "commit_units", "Writes, batches and transactions that were committed."),
        counter("syncs", "syncs", "Syncs of the journal to the disk."),
        counter("commit_failures", "commit_failures", "Commits that failed."),
        counter("reopens", "reopens", "Databases that were opened again after a failure."),
        gauge("followers", "followers", "Connections that have asked for changes."),
        counter("follower_fallbacks", "follower_fallbacks", "Followers that had to begin with a full pass."),
        gauge("change_log_entries", "change_log_entries", "Changes that are remembered for followers."),
        bytes("change_log_bytes", "change_log_bytes", "Memory of these changes."),
        bytes("change_log_disk_bytes", "change_log_disk_bytes", "What they take on the disk."),
        counter("journal_damages", "journal_damages", "Journals that were found damaged."),
        counter("salvages", "salvages", "Damaged databases whose readable entries were copied to new files."),
        counter("databases_set_aside", "databases_set_aside", "Databases that were set aside as damaged."),
    ]

    private static let process = [
        seconds("uptime_seconds", "uptime_in_seconds", "For how long the daemon has been running."),
        bytes("resident_memory_bytes", "used_memory_rss", "The daemon's resident memory."),
        bytes("memory_tier_bytes", "memory_tier_bytes", "Memory of entries that are kept for speed."),
        bytes("memory_tier_limit_bytes", "maxmemory", "The most that these may take."),
        seconds("cpu_user_seconds", "used_cpu_user", "Processor time of the daemon's own code.", .counter),
        seconds("cpu_system_seconds", "used_cpu_sys", "Processor time of the system for the daemon.", .counter),
        seconds(
            "clock_offset_seconds", "clock_offset_milliseconds", "By how much the larder's time is ahead of the clock.",
            scale: 0.001),
    ]

    private static let scripts = [
        counter("script_runs", "script_runs", "Scripts that were run."),
        counter("script_repeats", "script_repeats", "Attempts of scripts that began anew."),
        gauge("scripts_running", "scripts_running", "Scripts that run now."),
        counter("scripts_killed", "scripts_killed", "Scripts that were killed."),
        counter("scripts_timed_out", "scripts_timed_out", "Scripts that took too long."),
        gauge("cached_scripts", "number_of_cached_scripts", "Scripts that are kept."),
        gauge("function_libraries", "number_of_libraries", "Libraries of functions."),
    ]
}
