import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let larderPlanners: Planners = [
        .meta: meta,
        .tags: tags,
        .fetch: { words throws(CommandError) in .fetch(try FetchWords(words)) },
        .release: release,
    ]

    static let larderCommands: Handlers = [
        .policy: policy,
        .limit: limit,
        .origin: origin,
        .databases: databases,
        .purge: purge,
        .snapshotOpen: openSnapshot,
        .snapshotClose: { call throws(CommandError) in
            if call.session.seesCurrent { throw CommandError("ERR no snapshot is open") }
            call.session.view = .current
            return call.ok()
        },
        .backup: backup, .check: check,
    ]

    @Sendable private static func meta(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let (now, ahead) = (words.now, words.timeAhead)
        return .facts(1, .stale) { facts, rules, replies in
            guard let facts else { return replies.null() }
            let header = facts.header
            let isFresh = !facts.isUnverified && rules.freshness(header, now: now) == .fresh
            let deadline = rules.deadline(header)
            replies.map(count: 10)
            replies.field("stored-at", max(0, header.storedAt - ahead))
            replies.field("age", max(0, now - header.storedAt))
            replies.field("deadline", deadline.map { max(0, $0 - ahead) } ?? -1)
            replies.field("ttl", deadline.map { max(0, $0 - now) } ?? -1)
            replies.field("rule", header.rule.name)
            replies.field("policy", rules.policy.description)
            replies.field("grace", header.grace ?? rules.grace)
            replies.field("size", facts.payloadCount)
            replies.field("codec", header.codec.description)
            replies.field("state", isFresh ? "fresh" : "stale")
        }
    }

    // MARK: POLICY

    @Sendable private static func policy(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count > 1 else {
            let settings = call.rules.settings
            call.session.replies.map(count: policyPairs)
            reply(settings, to: &call.session.replies)
            return .done
        }
        let policy = try call.policy(1)
        var newGrace: Int64?
        var newJitter: Int?
        var options = OptionReader(call, from: 2)
        while let name = options.next() {
            let index = try options.value()
            switch name {
            case "grace" where newGrace == nil: newGrace = try call.grace(index)
            case "jitter" where newJitter == nil: newJitter = try call.jitter(index)
            default: throw .syntax
            }
        }
        let database = call.database
        return .okLater { [newGrace, newJitter] () throws(CommandError) in
            try CommandError.wrap(database.setPolicy(policy, grace: newGrace, jitter: newJitter))
        }
    }

    /// The number of keys that ``reply(_:to:)`` writes, each with a value.
    private static let policyPairs = 4

    /// Writes a policy as keys and values of a map.
    private static func reply(_ settings: DatabasePolicy, to replies: inout ReplyBuffer) {
        replies.field("policy", settings.policy.description)
        replies.field("interval", settings.policy.intervalMilliseconds ?? -1)
        replies.field("grace", settings.grace)
        replies.field("jitter", settings.jitter)
    }

    // MARK: LIMIT

    @Sendable private static func limit(_ call: inout Call) throws(CommandError) -> Outcome {
        let database = call.database
        guard call.count > 1 else {
            return .later { reply in
                reply.map(count: 3)
                reply.field("limit", database.diskLimit)
                reply.field("bytes", database.diskBytes)
                reply.field("evicted", database.counts.evicted)
            }
        }
        guard call.count == 2 else { throw .syntax }
        guard let limit = ServerConfiguration.diskLimit(call.text(1), least: DiskThresholds.databaseBytesMin) else {
            throw CommandError(
                "ERR invalid limit '\(call.text(1).prefix(64))': must be \(ServerConfiguration.databaseLimitRule)")
        }
        return .okLater { () throws(CommandError) in
            do throws(LarderError) {
                try database.setDiskLimit(limit)
            } catch {
                guard error.code == .noSuchDatabase else { throw CommandError(error) }
                throw CommandError("ERR \(error.message): store an entry first, or set its policy")
            }
        }
    }

    // MARK: Whole databases

    @Sendable private static func databases(_ call: inout Call) throws(CommandError) -> Outcome {
        let (engine, rights) = (call.server.engine, call.session.rights.current)
        return .later { reply in
            let databases = engine.databases.filter { rights?.covers(.read, in: $0.name) ?? true }
            reply.array(count: databases.count)
            for database in databases {
                // If the database cannot be opened, or is being replayed, these numbers are -1.
                let isLoading = !engine.isReplayed(database)
                let numbers = isLoading ? nil : try? database.entryNumbers()
                reply.map(count: 11 + policyPairs)
                reply.field("name", database.name)
                Self.reply(isLoading ? database.atStart.settings : database.rules.settings, to: &reply)
                reply.field("entries", numbers?.fresh ?? -1)
                reply.field("stale", numbers?.stale ?? -1)
                reply.field("ends-minute", numbers?.ends.minute ?? -1)
                reply.field("ends-hour", numbers?.ends.hour ?? -1)
                reply.field("ends-day", numbers?.ends.day ?? -1)
                reply.field("ends-never", numbers?.ends.never ?? -1)
                reply.field("bytes", database.byteCountOnDisk())
                reply.field("limit", isLoading ? database.atStart.diskLimit : database.diskLimit)
                reply.field("state", isLoading ? "loading" : database.condition)
                // The damage that was found by the last salvage since the start of the daemon; empty without a salvage.
                reply.field("damage", database.lastSalvage?.description ?? "")
            }
        }
    }

    @Sendable private static func purge(_ call: inout Call) throws(CommandError) -> Outcome {
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
        let isWhole = call.count == 1
        // Do not log purges of prefixes and tags, because programs make them all the time.
        let what: String? = isWhole ? "PURGE" : call.count == 2 ? "PURGE EXPIRED" : nil
        let line = what.map { "\(call.session.logName) ran \($0) in database '\(database.name)'" }
        return .later { (reply) throws(CommandError) in
            let work = { () throws(LarderError) in try server.purge(database, selection) }
            let report = try CommandError.wrap(
                isWhole ? server.notifier.notifyOnce(of: [database], work) : work())
            if let line { lines.add(.info, "\(line), entries removed: \(report.entries ?? 0)") }
            reply.map(count: 3)
            reply.field("entries", report.entries ?? 0)
            reply.field("bytes", report.bytes)
            reply.field("milliseconds", report.milliseconds)
        }
    }

    /// Handles `PURGE TAG tag [tag …] [SOFT]`. If the last word is SOFT and follows a tag, it is the option. To purge a
    /// tag named SOFT, put it before another tag.
    private static func purgeTags(_ call: inout Call) throws(CommandError) -> Outcome {
        let isSoft = call.count > 3 && call.isWord(call.count - 1, "SOFT")
        let tags = (2..<(isSoft ? call.count - 1 : call.count)).map { call.array($0) }
        let database = call.database
        return .okLater { () throws(CommandError) in _ = try purge(database, .tags(tags, soft: isSoft)) }
    }

    /// Handles `PURGE UPTO version [PREFIX prefix] [TAG tag …]`.
    private static func purgeUpTo(_ call: inout Call) throws(CommandError) -> Outcome {
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
        return .later { [prefix, tags] (reply) throws(CommandError) in
            reply.integer(try purge(database, .upTo(version, prefix: prefix, tags: tags)).entries ?? 0)
        }
    }

    /// Purges entries. The error for invalid tags or an invalid prefix is sent without its code.
    private static func purge(_ database: Database, _ selection: PurgeSelection) throws(CommandError) -> PurgeReport {
        do throws(LarderError) {
            return try database.purge(selection)
        } catch {
            throw error.code == .invalidArgument ? CommandError("ERR \(error.message)") : CommandError(error)
        }
    }

    @Sendable private static func tags(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .records([try words.key(1)]) { _ in
            0
        } reply: { records, replies in
            guard let record = records[0] else { return replies.null() }
            replies.words(record.tags?.all ?? [])
        }
    }

    // MARK: SNAPSHOT

    @Sendable private static func openSnapshot(_ call: inout Call) throws(CommandError) -> Outcome {
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

    // MARK: Leases

    /// Releases a lease, because the client will not store a value.
    @Sendable private static func release(_ words: CallWords) throws(CommandError) -> EntryPlan {
        _ = try words.key(1)
        let token = try words.token(2)
        if words.count == 3 {
            return try .change(words, .none) { update, _ in update.release(0, token, .open) ? .ok : .null }
        }
        if words.count == 4, words.isWord(3, "UNCHANGED") {
            return try .change(words) { (update, _) throws(CommandError) in
                switch update.releaseUnchanged(0, token) {
                case .done: return .ok
                case .lost: return .null
                case .nothingStored:
                    throw CommandError("ERR UNCHANGED needs a stored value, and there is none; the lease was released")
                }
            }
        }
        guard words.count == 5 else { throw .syntax }
        if words.isWord(3, "ABSENT") {
            let rest = try FetchWords.milliseconds(words.bytes(4), "ABSENT", from: 1)
            return try .change(words, .headers) { update, _ in
                update.releaseAbsent(0, token, milliseconds: rest) ? .ok : .null
            }
        }
        guard words.isWord(3, "FAILED") else { throw .syntax }
        let rest = try FetchWords.milliseconds(words.bytes(4), "FAILED", from: 1)
        return try .change(words, .none) { update, _ in
            update.release(0, token, .failed(milliseconds: rest)) ? .ok : .null
        }
    }
}
