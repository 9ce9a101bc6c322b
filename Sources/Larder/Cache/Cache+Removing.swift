import LarderEngine

extension Cache {
    /// Removes an entry. It is not an error if there is none.
    /// - Returns: whether there was a fresh entry.
    /// - Throws: ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    @discardableResult
    public func remove(_ key: some CacheKey, durability: Durability? = nil) throws(LarderError) -> Bool {
        try remove([try source.key(key, "remove")], durability) == 1
    }

    /// Removes several entries in one batch: all or none.
    /// - Returns: the number of fresh entries that were removed.
    /// - Throws: ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    @discardableResult
    public func remove(_ keys: some Sequence<some CacheKey>, durability: Durability? = nil) throws(LarderError) -> Int {
        try remove(try source.keys(keys, "remove"), durability)
    }

    /// Removes a fresh entry if it holds `value`, compared as in `replace(_:with:forKey:policy:tags:durability:)`. If
    /// another caller has stored another value in the meantime, that value stays.
    /// - Returns: whether the entry was removed.
    @discardableResult
    public func remove<Value: Encodable>(_ key: some CacheKey, ifEqual value: Value, durability: Durability? = nil)
        throws(LarderError) -> Bool
    {
        try perform(try source.removal(key, ifEqual: value, durability))
    }

    /// Removes an entry and returns its value, in one step.
    /// - Returns: the value; nil if there was no fresh entry.
    /// - Throws: ``LarderError/Code/decoding`` if the value is of another type; the entry is still removed.
    public func removeValue<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, durability: Durability? = nil
    ) throws(LarderError) -> Value? {
        let key = try source.key(key, "remove")
        guard let record = try take(key, durability) else { return nil }
        return try source.decode(type, record, key)
    }

    /// Removes an entry.
    /// - Returns: the fresh entry that was removed; nil if there was none.
    func take(_ key: Key, _ durability: Durability?) throws(LarderError) -> Record? {
        let record = try source.whileOpen("remove") { (_) throws(LarderError) -> Record? in
            guard try source.hasFiles() else {
                source.database.leases.end([key])
                return nil
            }
            return try source.database.commit([key], loading: .records, durability: durability ?? self.durability) {
                update in
                let record = update.current(0)
                update.removeStored(0)
                return record
            }
        }
        source.database.noteReads(hits: record == nil ? 0 : 1, misses: record == nil ? 1 : 0)
        return record
    }

    /// Removes entries. The keys must be validated.
    /// - Returns: the number of fresh entries that were removed.
    func remove(_ keys: [Key], _ durability: Durability?) throws(LarderError) -> Int {
        try source.whileOpen("remove") { (_) throws(LarderError) in
            guard !keys.isEmpty, try source.hasFiles() else {
                source.database.leases.end(keys)
                return 0
            }
            return try source.database.commit(keys, loading: .records, durability: durability ?? self.durability) {
                update in
                var count = 0
                for index in keys.indices {
                    if update.isFresh(index) { count += 1 }
                    update.removeStored(index)
                }
                return count
            }
        }
    }

    /// Empties the database, at a cost that does not depend on its size. Keeps the policy. After a crash during the
    /// call, the database is unchanged or empty. Snapshots and enumerations from before the call throw
    /// ``LarderError/Code/purged``.
    /// - Parameter counting: whether to report the number of entries, which requires reading all of them.
    @discardableResult
    public func removeAll(counting: Bool = false) throws(LarderError) -> PurgeReport {
        try source.whileOpen("purge") { (engine) throws(LarderError) in
            // Wakes the background thread, so that the old files are removed soon.
            defer { engine.wakeMaintenance() }
            let report = try source.database.purge(.all(counting: counting))
            source.database.notePurge(entries: report.entries ?? 0)
            return report
        }
    }

    /// Removes all entries with a tag, at a cost that does not depend on their number. When the call returns, the
    /// removal is durable, and no later read returns a removed entry. The space of these entries is reclaimed in the
    /// background. If a fetch of a key with the tag is running, its result is not stored.
    /// - Parameters:
    ///   - tag: the tag, as for `set(_:forKey:policy:tags:durability:)`. The removal is recorded even if no entry has
    ///     the tag.
    ///   - soft: whether to make the entries stale instead of removing them. Calls with a fetch closure may then return
    ///     the stale value, within its grace, while they fetch the new value. Entries without a grace are removed.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid tag, or for more than 1024 tags; nothing is
    ///   removed in that case.
    public func removeAll(tagged tag: String, soft: Bool = false) throws(LarderError) {
        try removeAll(tagged: [tag], soft: soft)
    }

    /// Like the call above, for all entries with at least one of several tags, in one atomic step. Does nothing if
    /// `tags` is empty.
    public func removeAll(tagged tags: some Sequence<String>, soft: Bool = false) throws(LarderError) {
        let tags = tags.map { Array($0.utf8) }
        try source.whileOpen("purge") { (engine) throws(LarderError) in
            if tags.isEmpty { return }
            try source.database.purge(.tags(tags, soft: soft))
            engine.wakeMaintenance()
        }
    }

    /// Removes the entries whose keys begin with `prefix`, in batches of at most 512. Removes all entries that were
    /// stored before the call; entries stored during the call may stay. After a failure or a crash, entries from before
    /// the call may remain too.
    /// - Throws: ``LarderError/Code/invalidArgument`` for a prefix of more than 65,536 bytes.
    @discardableResult
    public func remove(prefix: some CacheKey) throws(LarderError) -> PurgeReport {
        let prefix = try source.key(prefix, "remove prefix")
        return try source.whileOpen("remove prefix") { (_) throws(LarderError) in
            try source.database.purge(.prefix(Array(prefix.bytes)))
        }
    }

    /// Removes the expired entries, in batches of at most 512, and frees their disk space. Unlike the background sweep,
    /// it reads all entries and compacts the files.
    @discardableResult
    public func removeExpired() throws(LarderError) -> PurgeReport {
        try source.whileOpen("remove expired") { (_) throws(LarderError) in
            try source.database.purge(.expired(merges: true))
        }
    }

    /// Runs the background work of all databases of the larder now. Removes the files of purged databases. Also removes
    /// expired entries that are due in an index of deadlines, in batches of at most 512. An entry is due some time
    /// after its deadline and grace: at most a 64th of its lifetime, or about a second if that is longer. The index has
    /// only entries that are in LevelDB and live for less than a day. Other expired entries are removed by a scan every
    /// six hours, or by `removeExpired()`.
    /// - Returns: the number of entries that were swept.
    @discardableResult
    public func sweep() throws(LarderError) -> Int {
        try source.whileOpen("sweep") { (engine) throws(LarderError) in
            let before = engine.statistics.expiredSwept.read()
            while engine.maintain() {}
            return engine.statistics.expiredSwept.read() - before
        }
    }
}
