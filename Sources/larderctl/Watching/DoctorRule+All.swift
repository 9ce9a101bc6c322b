import LarderPlatform
import LarderVocabulary

extension DoctorRule {
    /// The minimum number of reads for a meaningful hit ratio.
    private static let readsMin: Int64 = 10_000
    private static let hour: Int64 = 3600

    // MARK: Losses

    static let damage: [DoctorRule] = [
        DoctorRule(
            .problem, "writes-refused", "the last write could not be committed",
            "see the daemon's log for the reason, usually a full disk or missing rights", advise: \.writeRemedy
        ) { facts in
            guard facts.info.text("aof_last_write_status") == "err" else { return nil }
            let number = facts.writeErrorNumber
            return "writes are failing" + (number > 0 ? ": \(SystemErrorText.of(number))" : "")
        },
        DoctorRule(
            .problem, "database-unusable", "a database is damaged, or cannot be opened although writes succeed",
            "larderctl check reports damage, and larderctl check --repair salvages readable entries; without "
                + "damage, see the daemon's log", needs: .databases
        ) { facts in
            // While writes fail, the state `failed` means that the database refuses writes, not that it is damaged.
            // If files are missing, it tells whose.
            let writesFail = facts.isDiskFull || facts.writeRemedy != nil && facts.writeErrorNumber != ENOENT
            let bad = facts.databases.filter { $0.state == "damaged" || $0.state == "failed" && !writesFail }
            return bad.isEmpty ? nil : bad.map { "database '\($0.name)' is \($0.state)" }.joined(separator: ", ")
        },
        DoctorRule(
            .problem, "origins-unusable", "the origins are unknown, or one of them could not be set up",
            "see the log of the start for the reason; all commands of these databases are refused until the origins "
                + "can be read or are set again"
        ) { facts in
            let count = facts.number("origins_unusable")
            return count > 0 ? counted(count, "database") + " with an unknown or unavailable origin" : nil
        },
        DoctorRule(
            .problem, "origin-away", "a database's origin, or a server of it, is down",
            "check whether it runs and accepts connections; larderctl origin NAME shows its settings; as a service of "
                + "systemd, larderd reaches servers over TCP only with larderd.service.d/origins.conf (docs/Operating.md)"
        ) { facts in
            let away = facts.origins.compactMap { origin -> String? in
                guard let state = origin.fields["state"], state != "up" else { return nil }
                let since = origin.fields["down-milliseconds"].flatMap { Int64($0) }.map { $0 / 1000 } ?? 0
                let waiting = origin.fields["outbox"].flatMap { Int64($0) } ?? 0
                return "the origin of '\(origin.database)' is \(state) for \(NumberText.duration(since))"
                    + (facts.originErrors[origin.database].map { ": \($0)" } ?? "")
                    + (waiting > 0 ? "; \(counted(waiting, "key")) in its outbox" : "")
            }
            return away.isEmpty ? nil : away.joined(separator: ", ")
        },
        DoctorRule(
            .problem, "damage-met",
            "since the start, a database was missing or back, salvaged or moved aside, the journal damaged, or purges, functions or origins lost",
            "see the log and DAMAGED/ in the larder's directory for losses; test the disk (smartctl) and the memory"
        ) { facts in
            let kinds: [(String, String, String?, String)] = [
                ("salvages", "database", nil, "salvaged"), ("journal_damages", "journal", nil, "damaged"),
                ("databases_set_aside", "database", nil, "moved aside"),
                ("databases_missing", "database", nil, "missing, or back"),
                ("fact_losses", "loss", "losses", "of purges of tags, functions or origins"),
            ]
            let counts = kinds.compactMap { name, one, several, suffix -> String? in
                let count = facts.number(name)
                return count > 0 ? counted(count, one, several) + " \(suffix)" : nil
            }
            return counts.isEmpty ? nil : counts.joined(separator: ", ") + " since the start"
        },
        DoctorRule(
            .advice, "clock-set-back", "the larder's time is more than 60 s ahead of the clock",
            "synchronize the clock (chrony, systemd-timesyncd); until it has caught up, entries expire "
                + "by the larder's time"
        ) { facts in
            let offset = facts.number("clock_offset_milliseconds")
            return offset > 60_000 ? "the clock was set back by \(NumberText.duration(offset / 1000))" : nil
        },
    ]

    // MARK: Disk and memory

