import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let larderPlanners: Planners = [
        .meta: LarderCommands.meta,
        .tags: LarderCommands.tags,
    ]

    static let larderCommands: Handlers = [
        .policy: LarderCommands.policy,
        .limit: LarderCommands.limit,
        .origin: OriginCommands.origin,
        .databases: LarderCommands.databases,
        .purge: LarderCommands.purge,
        .snapshotOpen: LarderCommands.openSnapshot, .snapshotClose: LarderCommands.closeSnapshot,
        .backup: BackupCommands.backup, .check: CheckCommands.check,
    ]
}

enum LarderCommands {
    @Sendable static func meta(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let (now, ahead) = (words.now, words.timeAhead)
        return .facts(1, .stale) { facts, rules, replies in
            guard let facts else { return replies.null() }
            let header = facts.header
            let isFresh = !facts.isUnverified && rules.freshness(header, now: now) == .fresh
            let deadline = rules.deadline(header)
            replies.map(count: 10)
            replies.bulk("stored-at")
            replies.integer(max(0, header.storedAt - ahead))
            replies.bulk("age")
            replies.integer(max(0, now - header.storedAt))
            replies.bulk("deadline")
            replies.integer(deadline.map { max(0, $0 - ahead) } ?? -1)
            replies.bulk("ttl")
            replies.integer(deadline.map { max(0, $0 - now) } ?? -1)
            replies.bulk("rule")
            replies.bulk(header.rule.name)
            replies.bulk("policy")
            replies.bulk(rules.policy.description)
            replies.bulk("grace")
            replies.integer(header.grace ?? rules.grace)
            replies.bulk("size")
            replies.integer(facts.payloadCount)
            replies.bulk("codec")
            replies.bulk(header.codec.description)
            replies.bulk("state")
            replies.bulk(isFresh ? "fresh" : "stale")
        }
    }

    // MARK: POLICY

    @Sendable static func policy(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count > 1 else {
            let settings = call.rules.settings
            call.session.replies.map(count: policyPairs)
            reply(settings, to: &call.session.replies)
            return .done
        }
        let policy = try call.policy(1)
        var newGrace: Int64?
        var newJitter: Int?
        for index in stride(from: 2, to: call.count, by: 2) {
            guard index + 1 < call.count else { throw .syntax }
            if call.isWord(index, "GRACE"), newGrace == nil {
                newGrace = try call.grace(index + 1)
            } else if call.isWord(index, "JITTER"), newJitter == nil {
                newJitter = try call.jitter(index + 1)
            } else {
                throw .syntax
            }
        }
        let database = call.database
        return .deferred { [newGrace, newJitter] (reply) throws(CommandError) in
            try CommandError.wrap(database.setPolicy(policy, grace: newGrace, jitter: newJitter))
            reply.simple("OK")
            return nil
        }
    }

    /// The number of keys that ``reply(_:to:)`` writes, each with a value.
    private static let policyPairs = 4

    /// Writes a policy as keys and values of a map.
    private static func reply(_ settings: DatabasePolicy, to replies: inout ReplyBuffer) {
        replies.bulk("policy")
        replies.bulk(settings.policy.description)
        replies.bulk("interval")
        replies.integer(settings.policy.intervalMilliseconds ?? -1)
        replies.bulk("grace")
        replies.integer(settings.grace)
        replies.bulk("jitter")
        replies.integer(Int64(settings.jitter))
    }

    // MARK: LIMIT

    @Sendable static func limit(_ call: inout Call) throws(CommandError) -> Outcome {
        let database = call.database
        guard call.count > 1 else {
            return .deferred { (reply) throws(CommandError) in
                reply.map(count: 3)
                reply.bulk("limit")
                reply.integer(database.diskLimit)
                reply.bulk("bytes")
                reply.integer(database.diskBytes)
                reply.bulk("evicted")
                reply.integer(database.counts.evicted)
                return nil
            }
        }
        guard call.count == 2 else { throw .syntax }
        guard let limit = DiskLimit(call.text(1), least: DiskThresholds.databaseBytesMin) else {
            throw CommandError(
                "ERR invalid limit '\(call.text(1).prefix(64))': must be \(DiskLimit.databaseRule)")
        }
        return .deferred { (reply) throws(CommandError) in
            do throws(LarderError) {
                try database.setDiskLimit(limit.byteCount ?? 0)
            } catch {
                guard error.code == .noSuchDatabase else { throw CommandError(error) }
                throw CommandError("ERR \(error.message): store an entry first, or set its policy")
            }
            reply.simple("OK")
            return nil
        }
    }

    // MARK: Whole databases

    @Sendable static func databases(_ call: inout Call) throws(CommandError) -> Outcome {
        let (engine, rights) = (call.server.engine, call.session.rights.current)
        return .deferred { (reply) throws(CommandError) in
            let databases = engine.databases.filter { rights?.covers(.read, in: $0.name) ?? true }
            reply.array(count: databases.count)
            for database in databases {
                // If the database cannot be opened, these numbers are -1.
                let numbers = try? database.entryNumbers()
                reply.map(count: 11 + policyPairs)
                reply.bulk("name")
                reply.bulk(database.name)
                Self.reply(database.rules.settings, to: &reply)
                reply.bulk("entries")
                reply.integer(numbers?.fresh ?? -1)
                reply.bulk("stale")
                reply.integer(numbers?.stale ?? -1)
                let ends = numbers?.ends
                for (name, number) in [
                    ("ends-minute", ends?.minute), ("ends-hour", ends?.hour), ("ends-day", ends?.day),
                    ("ends-never", ends?.never),
                ] {
                    reply.bulk(name)
                    reply.integer(number ?? -1)
                }
                reply.bulk("bytes")
                reply.integer(database.byteCountOnDisk())
                reply.bulk("limit")
                reply.integer(database.diskLimit)
                reply.bulk("state")
                reply.bulk(database.condition)
                // The damage that was found by the last salvage since the start of the daemon; empty without a salvage.
                reply.bulk("damage")
                reply.bulk(database.lastSalvage?.description ?? "")
            }
            return nil
        }
    }

