extension Database {
    /// Returns the change that reports a stored entry to observers. Called with a shard lock held.
    func stored(_ key: [UInt8], _ header: RecordHeader, _ note: ChangeNote) -> EntryChange {
        EntryChange(
            database: self, key: key, kind: .stored(header), previous: note.previous, origin: note.origin,
            deadline: applied.rules.deadline(header), isUnseen: note.isUnseen)
    }

    /// Returns the change that reports the removal of an expired entry; nil if there are no observers.
    func sweptChange(_ key: [UInt8], _ header: RecordHeader, _ rules: FreshnessRules) -> EntryChange? {
        guard context.changes.isOn, let deadline = rules.deadline(header) else { return nil }
        return EntryChange(
            database: self, key: key, kind: .swept(header, deadline: deadline), previous: .absent, origin: WriteOrigin()
        )
    }

    /// Returns the change that reports an entry evicted because of a disk limit.
    func evictedChange(_ key: [UInt8], _ header: RecordHeader) -> EntryChange {
        EntryChange(
            database: self, key: key, kind: .evicted(header), previous: .fresh(header.rule), origin: WriteOrigin())
    }
}
