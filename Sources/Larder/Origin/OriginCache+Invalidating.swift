import LarderEngine

// Invalidations by the program, which may know of changes at the origin from a webhook, a message or a person.

extension OriginCache {
    /// Invalidates the entry of a key that has changed at the origin. The entry becomes stale, and the next read asks
    /// the origin again. If the origin cannot answer, the stale entry is still served within its grace. If the cache
    /// remembers that the key has no value, it forgets that. The origin is not notified.
    ///
    /// Replies to requests that were sent before the call are not cached. Reads that begin after the call has returned
    /// do not return such replies as fresh values.
    /// - Throws: ``LarderError`` if the larder fails; reads of the key then fail too until the invalidation succeeds.
    ///   ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    public func invalidate(_ key: some CacheKey) async throws { try await invalidate(CollectionOfOne(key)) }

    /// Invalidates the entries of several keys, like `invalidate(_:)` with a single key.
    public func invalidate(_ keys: some Sequence<some CacheKey>) async throws {
        try await end(try bytes(keys, "invalidate"))
    }

    /// Invalidates all entries whose keys begin with `prefix`, like `invalidate(_:)` with a single key. Replies to
    /// running requests for other keys are not cached either. Costs a read and a write per entry.
    /// - Throws: ``LarderError`` if the larder fails. Some entries may then be unchanged; the call can be repeated.
    public func invalidate(prefix: some CacheKey) async throws {
        let prefix = Array(try cache.source.key(prefix, "invalidate").bytes)
        trust.changedMany()
        try await makeStale(prefix: prefix)
    }

    /// Invalidates all entries, like `invalidate(_:)` with a single key. If the origin reports changes
    /// (``CacheOrigin/tellsChanges``), the cost does not depend on the number of entries. Otherwise the cost is a read
    /// and a write per entry. Throws the same errors as `invalidate(prefix:)`.
    public func invalidateAll() async throws {
        trust.changedMany()
        guard trust.isNotified else { return try await makeStale(prefix: []) }
        trust.loseAll()
        let (trust, source) = (trust, cache.source)
        try await BlockingWork.run { () throws(LarderError) in
            try source.whileOpen("invalidate") { (_) throws(LarderError) in
                try trust.applyNotifications(to: source.database)
            }
        }
    }

    /// Removes the entry of a key from the cache but not from the origin. Like `invalidate(_:)`, but the old value is
    /// not served even if the origin cannot answer.
    public func purge(_ key: some CacheKey) async throws { try await purge(CollectionOfOne(key)) }

    /// Removes the entries of several keys from the cache, all or none. Otherwise like `purge(_:)` with a single key.
    public func purge(_ keys: some Sequence<some CacheKey>) async throws {
        let keys = try bytes(keys, "purge")
        guard !keys.isEmpty else { return }
        try await end(keys)
        let cache = cache
        _ = try await BlockingWork.run { () throws(LarderError) in try cache.remove(keys) }
    }

    /// Removes all entries whose keys begin with `prefix` from the cache, like `purge(_:)` with a single key, in
    /// batches of at most 512. Replies to running requests for other keys are not cached either. Throws the same errors
    /// as `invalidate(prefix:)`.
    public func purge(prefix: some CacheKey) async throws {
        let prefix = Array(try cache.source.key(prefix, "purge").bytes)
        trust.changedMany()
        let cache = cache
        _ = try await BlockingWork.run { () throws(LarderError) in try cache.remove(prefix: prefix) }
    }

    /// Removes all entries from the cache, like `purge(_:)` with a single key. The cost does not depend on their
    /// number.
    /// - Throws: ``LarderError`` if the larder fails. In that case nothing was removed.
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
        try await applyNotifications(for: keys)
    }

    /// The number of keys read with one cursor. It is limited because an open cursor keeps obsolete files on the disk.
    private static let keysPerCursor = 4096

    private func makeStale(prefix: [UInt8]) async throws(LarderError) {
        let source = cache.source
        try await BlockingWork.run { () throws(LarderError) in
            try source.whileOpen("invalidate") { (_) throws(LarderError) in
                // End the leases of all keys with the prefix, even of keys without an entry, so that replies to earlier
                // requests are not stored.
                source.database.leases.end(prefix: prefix)
                var options = EntryOptions(prefix: prefix, limit: Self.keysPerCursor)
                while true {
                    let keys: [[UInt8]]
                    do throws(LarderError) {
                        keys = try Self.keys(source, options)
                    } catch  where error.code == .purged {
                        // A purge has ended the enumeration. Start again: the remaining entries may have been stored
                        // before this call.
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
