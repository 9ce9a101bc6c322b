import LarderEngine

extension EntryInfo {
    /// - Parameter ahead: how many milliseconds the larder's time is ahead of the system clock, which may be set back.
    init(_ header: RecordHeader, byteCount: Int, rules: FreshnessRules, now: Int64, ahead: Int64) {
        self.init(
            storedAtMilliseconds: header.storedAt - ahead,
            deadlineMilliseconds: rules.deadline(header).map { $0 - ahead },
            rule: header.rule, graceMilliseconds: header.grace ?? rules.grace, databasePolicy: rules.policy,
            codec: header.codec, byteCount: byteCount, readAtMilliseconds: now - ahead)
    }

    /// The remaining lifetime of a fresh entry.
    var left: TimeToLive {
        timeToLiveMilliseconds.map { .milliseconds($0) } ?? .never
    }
}

extension CacheSource {
    /// Returns the metadata of the entry of a key, fresh or stale. In a snapshot, only of a fresh entry.
    func info(_ key: Key) throws(LarderError) -> EntryInfo? {
        let now = database.now()
        guard snapshot == nil else {
            return try record(key, "info", now: now).map { info($0.header, byteCount: $0.payloadCount, now: now) }
        }
        return try whileOpen("info") { (engine) throws(LarderError) in
            let (_, info, ticket) = try look(key, now, .mayBlock)
            try engine.pipeline.wait(for: ticket)
            return info
        }
    }

    /// Like ``info(_:)``, for asynchronous callers.
    func infoForTask(_ key: Key) async throws(LarderError) -> EntryInfo? {
        if snapshot == nil, !isClosed {
            let (isKnown, info, ticket) = try look(key, database.now(), .memoryOnly)
            if isKnown, ticket == .none { return info }
        }
        return try await BlockingWork.run { () throws(LarderError) in try self.info(key) }
    }

    private func look(
        _ key: Key, _ now: Int64, _ access: Access
    ) throws(LarderError) -> (isKnown: Bool, EntryInfo?, CommitTicket) {
        var ticket = CommitTicket.none
        var found: EntryInfo?
        let isKnown = try database.fetch(
            FetchRequest(lookingFor: key), now: now, access, ticket: &ticket
        ) { answer, payload in
            found = answer.header.map {
                EntryInfo(
                    $0, byteCount: payload?.count ?? 0, rules: answer.rules, now: now, ahead: database.timeAhead)
            }
        }
        return (isKnown, found, ticket)
    }

    /// Returns the metadata of an entry whose header is known.
    func info(_ header: RecordHeader, byteCount: Int, now: Int64) -> EntryInfo {
        EntryInfo(header, byteCount: byteCount, rules: database.rules, now: now, ahead: database.timeAhead)
    }
}
