import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderVocabulary

/// Reads entries of a database with an origin. Entries that are known to be current are read from the database. Other
/// keys are requested from the origin, and the command runs again when the replies have arrived.
extension Call {
    /// Whether reads must consult the origin. Reads of a snapshot, and reads in a transaction, use only the database.
    var readsOrigin: Bool { session.origin.isUsed && run == nil && session.seesCurrent }

    /// Throws if a plan is not allowed because of the origins of its databases. ``OriginRunner`` sends writes to the
    /// origin instead of planning them.
    func checkOrigins(_ plan: EntryPlan) throws(CommandError) {
        if case .transfer(let transfer) = plan {
            let target = try target(of: transfer)
            if target !== database { try checkMayExchange(target) }
        }
        if isInTransaction { try checkMayRunInTransaction() }
    }

    /// Throws if the database has an origin: commands in a transaction cannot read from origins. Also throws if the
    /// database is an outbox, and the command writes.
    private func checkMayRunInTransaction() throws(CommandError) {
        if spec?.flags.contains(.write) ?? true, CompanionName.isOne(database.name) { throw .inOutbox }
        guard server.origins.isUsed, try server.origins.tier(of: database.name) != nil else { return }
        throw .originInTransaction
    }

    /// Throws if entries must not be moved to `other`, because it is an outbox or has an origin: the origin would not
    /// have these entries.
    func checkMayExchange(_ other: Database) throws(CommandError) {
        if CompanionName.isOne(other.name) { throw .inOutbox }
        guard server.origins.isUsed, try server.origins.tier(of: other.name) != nil else { return }
        throw .betweenOrigins(other.name)
    }

    /// Returns the header and length of an entry; nil if there is none. The word at `index` is the entry's key.
    mutating func factsBehindOrigin(_ index: Int) throws(CommandError) -> EntryFacts? {
        let (key, rules) = (try key(index), rules)
        var facts: EntryFacts?
        _ = try readBehindOrigin(key) { facts = EntryFacts(header: $0, payloadCount: $1.count) }
        facts?.isUnverified = hasReadStale
        if let facts, session.tracking.tracksReads { note(key, facts.header, rules) }
        return facts
    }

