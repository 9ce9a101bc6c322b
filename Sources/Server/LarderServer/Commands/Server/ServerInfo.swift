import LarderEngine
import LarderPlatform
import Synchronization

/// The text that INFO returns. It has the sections and fields that tools for Redis expect, and a section `larder`.
///
/// Creating the text may block for a fraction of a second, while entries are counted: see ``EntryCounts``.
struct ServerInfo {
    private let server: ServerState
    private let asked: Int64
    private let rights: Rights?

    /// - Parameters:
    ///   - asked: the time of the request, in nanoseconds of the monotonic clock.
    ///   - rights: the rights of the client; nil for all rights.
    init(_ server: ServerState, asked: Int64, rights: Rights?) {
        (self.server, self.rights, self.asked) = (server, rights, asked)
    }

    typealias Fields = [(String, any CustomStringConvertible & Sendable)]

    /// The sections in the order in which they are shown.
    private static let order = [
        "server", "clients", "memory", "persistence", "stats", "replication", "cpu", "modules", "commandstats",
        "errorstats", "latencystats", "cluster", "keyspace", "larder",
    ]
    /// Sections that are shown only if the client names them, or asks for all sections.
    private static let onDemand: Set<String> = ["commandstats", "latencystats"]
    private static let titles = ["cpu": "CPU"]

    /// Returns the sections with the given names. Without names, or with `default`, returns the usual sections; with
    /// `all` or `everything`, returns all sections.
    func text(_ sections: [String]) -> String {
        let isAll = sections.contains { $0 == "all" || $0 == "everything" }
        let isDefault = sections.isEmpty || sections.contains("default")
        return Self.order.filter { section in
            isAll || sections.contains(section) || isDefault && !Self.onDemand.contains(section)
        }
        .map { section in
            let title = Self.titles[section] ?? section.prefix(1).uppercased() + section.dropFirst()
            return "# \(title)\r\n" + fields(section).map { "\($0.0):\($0.1)\r\n" }.joined()
        }
        .joined(separator: "\r\n")
    }

    private func fields(_ section: String) -> Fields {
        switch section {
        case "server": serverFields
        case "clients": clientFields
        case "memory": memoryFields
        case "persistence": persistenceFields
        case "stats": statsFields
        case "replication": Self.replicationFields
        case "cpu": cpuFields
        case "commandstats": commandFields
        case "errorstats":
            server.errors.all.byCode.sorted { $0.key < $1.key }.map { ("errorstat_\($0.key)", "count=\($0.value)") }
        case "latencystats": latencyFields
        case "cluster": [("cluster_enabled", "0")]
        case "keyspace": keyspaceFields
        case "larder": larderFields
        default: []
        }
    }

    // MARK: The process

    private var serverFields: Fields {
        let uptime = max(0, server.engine.monotonic() - server.startedAt) / 1000
        var system = utsname()
        uname(&system)
        return [
            ("redis_version", Version.redis), ("redis_git_sha1", "00000000"), ("redis_git_dirty", "0"),
            ("redis_build_id", "larder"), ("redis_mode", "standalone"), ("larder_version", Version.text),
            (
                "os",
                "\(Self.text(of: system.sysname)) \(Self.text(of: system.release)) \(Self.text(of: system.machine))"
            ),
            ("arch_bits", "64"), ("monotonic_clock", "POSIX clock_gettime"), ("multiplexing_api", "libuv"),
            ("process_id", getpid()), ("process_supervised", "no"), ("run_id", server.runID), ("tcp_port", "0"),
            ("unixsocket", server.socketPath), ("server_time_usec", server.engine.now() * 1000),
            ("uptime_in_seconds", uptime), ("uptime_in_days", uptime / 86_400), ("hz", "10"), ("configured_hz", "10"),
            ("lru_clock", server.engine.now() / 1000 & 0xFF_FFFF), ("executable", Program.path),
            ("config_file", server.configurationPath), ("io_threads_active", server.threadCount > 1 ? 1 : 0),
            ("event_loops", server.threadCount),
        ]
    }