    static let disk: [DoctorRule] = [
        DoctorRule(
            .problem, "file-system-full", "less than 5 % of the larder's file system is free",
            "remove other files, or lower the larder's limit, also in its configuration: "
                + "larderctl CONFIG SET max-disk BYTES, which evicts entries even on a full disk; "
                + "or purge entries that can be fetched again (larderctl purge --database NAME)", needs: .disk,
            advise: \.remedyAtLeastLimit
        ) { facts in
            guard let disk = facts.disk, facts.isDiskFull else { return nil }
            let failed = facts.databases.filter { $0.state == "failed" }.map { "'\($0.name)'" }
            return "\(NumberText.bytes(disk.free)) of \(NumberText.bytes(disk.total)) are free, and the larder has "
                + NumberText.bytes(facts.number("disk_bytes"))
                + (failed.isEmpty ? "" : "; writes are refused by database \(failed.joined(separator: ", "))")
        },
        DoctorRule(
            .advice, "no-disk-limit", "the larder's files have no limit",
            "set a limit, so that it cannot fill the disk: larderctl CONFIG SET max-disk BYTES"
        ) { facts in
            guard facts.info.text("disk_limit") != nil, facts.number("disk_limit") == 0 else { return nil }
            return "the larder has \(NumberText.bytes(facts.number("disk_bytes"))), and can fill the disk"
        },
        DoctorRule(
            .advice, "evicting",
            "at least 1000 entries were evicted to keep the disk limit, and fewer than 80 % of at least 10000 reads hit",
            "raise the limit: larderctl CONFIG SET max-disk BYTES, larderctl limit NAME BYTES; or shorten lifetimes"
        ) { facts in
            let evicted = facts.number("evicted_entries")
            guard evicted >= 1000, let share = facts.info.hitShare, share < 0.8, facts.reads >= readsMin else {
                return nil
            }
            return "\(evicted) entries were evicted, \(NumberText.percent(share)) of the reads hit, and the limit is "
                + NumberText.bytes(facts.number("disk_limit"))
        },
        DoctorRule(
            .advice, "memory-too-large", "the limit of entries in memory is above half of the machine's memory",
            "lower it, or the machine may swap: larderctl CONFIG SET memory BYTES"
        ) { facts in
            let (limit, machine) = (facts.number("maxmemory"), facts.number("total_system_memory"))
            guard machine > 0, limit > machine / 2 else { return nil }
            return "limit \(NumberText.bytes(limit)), machine \(NumberText.bytes(machine))"
        },
        DoctorRule(
            .problem, "journal-long", "the journal has more than 256 MiB",
            "checkpoints fail or are too slow: see the log, and check the disk's speed (iostat -x)"
        ) { facts in
            let bytes = facts.number("journal_bytes")
            return bytes > 256 << 20 ? "\(NumberText.bytes(bytes)) are not in the databases' files yet" : nil
        },
        DoctorRule(
            .advice, "expiry-late", "1 % of at least 1000 expired entries were removed more than 10 minutes late",
            "they are not served, but use space: the disk may be too slow for the writes (iostat -x)"
        ) { facts in
            let late = facts.number("expiry_lag_p99_ms")
            guard late > 600_000, facts.number("expiry_lag_entries") >= 1000 else { return nil }
            return "1 % of the expired entries are removed at least \(NumberText.duration(late / 1000)) late"
        },
    ]

    // MARK: Work

    static let work: [DoctorRule] = [
        DoctorRule(
            .advice, "few-hits", "fewer than 50 % of at least 10000 reads hit",
            "larderctl top shows the reads; check whether keys are read that are never written, and how long "
                + "entries live (larderctl policy)"
        ) { facts in
            guard let share = facts.info.hitShare, share < 0.5, facts.reads >= readsMin else { return nil }
            return "\(NumberText.percent(share)) of \(facts.reads) reads"
        },
        DoctorRule(
            .advice, "short-lives",
            "at least 10 % of at least 10000 reads, and more than half of the misses, found an expired entry",
            "lengthen lifetimes (larderctl policy), or set a grace and read with FETCH, so that one "
                + "client refreshes while others get the stale value"
        ) { facts in
            let (expired, misses) = (facts.number("keyspace_misses_expired"), facts.number("keyspace_misses"))
            guard facts.reads >= readsMin, expired > misses / 2, expired >= facts.reads / 10 else { return nil }
            return "\(expired) of \(misses) misses"
        },
        DoctorRule(
            .problem, "origin-fails", "more than 10 % of at least 100 fetches from the origin failed",
            "check the origin of the clients' values, and the clients' logs"
        ) { facts in
            let (failed, granted) = (facts.number("fetch_failures"), facts.number("leases_granted"))
            guard granted >= 100, failed > granted / 10 else { return nil }
            return "\(failed) of \(granted) fetches"
        },
        DoctorRule(
            .advice, "slow-commands",
            "the slow log has 10 or more commands of the last hour, not counting administrative commands",
            "larderctl latency shows them; usually KEYS, long MGETs and values of many megabytes", needs: .slowLog
        ) { facts in
            let recent = facts.slowTimes.count { $0 > facts.now - hour }
            return recent >= 10 ? "\(recent) commands in the last hour" : nil
        },
        DoctorRule(
            .advice, "errors", "more than 5 % of at least 1000 commands returned an error",
            "larderctl stats errorstats counts errors by kind"
        ) { facts in
            let (errors, all) = (facts.number("total_error_replies"), facts.answered)
            guard all >= 1000, errors > all / 20 else { return nil }
            return "\(errors) of \(all) commands"
        },
    ]

