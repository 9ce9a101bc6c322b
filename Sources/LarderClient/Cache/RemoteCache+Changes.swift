import LarderObserving

// Observing changes by any process.

extension RemoteCache {
    /// Observes all entries of the database. Reports every entry that any process stores, removes or purges after this
    /// call has returned, and every entry that expires after that.
    ///
    /// ```swift
    /// for try await change in try await readers.changes() { print(change) }
    /// ```
    /// All such sequences of a client share one connection, separate from its other connections. If that connection is
    /// lost, `CacheChanges.Iterator.next()` throws `closed` once, and the client reconnects. The next iteration reports
    /// `CacheChange.Kind.fellBehind` and later changes.
    ///
    /// If an entry was stored while it was observed, its expiry is reported within about a second of its deadline. This
    /// works for at most 65,536 entries at a time. All other entries are reported when the daemon reclaims their space.
    ///
    /// A read after a reported change returns the state after that change or a newer one, also with a near cache.
    /// - Parameter bufferMax: the number of keys with unread changes, at least 1. If more keys have unread changes, all
    ///   unread changes are dropped, and `CacheChange.Kind.fellBehind` is reported instead.
    /// - Throws: `invalidArgument` for an invalid `bufferMax`, and if the server is not larderd.
    public func changes(bufferMax: Int = 1_024) async throws(LarderClientError) -> CacheChanges {
        try await observe(.prefix([]), bufferMax)
    }

    /// Observes one entry, like ``changes(bufferMax:)``. Changes that affect all entries, such as purges, are reported
    /// too. The expiry of an existing entry is reported within about a second of its deadline.
    /// - Throws: also `invalidArgument` for a key of more than 65,536 bytes.
    public func changes(forKey key: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> CacheChanges
    {
        try await observe(.key(key.keyBytes), bufferMax)
    }

    /// Observes the entries whose keys begin with `prefix`, like ``changes(bufferMax:)``. Changes that affect all
    /// entries, such as purges, are reported too. An empty prefix matches all entries.
    /// - Throws: also `invalidArgument` for a prefix of more than 65,536 bytes.
    public func changes(prefix: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> CacheChanges
    {
        try await observe(.prefix(prefix.keyBytes), bufferMax)
    }

    /// Observes all entries, like ``changes(bufferMax:)``, and reads the newest value of each stored entry.
    public func decodedChanges(bufferMax: Int = 1_024) async throws(LarderClientError) -> DecodedChanges<Value> {
        decoded(try await changes(bufferMax: bufferMax))
    }

    /// Observes one entry, like ``changes(forKey:bufferMax:)``, and reads the newest stored value.
    public func decodedChanges(forKey key: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> DecodedChanges<Value>
    {
        decoded(try await changes(forKey: key, bufferMax: bufferMax))
    }

    /// Observes entries, like ``changes(prefix:bufferMax:)``, and reads the newest value of each stored entry.
    public func decodedChanges(prefix: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> DecodedChanges<Value>
    {
        decoded(try await changes(prefix: prefix, bufferMax: bufferMax))
    }

    private func decoded(_ changes: CacheChanges) -> DecodedChanges<Value> {
        DecodedChanges(changes) { [self] key in try await value(forKey: key) }
    }

    private func observe(_ keys: WatchedKeys, _ bufferMax: Int) async throws(LarderClientError)
        -> CacheChanges
    {
        do throws(LarderClientError) {
            try check(keys, bufferMax)
            // The first connection also selects the database, so an invalid name is reported here.
            guard try await store.server().isLarder else {
                throw LarderClientError(
                    .invalidArgument, "only larderd reports changes", operation: "changes",
                    socketPath: core.socketPath)
            }
            let listener = ChangeListener(keys, of: store, max: bufferMax, socketPath: core.socketPath)
            let hub = core.changesHub
            let changes = CacheChanges(listener.buffer, owner: core) { _ in hub.remove(listener) }
            // If this call throws, `changes` is released, and its deinitializer removes the listener.
            try await hub.add(listener, listener.topics)
            return changes
        } catch {
            throw error.about(name)
        }
    }

    private func check(_ keys: WatchedKeys, _ bufferMax: Int) throws(LarderClientError) {
        guard bufferMax >= 1 else {
            throw LarderClientError(
                .invalidArgument, "bufferMax is \(bufferMax), and must be at least 1", operation: "changes")
        }
        let (what, bytes) =
            switch keys {
            case .key(let key): ("key", key)
            case .prefix(let prefix): ("prefix", prefix)
            }
        guard bytes.count > keyBytesMax else { return }
        throw LarderClientError(
            .invalidArgument, "the \(what) has \(bytes.count) bytes; the limit is \(keyBytesMax)",
            operation: "changes", key: printableKey(bytes))
    }
}

/// The longest key that larderd accepts, in bytes.
private let keyBytesMax = 65_536