    /// Returns the text in a C array of characters. The function uname has filled the array.
    private static func text<Characters>(of characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private var clientFields: Fields {
        let records = server.clientRegistry.all
        let (inputs, outputs) = (records.map { $0.inputBytes.read() }, records.map { $0.outputBytes.read() })
        return [
            ("connected_clients", server.clients.read()), ("cluster_connections", "0"),
            ("maxclients", server.clientsMax), ("client_recent_max_input_buffer", inputs.max() ?? 0),
            ("client_recent_max_output_buffer", outputs.max() ?? 0),
            ("blocked_clients", server.clientsPaused.read() + server.engine.leases.waiters.read()),
            ("tracking_clients", server.tracking.trackingClients), ("live_queries", server.live.count),
            ("clients_in_timeout_table", "0"),
        ]
    }

    private var memoryFields: Fields {
        let memory = server.engine.memory
        let scripts = server.scripts.kept
        let functions = try? server.functions.current()
        let resident = ProcessMemory.measure()?.residentBytes ?? 0
        let peak = server.engine.residentPeak(resident)
        let clients = server.clientRegistry.all.reduce(0) { $0 + $1.byteCount }
        return [
            ("used_memory", resident), ("used_memory_human", Self.human(resident)), ("used_memory_rss", resident),
            ("used_memory_rss_human", Self.human(resident)), ("used_memory_peak", peak),
            ("used_memory_peak_human", Self.human(peak)), ("used_memory_peak_perc", Self.percent(resident, of: peak)),
            ("used_memory_overhead", "0"), ("used_memory_startup", "0"), ("used_memory_dataset", memory.usedBytes),
            ("used_memory_dataset_perc", Self.percent(memory.usedBytes, of: resident)),
            ("total_system_memory", MachineMemory.bytes),
            ("total_system_memory_human", Self.human(MachineMemory.bytes)),
            ("used_memory_lua", server.scripts.idleBytes), ("used_memory_vm_eval", server.scripts.idleBytes),
            ("used_memory_scripts", scripts.bytes + (functions?.byteCount ?? 0)),
            ("used_memory_scripts_eval", scripts.bytes), ("number_of_cached_scripts", scripts.count),
            ("number_of_functions", functions?.functionCount ?? 0),
            ("number_of_libraries", functions?.libraries.count ?? 0),
            ("used_memory_functions", functions?.byteCount ?? 0), ("maxmemory", memory.limitBytes),
            ("maxmemory_human", Self.human(memory.limitBytes)), ("maxmemory_policy", "noeviction"),
            ("mem_fragmentation_ratio", "1.00"), ("mem_fragmentation_bytes", "0"), ("mem_not_counted_for_evict", "0"),
            ("mem_replication_backlog", "0"), ("mem_clients_slaves", "0"), ("mem_clients_normal", clients),
            ("mem_aof_buffer", server.engine.pipeline.pendingByteCount), ("mem_allocator", Allocator.name),
            ("active_defrag_running", "0"), ("lazyfree_pending_objects", "0"), ("memory_tier_bytes", memory.usedBytes),
        ]
    }

    /// Formats a number of bytes as Redis does: `1.50M`.
    static func human(_ bytes: Int) -> String {
        var (value, unit) = (Double(bytes), "B")
        for larger in ["K", "M", "G", "T"] where value >= 1024 { (value, unit) = (value / 1024, larger) }
        return unit == "B" ? "\(bytes)B" : fixed(value, 2) + unit
    }

    /// Formats a number with `digits` digits after the decimal point; a negative one, or one that is none, as 0.
    private static func fixed(_ value: Double, _ digits: Int) -> String {
        var scale = 1
        for _ in 0..<digits { scale *= 10 }
        let scaled = max(0, Int(exactly: (value * Double(scale)).rounded()) ?? 0)
        return "\(scaled / scale).\((scaled % scale).zeroPadded(digits))"
    }

    private static func percent(_ part: Int, of whole: Int) -> String {
        fixed(whole > 0 ? 100 * Double(part) / Double(whole) : 0, 2) + "%"
    }

    private var cpuFields: Fields {
        var own = rusage()
        var children = rusage()
        // RUSAGE_SELF and RUSAGE_CHILDREN as numbers, because some C libraries declare them with a type of their own.
        getrusage(0, &own)
        getrusage(-1, &children)
        return [
            ("used_cpu_sys", Self.seconds(own.ru_stime)), ("used_cpu_user", Self.seconds(own.ru_utime)),
            ("used_cpu_sys_children", Self.seconds(children.ru_stime)),
            ("used_cpu_user_children", Self.seconds(children.ru_utime)),
        ]
    }

    private static func seconds(_ time: timeval) -> String { "\(time.tv_sec).\(Int(time.tv_usec).zeroPadded(6))" }

    // MARK: The larder

    /// The fields about the replay of the journal. As in Redis, some of them are shown only until it is over.
    private var loadingFields: Fields {
        guard let (done, total) = server.engine.replayProgress else {
            return [("loading", "0"), ("async_loading", "0")]
        }
        return [
            ("loading", "1"), ("async_loading", "1"), ("loading_total_bytes", total), ("loading_loaded_bytes", done),
            ("loading_loaded_perc", String(Self.percent(done, of: total).dropLast())),
        ]
    }

    private var persistenceFields: Fields {
        let statistics = server.engine.statistics
        let failure = server.engine.writeFailure
        let own: Fields = [
            ("rdb_changes_since_last_save", server.changesSinceSave),
            ("rdb_bgsave_in_progress", server.saves.isUnderWay ? "1" : "0"),
            ("rdb_last_save_time", server.saves.lastSeconds), ("rdb_last_bgsave_status", server.saves.status),
            ("rdb_last_bgsave_time_sec", "-1"), ("rdb_current_bgsave_time_sec", "-1"), ("aof_enabled", "1"),
            ("aof_rewrite_in_progress", "0"), ("aof_rewrite_scheduled", "0"), ("aof_last_rewrite_time_sec", "-1"),
            ("aof_current_rewrite_time_sec", "-1"), ("aof_last_bgrewrite_status", "ok"),
            ("aof_last_write_status", failure == nil ? "ok" : "err"),
            ("last_write_errno", failure?.systemErrorNumber ?? 0), ("aof_current_size", server.engine.journalByteCount),
            ("aof_base_size", "0"), ("durability", server.engine.options.durability.rawValue),
            ("commit_groups", statistics.commitGroups.read()), ("commit_units", statistics.commitUnits.read()),
            ("syncs", statistics.syncs.read()), ("commit_failures", statistics.commitFailures.read()),
            ("reopens", statistics.reopens.read()), ("pending_bytes", server.engine.pipeline.pendingByteCount),
            ("journal_bytes", server.engine.journalByteCount), ("checkpoints", statistics.checkpoints.read()),
            ("journal_rewrites", statistics.journalRewrites.read()),
            ("journal_damages", statistics.journalDamages.read()),
            ("journal_cut_bytes", statistics.journalCutBytes.read()), ("salvages", statistics.salvages.read()),
            ("salvaged_lost_pieces", statistics.salvagedPieces.read()),
            ("salvaged_lost_ranges", statistics.salvagedRanges.read()),
            ("salvages_in_doubt", statistics.salvagesInDoubt.read()), ("fact_losses", statistics.factLosses.read()),
        ]
        return loadingFields + own
    }

    private var statsFields: Fields {
        let statistics = server.engine.statistics
        let (traffic, rates) = (server.statistics.traffic, server.statistics.perSecond)
        let lag = statistics.expiryLag.sums
        return [
            ("total_connections_received", server.clientsSeen.read()),
            ("total_commands_processed", server.statistics.total),
            ("instantaneous_ops_per_sec", rates.commands),
            ("total_net_input_bytes", traffic.bytesIn), ("total_net_output_bytes", traffic.bytesOut),
            ("instantaneous_input_kbps", Self.fixed(Double(rates.bytesIn) / 1024, 2)),
            ("instantaneous_output_kbps", Self.fixed(Double(rates.bytesOut) / 1024, 2)),
            ("rejected_connections", server.clientsRefused.read()), ("sync_full", "0"), ("sync_partial_ok", "0"),
            ("sync_partial_err", "0"), ("expired_keys", statistics.expired.read()), ("expiry_lag_entries", lag.entries),
            ("expiry_lag_avg_ms", lag.averageMilliseconds), ("expiry_lag_p99_ms", lag.milliseconds(ofShare: 0.99)),
            ("expiry_lag_max_ms", lag.mostMilliseconds), ("expired_stale_perc", "0.00"),
            ("evicted_keys", statistics.evicted.read()), ("evicted_clients", server.clientsEvicted.read()),
            ("keyspace_hits", statistics.hits.read()), ("keyspace_misses", statistics.misses.read()),
            ("keyspace_misses_expired", statistics.missesExpired.read()),
            ("keyspace_misses_purged", statistics.missesPurged.read()),
            ("keyspace_misses_evicted", statistics.missesEvicted.read()),
            ("pubsub_channels", server.pubsub.names(.channel, matching: nil).count),
            ("pubsub_patterns", server.pubsub.patternCount),
            ("pubsubshard_channels", server.pubsub.names(.shardChannel, matching: nil).count),
            ("latest_fork_usec", "0"), ("total_forks", "0"), ("tracking_total_keys", server.tracking.trackedKeys),
            ("tracking_total_items", server.tracking.trackedItems),
            ("tracking_total_prefixes", server.tracking.prefixCount),
            ("acl_access_denied_auth", server.access.passwordsDenied.read()),
            ("acl_access_denied_cmd", server.access.commandsDenied.read()), ("acl_access_denied_key", "0"),
            ("acl_access_denied_channel", server.access.channelsDenied.read()), ("unexpected_error_replies", "0"),
            ("total_error_replies", server.errors.all.total),
        ]
    }

    private static let replicationFields: Fields = [
        ("role", "master"), ("connected_slaves", "0"), ("master_failover_state", "no-failover"),
        ("master_replid", String(repeating: "0", count: 40)), ("master_replid2", String(repeating: "0", count: 40)),
        ("master_repl_offset", "0"), ("second_repl_offset", "-1"), ("repl_backlog_active", "0"),
        ("repl_backlog_size", "0"), ("repl_backlog_first_byte_offset", "0"), ("repl_backlog_histlen", "0"),
    ]

    private var commandFields: Fields {
        let sums = server.statistics.sums
        return CommandTable.withSubcommands.compactMap { row in
            guard let sum = sums[row.metadata.number] else { return nil }
            let each = sum.calls > 0 ? Double(sum.nanoseconds) / 1000 / Double(sum.calls) : 0
            return (
                "cmdstat_\(row.name)",
                "calls=\(sum.calls),usec=\(sum.microseconds),usec_per_call=\(Self.fixed(each, 2)),"
                    + "rejected_calls=\(sum.rejected),failed_calls=\(sum.failed)"
            )
        }
    }

    private var latencyFields: Fields {
        let sums = server.statistics.sums
        return CommandTable.withSubcommands.compactMap { row in
            guard let sum = sums[row.metadata.number], sum.calls > 0 else { return nil }
            let shares = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]
            return (
                "latency_percentiles_usec_\(row.name)",
                shares.map { "\($0.0)=\(Self.fixed(sum.percentile($0.1), 3))" }.joined(separator: ",")
            )
        }
    }