    @Sendable static func purge(_ call: inout Call) throws(CommandError) -> Outcome {
        let selection: PurgeSelection
        if call.count == 1 {
            selection = .all(counting: true)
        } else if call.count == 2, call.isWord(1, "EXPIRED") {
            selection = .expired(merges: false)
        } else if call.count == 3, call.isWord(1, "PREFIX") {
            selection = .prefix(call.array(2))
        } else if call.count >= 3, call.isWord(1, "TAG") {
            return try purgeTags(&call)
        } else if call.count >= 3, call.isWord(1, "UPTO") {
            return try purgeUpTo(&call)
        } else {
            throw .syntax
        }
        let (database, server, lines) = (call.database, call.server, call.server.purgeLines)
        let notifier = call.count == 1 ? call.server.notifier : nil
        // Do not log purges of prefixes and tags, because programs make them all the time.
        let what: String? = call.count == 1 ? "PURGE" : call.count == 2 ? "PURGE EXPIRED" : nil
        let line = what.map { "\(call.session.logName) ran \($0) in database '\(database.name)'" }
        return .deferred { (reply) throws(CommandError) in
            let report: PurgeReport
            do throws(LarderError) {
                let work = { () throws(LarderError) in try server.purge(database, selection) }
                report = if let notifier { try notifier.notifyOnce(of: [database], work) } else { try work() }
                if let line { lines.add(.info, "\(line), entries removed: \(report.entries ?? 0)") }
            } catch {
                throw CommandError(error)
            }
            reply.map(count: 3)
            reply.bulk("entries")
            reply.integer(report.entries ?? 0)
            reply.bulk("bytes")
            reply.integer(report.bytes)
            reply.bulk("milliseconds")
            reply.integer(report.milliseconds)
            return nil
        }
    }

    /// Handles `PURGE TAG tag [tag …] [SOFT]`. If the last word is SOFT and follows a tag, it is the option. To purge a
    /// tag named SOFT, put it before another tag.
    private static func purgeTags(_ call: inout Call) throws(CommandError) -> Outcome {
        let isSoft = call.count > 3 && call.isWord(call.count - 1, "SOFT")
        let tags = (2..<(isSoft ? call.count - 1 : call.count)).map { call.array($0) }
        let database = call.database
        return .deferred { (reply) throws(CommandError) in
            do throws(LarderError) {
                try database.purge(.tags(tags, soft: isSoft))
            } catch {
                throw error.code == .invalidArgument ? CommandError("ERR \(error.message)") : CommandError(error)
            }
            reply.simple("OK")
            return nil
        }
    }

    /// Handles `PURGE UPTO version [PREFIX prefix] [TAG tag …]`.
    private static func purgeUpTo(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count > 2 else { throw .syntax }
        let version = try call.version(2)
        var index = 3
        var prefix: [UInt8] = []
        var tags: [[UInt8]]?
        if call.count > index + 1, call.isWord(index, "PREFIX") {
            prefix = call.array(index + 1)
            index += 2
        }
        if call.count > index + 1, call.isWord(index, "TAG") {
            tags = (index + 1..<call.count).map { call.array($0) }
            index = call.count
        }
        guard index == call.count else { throw .syntax }
        let database = call.database
        let (chosen, tagged) = (prefix, tags)
        return .deferred { (reply) throws(CommandError) in
            do throws(LarderError) {
                let report = try database.purge(.upTo(version, prefix: chosen, tags: tagged))
                reply.integer(Int64(report.entries ?? 0))
            } catch {
                throw error.code == .invalidArgument ? CommandError("ERR \(error.message)") : CommandError(error)
            }
            return nil
        }
    }

    @Sendable static func tags(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .records([try words.key(1)]) { _ in
            0
        } reply: { records, replies in
            guard let record = records[0] else { return replies.null() }
            let tags = record.tags?.all ?? []
            replies.array(count: tags.count)
            for tag in tags { replies.bulk(tag) }
        }
    }

    // MARK: SNAPSHOT

    @Sendable static func closeSnapshot(_ call: inout Call) throws(CommandError) -> Outcome {
        if call.session.seesCurrent { throw CommandError("ERR no snapshot is open") }
        call.session.view = .current
        return call.ok()
    }

    @Sendable static func openSnapshot(_ call: inout Call) throws(CommandError) -> Outcome {
        let server = call.server
        guard call.session.seesCurrent else {
            throw CommandError("ERR a snapshot is open already: SNAPSHOT CLOSE first")
        }
        guard let slot = SnapshotSlot(server) else {
            throw CommandError("ERR the limit of \(server.limits.snapshotsMax) open snapshots is reached")
        }
        let database = call.database
        let until = server.engine.monotonic() + server.limits.snapshotMilliseconds
        return .deferred { (reply) throws(CommandError) in
            let open = OpenSnapshot(try CommandError.wrap(database.snapshot()), slot)
            reply.simple("OK")
            return { session in session.view = .snapshot(open, until: until) }
        }
    }
}
