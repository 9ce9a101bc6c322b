import LarderObserving

// Observing changes by any process.

extension RemoteCache {
    /// Observes all entries of the database, from the end of this call on: entries that any process stores, removes or
    /// purges, or that expire.
    ///
    /// ```swift
    /// for try await change in try await readers.changes() { print(change) }
    /// ```
    /// All such sequences of a client share one connection, separate from its other connections. If it is lost,
    /// `CacheChanges.Iterator.next()` throws `closed` once, and the client reconnects. After `closed`, the sequence can
    /// be iterated again; it then reports `CacheChange.Kind.fellBehind`. An expiry is reported within about a second of
    /// the deadline if the entry was stored while it was observed, for at most 65,536 entries with a deadline. Other
    /// expiries are reported when the daemon reclaims their space.
    ///
    /// A read after a reported change returns that state or a newer one, also with a near cache.
    /// - Parameter bufferMax: the number of keys with unread changes, at least 1. If more keys have unread changes, all
    ///   unread changes are dropped, and `CacheChange.Kind.fellBehind` is reported instead.
    /// - Throws: `invalidArgument` for an invalid `bufferMax`, and if the server is not larderd.
    public func changes(bufferMax: Int = 1_024) async throws(LarderClientError) -> CacheChanges {
        try await observe(.prefix([]), bufferMax)
    }

    /// Observes one entry, like ``changes(bufferMax:)``. Changes that affect all entries, such as purges, are reported
    /// too. If there is an entry, its expiry is reported within about a second.
    /// - Throws: also `invalidArgument` for a key of more than 65,536 bytes.
    public func changes(forKey key: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> CacheChanges
    {
        try await observe(.key(key.keyBytes), bufferMax)
    }

    /// Observes the entries whose keys begin with `prefix`, like ``changes(bufferMax:)``. Changes that affect all
    /// entries, such as purges, are reported too. The empty prefix stands for all.
    /// - Throws: also `invalidArgument` for a prefix of more than 65,536 bytes.
    public func changes(prefix: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> CacheChanges
    {
        try await observe(.prefix(prefix.keyBytes), bufferMax)
    }

    /// ``changes(bufferMax:)``, with the newest value of each stored entry.
    public func decodedChanges(bufferMax: Int = 1_024) async throws(LarderClientError) -> DecodedChanges<Value> {
        decoded(try await changes(bufferMax: bufferMax))
    }

    /// ``changes(forKey:bufferMax:)``, with the newest value of each stored entry.
    public func decodedChanges(forKey key: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> DecodedChanges<Value>
    {
        decoded(try await changes(forKey: key, bufferMax: bufferMax))
    }

    /// ``changes(prefix:bufferMax:)``, with the newest value of each stored entry.
    public func decodedChanges(prefix: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> DecodedChanges<Value>
    {
        decoded(try await changes(prefix: prefix, bufferMax: bufferMax))
    }

    private func decoded(_ changes: CacheChanges) -> DecodedChanges<Value> {
        DecodedChanges(changes) { [self] key in try await value(forKey: key) }
    }

    private func observe(_ keys: ChangeListener.Keys, _ bufferMax: Int) async throws(LarderClientError)
        -> CacheChanges
    {
        do throws(LarderClientError) {
            try check(keys, bufferMax)
            // This also selects the database, and so checks its name.
            guard try await store.server().isLarder else {
                throw LarderClientError(
                    .invalidArgument, "only larderd reports changes", operation: "changes",
                    socketPath: core.socketPath)
            }
            let listener = ChangeListener(keys, of: store, max: bufferMax, socketPath: core.socketPath)
            let hub = core.changesHub
            let changes = CacheChanges(listener.buffer, owner: core) { _ in hub.remove(listener) }
            // If this fails, the sequence is released and undoes its registration.
            try await hub.add(listener, listener.topics)
            return changes
        } catch {
            throw error.about(name)
        }
    }

    private func check(_ keys: ChangeListener.Keys, _ bufferMax: Int) throws(LarderClientError) {
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