    /// One field for each database: `db0` for a numbered database, as tools for Redis expect; `database_<name>` for any
    /// other database. If the entries of some databases have not been counted yet, or are being replayed, the first
    /// field is the number of these databases.
    private var keyspaceFields: Fields {
        let databases = server.engine.databases.filter { rights?.covers(.read, in: $0.name) ?? true }
        let replayed = databases.filter { server.engine.isReplayed($0) }
        let counts = server.counts.counts(of: replayed, asked: asked)
        let uncounted = databases.count - counts.count { $0 != nil }
        return (uncounted > 0 ? [("uncounted_databases", "\(uncounted)")] : [])
            + zip(replayed, counts).compactMap { database, count in
                guard let count, count.entries + count.stale > 0 else { return nil }
                let name = Int(database.name) == nil ? "database_\(database.name)" : "db\(database.name)"
                let text = "keys=\(count.entries),expires=\(count.expiring),avg_ttl=\(count.averageLife)"
                return (name, count.stale > 0 ? "\(text),stale=\(count.stale)" : text)
            }
    }

    /// One field for each database that has an origin, and that the client may read.
    private var originFields: Fields {
        [("origins_unusable", "\(server.origins.unusableCount)")]
            + server.origins.all.filter { rights?.covers(.read, in: $0.database.name) ?? true }.map { tier in
                let fields = tier.fields.filter { $0.0 != "error" && $0.0 != "prefixes" }.map { "\($0.0)=\($0.1)" }
                return ("origin_\(tier.database.name)", fields.joined(separator: ","))
            }
    }

