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
    /// - Returns: how many of them were there, and fresh.
    /// - Throws: ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    @discardableResult
    public func remove(_ keys: some Sequence<some CacheKey>, durability: Durability? = nil) throws(LarderError) -> Int {
        try remove(try source.keys(keys, "remove"), durability)
    }

    /// Removes a fresh entry if it holds `value`, compared like in `replace(_:with:forKey:policy:tags:durability:)`: a
    /// value that somebody else has stored meanwhile stays.
    /// - Returns: whether it was removed.
    @discardableResult
    public func remove<Value: Encodable>(_ key: some CacheKey, ifEqual value: Value, durability: Durability? = nil)
        throws(LarderError) -> Bool
    {
        try perform(try source.removal(key, ifEqual: value, durability))
    }

    /// Removes an entry and returns its value, in one step.
    /// - Returns: nil when there was no fresh entry.
    /// - Throws: ``LarderError/Code/decoding`` when the value is of another type; the entry is removed nevertheless.
    public func removeValue<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, durability: Durability? = nil
    ) throws(LarderError) -> Value? {
        let key = try source.key(key, "remove")
        guard let record = try take(key, durability) else { return nil }
        return try source.decode(type, record, key)
    }

    /// Removes an entry.
    /// - Returns: the fresh entry that was there.
    func take(_ key: Key, _ durability: Durability?) throws(LarderError) -> Record? {
        let record = try source.whileOpen("remove") { (_) throws(LarderError) -> Record? in
            guard try source.hasFiles() else {
                source.database.endLeases([key])
                return nil
            }
            return try source.database.commit([key], loading: true, durability: durability ?? self.durability) {
                update in
                let record = update.current(0)
                update.removeStored(0)
                return record
            }
        }
        source.database.noteReads(hits: record == nil ? 0 : 1, misses: record == nil ? 1 : 0)
        return record
    }

    /// Removes entries. The keys are validated.
    /// - Returns: how many of them were there, and fresh.
    func remove(_ keys: [Key], _ durability: Durability?) throws(LarderError) -> Int {
        try source.whileOpen("remove") { (_) throws(LarderError) in
            guard !keys.isEmpty, try source.hasFiles() else {
                source.database.endLeases(keys)
                return 0
            }
            return try source.database.commit(keys, loading: true, durability: durability ?? self.durability) {
                update in
                var count = 0
                for index in keys.indices {
                    if update.current(index) != nil { count += 1 }
                    update.removeStored(index)
                }
                return count
            }
        }
    }

    /// Empties the database at once, whatever its size. The policy stays. A crash leaves the old database or an empty
    /// one. Older snapshots and enumerations throw ``LarderError/Code/purged``.
    /// - Parameter counting: whether the report has the number of entries; to count them, all are read.
    @discardableResult
    public func removeAll(counting: Bool = false) throws(LarderError) -> PurgeReport {
        try source.whileOpen("purge") { (engine) throws(LarderError) in
            // The background thread removes the old files: soon, rather than in its next round.
            defer { engine.wakeMaintenance() }
            let report = try source.database.purge(counting: counting)
            source.database.notePurge(entries: report.entries ?? 0)
            return report
        }
    }

    /// Removes all entries with a tag at once, however many they are. The removal is durable when the call returns, and
    /// from then on no read returns such an entry; their space is reclaimed in the background. What is being fetched for a
    /// key with the tag is too old then, and is not stored.
    /// - Parameters:
    ///   - tag: as for `set(_:forKey:policy:tags:durability:)`. A removal is also remembered for a tag that no entry has.
    ///   - soft: whether the entries are stale instead of gone: calls that fetch may still return them for the rest of
    ///     their grace, while somebody fetches the new value. Entries without a grace are gone.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an impossible tag, or more than 1024 of them; nothing is removed
    ///   then.
    public func removeAll(tagged tag: String, soft: Bool = false) throws(LarderError) {
        try removeAll(tagged: [tag], soft: soft)
    }

    /// Like the call above, for all entries with one or more of several tags, in one step. Without tags, nothing happens.
    public func removeAll(tagged tags: some Sequence<String>, soft: Bool = false) throws(LarderError) {
        let tags = tags.map { Array($0.utf8) }
        try source.whileOpen("purge") { (engine) throws(LarderError) in
            if tags.isEmpty { return }
            try source.database.purge(tags: tags, soft: soft)
            engine.wakeMaintenance()
        }
    }

    /// Removes the entries whose keys begin with `prefix`, in batches of at most 512. Entries that were stored before
    /// the call are gone when it returns; entries that are stored meanwhile may stay. A failure or a crash in between
    /// leaves some of them.
    /// - Throws: ``LarderError/Code/invalidArgument`` for a prefix of more than 65,536 bytes.
    @discardableResult
    public func remove(prefix: some CacheKey) throws(LarderError) -> PurgeReport {
        let prefix = try source.key(prefix, "remove prefix")
        return try source.whileOpen("remove prefix") { (_) throws(LarderError) in
            try source.database.purge(prefix: Array(prefix.bytes))
        }
    }

    /// Removes the expired entries, in batches of at most 512, and gives their space back to the disk. Reads all
    /// entries and compacts the files: the thorough form of what the larder does in the background.
    @discardableResult
    public func removeExpired() throws(LarderError) -> PurgeReport {
        try source.whileOpen("remove expired") { (_) throws(LarderError) in
            try source.database.purgeExpired()
        }
    }

    /// Does now, for all databases of the larder, what the background threads do: removes the expired entries that are
    /// due, along an index and in batches of at most 512, and the files of purged databases. The index is coarse: an
    /// entry is due within a 64th of its life after its deadline, or within about a second. The index has the entries
    /// in LevelDB that live less than a day. Entries that live longer are found by a scan every six hours, and by
    /// `removeExpired()` at once.
    /// - Returns: how many entries were swept meanwhile.
    @discardableResult
    public func sweep() throws(LarderError) -> Int {
        try source.whileOpen("sweep") { (engine) throws(LarderError) in
            let before = engine.statistics.expiredSwept.read()
            while engine.maintain() {}
            return engine.statistics.expiredSwept.read() - before
        }
    }
}
