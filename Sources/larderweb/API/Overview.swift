import LarderClient

/// The current state of the daemon, for `/api/overview`. Counters count from the start of the daemon.
struct Overview: Encodable {
    /// The settings of larderweb that the pages show.
    struct Settings: Encodable {
        let allowsChanges: Bool
        let asksForToken: Bool
        let historyNote: String?
    }

    struct Command: Encodable {
        let name: String
        let calls: Double
        let seconds: Double
        let failed: Double
        let p50: Double?
        let p99: Double?
        let p999: Double?

        init(_ command: CommandFigures) {
            name = command.name
            calls = Double(command.calls)
            seconds = Double(command.microseconds) / 1_000_000
            failed = Double(command.failed + command.rejected)
            p50 = command.p50.map { $0 / 1_000_000 }
            p99 = command.p99.map { $0 / 1_000_000 }
            p999 = command.p999.map { $0 / 1_000_000 }
        }
    }

    struct Database: Encodable {
        let name: String
        let policy: String
        let entries: Double?
        let stale: Int64?
        let bytes: Int64
        let limit: Int64?
        let state: String

        init(_ info: DatabaseInfo, _ figures: DaemonFigures) {
            name = info.name
            policy = info.policy
            entries = figures.entries[info.name] ?? info.entries.map(Double.init)
            stale = info.staleEntries
            bytes = info.bytes
            limit = info.limit
            state = info.state
        }
    }

    let settings: Settings
    /// Why the daemon is not available; nil if it is available.
    let problem: String?
    /// The numeric fields of INFO, by name. `texts` has its text fields.
    let numbers: [String: Double]
    let texts: [String: String]
    let commands: [Command]
    /// Nil if the daemon's list of databases could not be read.
    let databases: [Database]?

    private static let numberFields = [
        "server_time_usec", "uptime_in_seconds", "total_commands_processed", "total_error_replies", "keyspace_hits",
        "keyspace_misses", "keyspace_misses_expired", "keyspace_misses_purged", "stale_served", "leases_granted",
        "leases", "lease_waiters", "fetch_failures", "leases_lost", "expired_keys", "expiry_lag_p99_ms",
        "evicted_entries", "evicted_bytes", "connected_clients", "maxclients", "blocked_clients", "tracking_clients",
        "total_net_input_bytes", "total_net_output_bytes", "used_memory_rss", "memory_tier_bytes", "maxmemory",
        "disk_bytes", "disk_limit", "journal_bytes", "pending_bytes", "checkpoints", "journal_rewrites",
        "commit_groups", "commit_units", "syncs", "commit_failures", "script_runs", "scripts_running", "purges",
        "open_snapshots",
    ]
    private static let textFields = [
        "larder_version", "run_id", "directory", "durability", "default_policy", "unixsocket", "aof_last_write_status",
    ]

    init(_ collector: Collector, _ settings: Settings) {
        self.settings = settings
        let figures: DaemonFigures
        do throws(LarderClientError) { figures = try collector.figures() } catch {
            problem = error.message
            (numbers, texts, commands, databases) = ([:], [:], [], [])
            return
        }
        problem = nil
        numbers = Dictionary(Self.numberFields.compactMap { name in figures.info.number(name).map { (name, $0) } }) {
            $1
        }
        texts = Dictionary(Self.textFields.compactMap { name in figures.info.text(name).map { (name, $0) } }) { $1 }
        commands = figures.commands.map(Command.init)
        databases = (try? collector.databases()).map { $0.map { Database($0, figures) } }
    }
}

/// The distribution of the remaining lifetimes of a database's fresh entries, as counted by the daemon: an element of
/// the response to `/api/freshness`.
struct FreshnessReport: Encodable {
    let database: String
    let entries: Int64
    let minute: Double
    let hour: Double
    let day: Double
    let never: Double

    /// The maximum number of databases; the largest come first.
    private static let databasesMax = 20

    static func all(of databases: [DatabaseInfo]) -> [FreshnessReport] {
        let reports = databases.compactMap { FreshnessReport($0) }.sorted { $0.entries > $1.entries }
        return Array(reports.prefix(databasesMax))
    }

    /// Returns nil if the database has no entries, or they could not be counted.
    private init?(_ info: DatabaseInfo) {
        guard let entries = info.entries, entries > 0, let ends = info.ends else { return nil }
        func share(_ count: Int64) -> Double { min(1, Double(count) / Double(entries)) }
        (database, self.entries) = (info.name, entries)
        (minute, hour, day, never) = (share(ends.minute), share(ends.hour), share(ends.day), share(ends.never))
    }
}