    private var scriptFields: Fields {
        let scripts = server.scripts
        return [
            ("script_runs", scripts.counts.runs.load(ordering: .relaxed)),
            ("script_repeats", scripts.counts.repeats.load(ordering: .relaxed)),
            ("scripts_without_locks", scripts.counts.longRuns.load(ordering: .relaxed)),
            ("scripts_running", scripts.runningCount),
            ("scripts_killed", scripts.counts.killed.load(ordering: .relaxed)),
            ("scripts_timed_out", scripts.counts.timedOut.load(ordering: .relaxed)),
            ("scripts_evicted", scripts.counts.evicted.load(ordering: .relaxed)),
        ]
    }

    /// The disk space of the whole larder if the client may read all databases. Otherwise only the space of the
    /// databases that the client may read, to reveal nothing about other databases.
    private var diskBytes: Int {
        guard let rights, !rights.covers(.read, in: nil) else { return server.engine.diskBytes }
        return server.engine.databases.filter { rights.covers(.read, in: $0.name) }.reduce(0) { $0 + $1.diskBytes }
    }

    /// The followers of this larder's databases, and the size of the change log that they read.
    private var feedFields: Fields {
        let log = server.engine.changeLog.figures
        return [
            ("followed_databases", log.databases),
            ("followers", server.clientRegistry.all.count { $0.isFollower.load(ordering: .relaxed) }),
            ("follower_fallbacks", server.engine.statistics.feedFallbacks.read()), ("change_log_entries", log.changes),
            ("change_log_bytes", log.bytes), ("change_log_disk_bytes", log.fileBytes),
            ("change_log_oldest", log.oldest ?? 0), ("change_log_newest", log.newest ?? 0),
        ]
    }

