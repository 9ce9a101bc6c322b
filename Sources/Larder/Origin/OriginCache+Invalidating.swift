import LarderEngine

// What the program itself has heard of changes at the origin, by a way of its own: a webhook, a message, a person.

extension OriginCache {
    /// Ends the entry of a key that has changed at the origin: it is stale, and looked up again at its next read; within
    /// its grace it serves if the origin cannot answer. That the origin had no value is forgotten too. The origin itself
    /// is not told.
    ///
    /// What was asked for before the call is not kept, and no read that begins after it has returned gets it as fresh.
    /// - Throws: ``LarderError`` if the larder fails: then reads of the key fail too, until it is done.
    ///   ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    public func invalidate(_ key: some CacheKey) async throws { try await invalidate(CollectionOfOne(key)) }

    /// Ends the entries of several keys, like `invalidate(_:)` of one.
    public func invalidate(_ keys: some Sequence<some CacheKey>) async throws {
        try await end(try bytes(keys, "invalidate"))
    }

    /// Ends all entries whose keys begin with `prefix`, like `invalidate(_:)` of one. Questions for other keys that are
    /// under way are not kept either. Costs a read and a write of each such entry.
    /// - Throws: ``LarderError`` if the larder fails: then some entries may be as they were, and the call may be repeated.
    public func invalidate(prefix: some CacheKey) async throws {
        let prefix = Array(try cache.source.key(prefix, "invalidate").bytes)
        trust.changedMany()
        try await makeStale(prefix: prefix)
    }

    /// Ends all entries, like `invalidate(_:)` of one. Costs nothing for each if the origin says what changes
    /// (``CacheOrigin/tellsChanges``), else a read and a write of each. Errors as for `invalidate(prefix:)`.
    public func invalidateAll() async throws {
        trust.changedMany()
        guard trust.isTold else { return try await makeStale(prefix: []) }
        trust.loseAll()
        let (trust, source) = (trust, cache.source)
        try await BlockingWork.run { () throws(LarderError) in
            try source.whileOpen("invalidate") { (_) throws(LarderError) in try trust.settle(source.database) }
        }
    }

    /// Removes the entry of a key here, and not at the origin: nothing of it is served, also if the origin cannot answer.
    /// Everything else as for `invalidate(_:)`.
    public func purge(_ key: some CacheKey) async throws { try await purge(CollectionOfOne(key)) }

    /// Removes the entries of several keys here, like `purge(_:)` of one; all or none.
    public func purge(_ keys: some Sequence<some CacheKey>) async throws {
        let keys = try bytes(keys, "purge")
        guard !keys.isEmpty else { return }
        try await end(keys)
        let cache = cache
        _ = try await BlockingWork.run { () throws(LarderError) in try cache.remove(keys) }
    }

    /// Removes all entries here whose keys begin with `prefix`, like `purge(_:)` of one, in batches of at most 512. Questions
    /// for other keys that are under way are not kept either. Errors as for `invalidate(prefix:)`.
    public func purge(prefix: some CacheKey) async throws {
        let prefix = Array(try cache.source.key(prefix, "purge").bytes)
        trust.changedMany()
        let cache = cache
        _ = try await BlockingWork.run { () throws(LarderError) in try cache.remove(prefix: prefix) }
    }

    /// Removes all entries here, like `purge(_:)` of one, at once and however many they are.
    /// - Throws: ``LarderError`` if the larder fails: then nothing was removed.
    public func purgeAll() async throws {
        trust.changedMany()
        let cache = cache
        _ = try await BlockingWork.run { () throws(LarderError) in try cache.removeAll() }
    }

    // MARK: Parts

    private func bytes(_ keys: some Sequence<some CacheKey>, _ operation: String) throws(LarderError) -> [[UInt8]] {
        var bytes: [[UInt8]] = []
        for key in keys { bytes.append(Array(try cache.source.key(key, operation).bytes)) }
        return bytes
    }

    private func end(_ keys: [[UInt8]]) async throws(LarderError) {
        guard !keys.isEmpty else { return }
        _ = trust.changed(keys)
        try await settle(keys)
    }

    /// How many keys are read with one cursor, so that none pins files for long.
    private static let keysPerCursor = 4096

    private func makeStale(prefix: [UInt8]) async throws(LarderError) {
        let source = cache.source
        try await BlockingWork.run { () throws(LarderError) in
            try source.whileOpen("invalidate") { (_) throws(LarderError) in
                // Of keys without an entry too. Behind this nothing is stored that was asked for before the call.
                source.database.endLeases(prefix: prefix)
                var options = EntryOptions(prefix: prefix, limit: Self.keysPerCursor)
                while true {
                    let keys: [[UInt8]]
                    do throws(LarderError) {
                        keys = try Self.keys(source, options)
                    } catch  where error.code == .purged {
                        // What is there now was stored behind the purge, perhaps before this.
                        options.from = nil
                        continue
                    }
                    try InvalidationEpoch.makeStale(keys, source.database)
                    guard keys.count == Self.keysPerCursor, let last = keys.last else { return }
                    options.from = last + [0]
                }
            }
        }
    }

    private static func keys(_ source: CacheSource, _ options: EntryOptions) throws(LarderError) -> [[UInt8]] {
        let entries = try EntryIterator<Never>(source, options, [])
        defer { entries.close() }
        var keys: [[UInt8]] = []
        while let entry = try entries.next() { keys.append(entry.keyBytes) }
        return keys
    }
}
