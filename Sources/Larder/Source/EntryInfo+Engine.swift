import LarderEngine

extension EntryInfo {
    /// - Parameter ahead: how far the larder's time is ahead of a clock that was set back.
    init(_ header: RecordHeader, byteCount: Int, rules: FreshnessRules, now: Int64, ahead: Int64) {
        self.init(
            storedAtMilliseconds: header.storedAt - ahead,
            deadlineMilliseconds: rules.deadline(header).map { $0 - ahead },
            rule: header.rule, graceMilliseconds: header.grace ?? rules.grace, databasePolicy: rules.policy,
            codec: header.codec, byteCount: byteCount, readAtMilliseconds: now - ahead)
    }
}

extension EntryInfo {
    /// The rest of a fresh entry's lifetime.
    var left: TimeToLive {
        timeToLiveMilliseconds.map { .milliseconds($0) } ?? .never
    }
}

extension CacheSource {
    /// Facts about an entry besides its value.
    func info(_ header: RecordHeader, byteCount: Int, now: Int64) -> EntryInfo {
        EntryInfo(header, byteCount: byteCount, rules: database.rules, now: now, ahead: database.timeAhead)
    }
}