    // MARK: Clients

    static let people: [DoctorRule] = [
        DoctorRule(
            .problem, "clients-refused", "a connection was refused because of the limit",
            "raise --max-clients and the limit of descriptors (LimitNOFILE), or let clients open fewer connections"
        ) { facts in
            let refused = facts.number("rejected_connections")
            guard refused > 0 else { return nil }
            return counted(refused, "connection was", "connections were") + " refused since the start"
        },
        DoctorRule(
            .advice, "many-clients", "more than 80 % of the allowed connections are open",
            "larderctl CLIENT LIST shows them; --timeout closes idle ones, --max-clients raises the limit"
        ) { facts in
            let (open, most) = (facts.number("connected_clients"), facts.number("maxclients"))
            return most > 0 && open > most * 8 / 10 ? "\(open) of \(most)" : nil
        },
        DoctorRule(
            .problem, "client-does-not-read", "more than 8 MiB of replies wait for one client",
            "check that program: its connection is closed if it reads nothing for some time (--reply-timeout)",
            needs: .clients
        ) { facts in
            func bytes(_ client: [String: String]) -> Int64 { Int64(client["omem"] ?? "") ?? 0 }
            let slow = facts.clients.filter { bytes($0) > 8 << 20 }
            guard let first = slow.max(by: { bytes($0) < bytes($1) }) else { return nil }
            let name = first["name"].map { $0.isEmpty ? "" : " (\($0))" } ?? ""
            return "\(NumberText.bytes(bytes(first))) wait for client \(first["id"] ?? "?")\(name)"
                + (slow.count > 1 ? ", and for \(slow.count - 1) more" : "")
        },
        DoctorRule(
            .advice, "short-connections",
            "at least 1000 connections, five per second, sent fewer than 3 commands each on average",
            "let programs reuse connections: connecting costs more than a read"
        ) { facts in
            let connections = facts.number("total_connections_received")
            let commands = facts.number("total_commands_processed")
            let seconds = facts.number("uptime_in_seconds")
            guard connections >= max(1000, 5 * seconds), commands / connections < 3 else { return nil }
            return "\(connections) connections for \(commands) commands"
        },
        DoctorRule(
            .advice, "monitor-on", "a client runs MONITOR",
            "stop it when it is not needed: it receives every command with its values", needs: .clients
        ) { facts in
            let watching = facts.clients.filter { $0["flags"]?.contains("O") == true }
            return watching.isEmpty
                ? nil : "clients " + watching.prefix(5).map { $0["id"] ?? "?" }.joined(separator: ", ")
        },
        DoctorRule(
            .advice, "open-to-all",
            "any user of the machine can connect to the socket, and there is neither a password nor an access rule",
            "restrict access with --socket-mode and --socket-group, with --password-file or with --allow-uid",
            needs: .settings
        ) { facts in
            // If this user may not read the settings, it is unknown whether the daemon is protected.
            let guards = ["password-file", "allow-uid", "allow-gid", "rights"]
            return facts.isSocketOpenToAll == true && facts.settings["password-file"] != nil
                && guards.allSatisfy { (facts.settings[$0] ?? "").isEmpty }
                ? "any user can read and write everything" : nil
        },
        DoctorRule(
            .advice, "larder-writable", "other users can write to the larder's directory", "chmod go-w DIRECTORY",
            needs: .disk
        ) { facts in
            guard facts.isLarderOpenToOthers else { return nil }
            return "other users can replace the files of \(facts.info.text("directory") ?? "the larder")"
        },
    ]
}