    private var larderFields: Fields {
        let (statistics, leases) = (server.engine.statistics, server.engine.leases)
        let own: Fields = [
            ("directory", server.engine.directory), ("default_policy", server.engine.options.defaultPolicy),
            ("databases", server.engine.databases.count),
            ("clock_offset_milliseconds", server.engine.clockOffsetMilliseconds),
            ("open_snapshots", server.openSnapshots.read()), ("purges", statistics.purges.read()),
            ("dropped_commands", server.commandsDropped.read()), ("disk_limit", server.engine.diskLimitBytes ?? 0),
            ("disk_bytes", diskBytes), ("evicted_entries", statistics.evicted.read()),
            ("evicted_bytes", statistics.evictedBytes.read()), ("databases_set_aside", statistics.setAside.read()),
            ("databases_missing", statistics.databasesMissing.read()),
            ("index_records_swept", statistics.indexSwept.read()), ("queries", statistics.queries.read()),
            ("query_scans", statistics.queryScans.read()), ("query_entries_examined", statistics.queryExamined.read()),
            ("leases", leases.leases.read()), ("lease_waiters", leases.waiters.read()),
            ("leases_granted", leases.granted.read()), ("leases_lost", leases.lost.read()),
            ("stale_served", leases.staleServed.read()), ("fetch_failures", leases.failures.read()),
        ]
        return own + feedFields + originFields + scriptFields + server.backups.fields + server.checks.fields
    }
}
