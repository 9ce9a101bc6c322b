import LarderEngine

/// The text of INFO: sections and fields that Redis' tools look for, and ours in the section `larder`.
struct ServerInfo {
    /// The version of Redis whose replies ours follow; clients choose their features by it.
    static let redisVersion = "7.0.0"

    private let server: ServerState

    init(_ server: ServerState) { self.server = server }

    private static let order = ["server", "clients", "memory", "persistence", "stats", "keyspace", "larder"]

    /// The sections named, all of them where none is or where `all`, `everything` or `default` is.
    func text(_ sections: [String]) -> String {
        let isAll = sections.isEmpty || sections.contains { ["all", "everything", "default"].contains($0) }
        return Self.order.filter { isAll || sections.contains($0) }
            .map { section in
                let title = section.prefix(1).uppercased() + section.dropFirst()
                return "# \(title)\r\n" + fields(section).map { "\($0.0):\($0.1)\r\n" }.joined()
            }
            .joined(separator: "\r\n")
    }

    private func fields(_ section: String) -> [(String, String)] {
        switch section {
        case "server": serverFields
        case "clients":
            [
                ("connected_clients", "\(server.clients.read())"), ("maxclients", "\(server.limits.clientsMax)"),
                ("blocked_clients", "0"),
            ]
        case "memory": memoryFields
        case "persistence": persistenceFields
        case "stats": statsFields
        case "keyspace": keyspaceFields
        default: larderFields
        }
    }

    private var serverFields: [(String, String)] {
        let uptime = max(0, server.engine.monotonic() - server.startedAt) / 1000
        return [
            ("redis_version", Self.redisVersion), ("redis_mode", "standalone"), ("larder_version", Version.text),
            ("process_id", "\(getpid())"), ("tcp_port", "0"), ("unixsocket", server.socketPath),
            ("uptime_in_seconds", "\(uptime)"), ("uptime_in_days", "\(uptime / 86_400)"),
            ("io_threads_active", "\(server.threadCount > 1 ? 1 : 0)"),
            ("server_time_usec", "\(server.engine.now() * 1000)"),
        ]
    }

    private var memoryFields: [(String, String)] {
        let memory = server.engine.memory
        return [
            ("used_memory", "\(residentBytes)"), ("used_memory_rss", "\(residentBytes)"),
            ("maxmemory", "\(memory.limitBytes)"), ("memory_tier_bytes", "\(memory.usedBytes)"),
        ]
    }

    private var persistenceFields: [(String, String)] {
        let statistics = server.engine.statistics
        return [
            ("loading", "0"), ("durability", server.engine.options.durability.rawValue),
            ("commit_groups", "\(statistics.commitGroups.read())"),
            ("commit_units", "\(statistics.commitUnits.read())"), ("syncs", "\(statistics.syncs.read())"),
            ("commit_failures", "\(statistics.commitFailures.read())"), ("reopens", "\(statistics.reopens.read())"),
            ("pending_bytes", "\(server.engine.pipeline.pendingByteCount)"),
            ("journal_bytes", "\(server.engine.journalByteCount)"), ("checkpoints", "\(statistics.checkpoints.read())"),
        ]
    }

    private var statsFields: [(String, String)] {
        let statistics = server.engine.statistics
        return [
            ("total_connections_received", "\(server.clientsSeen.read())"),
            ("total_commands_processed", "\(server.commands.total)"),
            ("rejected_connections", "\(server.clientsRefused.read())"),
            ("keyspace_hits", "\(statistics.hits.read())"), ("keyspace_misses", "\(statistics.misses.read())"),
            ("expired_keys", "\(statistics.expiredSwept.read())"), ("evicted_keys", "0"),
        ]
    }

    /// `db0:keys=…` for the numbered databases, as Redis' tools expect, and `database_<name>` for the others.
    private var keyspaceFields: [(String, String)] {
        server.engine.databases.compactMap { database in
            let entries = server.counts.entries(of: database) { server.engine.monotonic() }
            guard entries > 0 else { return nil }
            let name = Int(database.name) == nil ? "database_\(database.name)" : "db\(database.name)"
            let expiring = database.policy == .never ? 0 : entries
            return (name, "keys=\(entries),expires=\(expiring),avg_ttl=0")
        }
    }

    private var larderFields: [(String, String)] {
        let statistics = server.engine.statistics
        return [
            ("directory", server.engine.directory), ("default_policy", "\(server.engine.options.defaultPolicy)"),
            ("databases", "\(server.engine.databases.count)"),
            ("clock_offset_milliseconds", "\(server.engine.clockOffsetMilliseconds)"),
            ("open_snapshots", "\(server.openSnapshots.read())"), ("purges", "\(statistics.purges.read())"),
            ("databases_set_aside", "\(statistics.setAside.read())"),
            ("index_records_swept", "\(statistics.indexSwept.read())"),
        ]
    }

    /// Resident memory, from the second field of /proc/self/statm, which counts pages.
    private var residentBytes: Int {
        guard let bytes = (try? FileSystem.read("/proc/self/statm")) ?? nil else { return 0 }
        let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { return 0 }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
