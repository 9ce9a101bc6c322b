import LarderEngine

// The lifetimes of stored entries.

extension Cache {
    /// Changes the lifetime of an entry. Its value and the time at which it was stored stay the same.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - policy: the new lifetime. Intervals count from now. ``EntryPolicy/database`` makes the entry follow the
    ///     database's policy again, counted from the time at which the entry was stored. ``EntryPolicy/keep`` changes
    ///     nothing. The entry keeps its grace: `invalidArgument` is thrown for a policy with a grace.
    ///   - durability: nil for ``CacheOptions/durability``.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func touch(_ key: some CacheKey, policy: EntryPolicy, durability: Durability? = nil)
        throws(LarderError) -> Bool
    {
        try renew(try renewal(key, policy), durability) != nil
    }

    /// Reads the model of a key and changes the lifetime of its entry in one step, for example for sessions that expire
    /// when unused. `policy` is as for `touch(_:policy:durability:)`.
    /// - Returns: the model; nil if there is no fresh entry.
    /// - Throws: the same errors as `CacheReading.value(_:forKey:fillCache:)`. An entry that cannot be decoded still
    ///   gets its new lifetime.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, renewing policy: EntryPolicy,
        durability: Durability? = nil
    ) throws(LarderError) -> Value? {
        let renewal = try renewal(key, policy)
        guard let record = try renew(renewal, durability, isRead: true) else { return nil }
        return try source.decode(type, record, renewal.key)
    }

    /// A validated change of an entry's lifetime.
    typealias Renewal = (key: Key, policy: EntryPolicy.Checked)

    func renewal(_ key: some CacheKey, _ policy: EntryPolicy) throws(LarderError) -> Renewal {
        let key = try source.key(key, "touch")
        do throws(EntryPolicy.Impossible) {
            let policy = try policy.checked()
            if policy.grace == nil { return (key, policy) }
        } catch {
            throw .invalid(error.message, "touch", name, key)
        }
        throw .invalid(EntryPolicy.graceStays, "touch", name, key)
    }

    /// Changes the lifetime of a fresh entry.
    /// - Parameter isRead: whether the value is returned, so that the call counts as a read.
    /// - Returns: the entry before the change; nil if there was no fresh entry.
    func renew(_ renewal: Renewal, _ durability: Durability?, isRead: Bool = false) throws(LarderError) -> Record? {
        let record = try source.whileOpen("touch") { (_) throws(LarderError) -> Record? in
            guard try source.hasFiles() else { return nil }
            return try source.database.commit(
                [renewal.key], loading: .records, durability: durability ?? self.durability
            ) { update in
                guard let record = update.current(0) else { return nil }
                let previous = record.header.rule
                let rule = renewal.policy.rule(
                    update.rules.settings, now: update.now, ahead: source.database.timeAhead, previous: previous)
                if rule != previous { update.renew(0, rule) }
                return record
            }
        }
        if isRead { source.database.noteReads(hits: record == nil ? 0 : 1, misses: record == nil ? 1 : 0) }
        return record
    }
}