    /// Reads the fresh entry of a key.
    /// - Parameter servesStale: whether a stale entry may be returned if the origin, set with STALE, cannot be used.
    /// - Returns: whether there is an entry. If only the origin knows this, sets ``missing``, and throws.
    mutating func readBehindOrigin(
        _ key: Key, below bytesMax: Int = .max, servesStale: Bool = true,
        _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool {
        guard let tier = session.origin.tier else { throw session.origin.failure ?? .syntax }
        let bytes = Array(key.bytes)
        if let outbox = tier.outbox, bytes.withUnsafeBytes({ outbox.index.isWaiting($0) }),
            let isThere = try readWaiting(outbox, key, body)
        {
            return isThere
        }
        let asked = session.origin.call
        switch asked?.reading(bytes) {
        case .success(let reading)? where tier.isValid(reading, since: asked?.startedAt ?? .max):
            guard let value = reading.value else { return false }
            let rule = tier.rule(of: reading, now: now)
            value.withUnsafeBytes { body(RecordHeader(storedAt: now, rule: rule), $0) }
            return true
        case .failure(let error)? where error.isOfOtherType:
            isOfOtherType = true
            throw CommandError(error)
        case .failure(let error)?:
            if servesStale, tier.settings.servesStale, try readUnverified(key, body) { return true }
            throw CommandError(error)
        default: break
        }
        switch bytes.withUnsafeBytes({ tier.knowledge($0, now: now) }) {
        case .absent: return false
        case .kept: if try read(key, in: database, below: bytesMax, body) { return true }
        // In the case of `pending`, the queued write has been delivered since the first check. Its key is now unknown.
        case .pending, .nothing: break
        }
        if servesStale, session.origin.servesStale, tier.settings.servesStale, try readUnverified(key, body) {
            return true
        }
        missing = bytes
        throw CommandError("ORIGIN this command needs the origin")
    }

    /// Reads the fresh entries of several keys. Throws if their values exceed the limit of one reply.
    mutating func readBehindOrigin(_ keys: [Key]) throws(CommandError) -> [Record?] {
        var room = server.limits.replyBytesMax
        var records: [Record?] = []
        for key in keys {
            var record: Record?
            do throws(CommandError) {
                _ = try readBehindOrigin(key) { header, payload in
                    room -= payload.count
                    if room >= 0 { record = Record(header, payload: payload) }
                }
                if let record, session.tracking.tracksReads { note(key, record.header, rules) }
            } catch {
                guard spec == .mget, takeOtherType() else { throw error }
            }
            if room < 0 { throw .tooLongReply(server.limits) }
            records.append(record)
        }
        return records
    }

    /// Counts the keys that have a fresh entry, or a value of another type than string at the origin.
    mutating func countBehindOrigin(_ keys: [Key]) throws(CommandError) -> Int {
        var count = 0
        for key in keys {
            do throws(CommandError) {
                if try readBehindOrigin(key, { _, _ in }) { count += 1 }
            } catch {
                guard takeOtherType() else { throw error }
                count += 1
            }
        }
        return count
    }

    /// Returns whether the last read has failed because the key's value is not a string. Resets the flag.
    private mutating func takeOtherType() -> Bool { exchange(&isOfOtherType, with: false) }

    /// Reads a queued write from the outbox. While a write is queued, it is the newest value of its key.
    /// - Returns: whether the key has a value after that write; nil if the write is no longer queued.
    private mutating func readWaiting(
        _ outbox: Outbox, _ key: Key, _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool? {
        var found: OutboxEntry?
        _ = try read(key, in: outbox.database) { found = OutboxEntry(parsing: $1) }
        guard let found else { return nil }
        guard let value = found.value, !found.isOver(now: now) else { return false }
        let rule = found.until.map { DeadlineRule.own($0) } ?? .governed
        value.withUnsafeBytes { body(RecordHeader(storedAt: found.acceptedAt, rule: rule), $0) }
        return true
    }

    /// Reads a value that may be stale: the cached entry, or the reply of one of the origin's replicas. Stale values
    /// may be served only in a grace period. Without a grace period, nothing is found.
    mutating func readUnverified(
        _ key: Key, _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool {
        if isOfOtherType { return false }
        guard let tier = session.origin.tier, let reading = session.origin.call?.early(Array(key.bytes)),
            let value = reading.value, rules.grace > 0
        else { return try readStale(key, body) }
        // Prefer the cached entry if it was current at some time. The replica's value may be older, and may lack writes
        // that clients made through this daemon.
        if key.withBytes({ tier.wasKnown($0) }), try readStale(key, body) { return true }
        let rule = tier.rule(of: reading, now: now)
        value.withUnsafeBytes { body(RecordHeader(storedAt: now, rule: rule), $0) }
        hasReadStale = true
        tier.counts.stale.add()
        tier.counts.replicasServed.add()
        return true
    }

    /// Reads the cached entry, fresh or stale, unless its grace period is over.
    private mutating func readStale(
        _ key: Key, _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool {
        // Entries stored before this time come from another origin, or were written while the database had no origin.
        let since = session.origin.tier?.since ?? 0
        var isFound = false
        let isAnswered = try CommandError.wrap(
            database.fetch(FetchRequest(lookingFor: key), now: now, access, ticket: &ticket) { answer, payload in
                guard let header = answer.header, let payload, header.storedAt >= since,
                    answer.rules.grace > 0 || (header.grace ?? 0) > 0
                else { return }
                isFound = true
                body(header, payload)
            })
        if !isAnswered { throw cold() }
        if isFound {
            hasReadStale = true
            session.origin.tier?.counts.stale.add()
        }
        return isFound
    }
}

extension CommandError {
    static let originInTransaction = CommandError(
        "ORIGIN a database with an origin cannot be used by scripts, or by transactions that use several databases or "
            + "commands without keys: they would see cached values instead of the origin's")

    static let inOutbox = CommandError(
        "ORIGIN databases named NAME\(CompanionName.ending) are outboxes: they contain acknowledged writes for an origin, and "
            + "entries cannot be stored or changed there. DEL and PURGE drop queued writes")

    static let loading = CommandError("LOADING the journal is still being replayed; try again later")

    static let originsClosed = CommandError("ERR the daemon is shutting down: the origin was not changed")

    static func betweenOrigins(_ name: String) -> CommandError {
        CommandError(
            "ORIGIN entries cannot be moved or copied into or out of database '\(name)', because it has an origin: "
                + "read and store them instead, or set ORIGIN NONE first")
    }

    /// Creates the reply for a failed request: the origin's own error, or the reason why the origin did not reply.
    init(_ error: OriginError) {
        if case .refused(let reply) = error { self.init(reply) } else { self.init("ORIGIN \(error)") }
    }
}

extension OriginError {
    /// Whether the request failed because the value of the key at the origin is not a string.
    var isOfOtherType: Bool { if case .refused(let reply) = self { reply.hasPrefix("WRONGTYPE") } else { false } }
}
