import LarderObserving

// Changes as they happen, whoever makes them.

extension RemoteCache {
    /// The changes of all entries of the database, from the end of this call on: what any process stores, removes,
    /// purges, and what expires.
    ///
    /// ```swift
    /// for try await change in try await readers.changes() { print(change) }
    /// ```
    /// All such sequences of a client share one connection, beside those for everything else. If it is lost,
    /// `CacheChanges.Iterator.next()` throws `closed`, once; the client connects again, and who goes on is told
    /// `CacheChange.Kind.fellBehind` then. An entry that expires is told within about a second of its deadline if it was
    /// stored while somebody observed; otherwise, and if more than 65,536 entries with a deadline were, when the daemon
    /// reclaims its space.
    ///
    /// Who is told a change and reads the key gets that state or a newer one, also with a near cache.
    /// - Parameter bufferMax: how many keys may wait while nobody takes changes, at least 1. Beyond that all are
    ///   dropped, and `CacheChange.Kind.fellBehind` is told instead.
    /// - Throws: `invalidArgument` for an impossible `bufferMax`, and if the server is not larderd.
    public func changes(bufferMax: Int = 1_024) async throws(LarderClientError) -> CacheChanges {
        try await observe(.prefix([]), bufferMax)
    }

    /// The changes of one entry, as ``changes(bufferMax:)``, and what happens to all entries at once. If there is an
    /// entry, its expiry is told within about a second.
    /// - Throws: also `invalidArgument` for a key of more than 65,536 bytes.
    public func changes(forKey key: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> CacheChanges
    {
        try await observe(.key(key.keyBytes), bufferMax)
    }

    /// The changes of the entries whose keys begin with `prefix`, as ``changes(bufferMax:)``, and what happens to all
    /// entries at once. The empty prefix means all.
    /// - Throws: also `invalidArgument` for a prefix of more than 65,536 bytes.
    public func changes(prefix: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> CacheChanges
    {
        try await observe(.prefix(prefix.keyBytes), bufferMax)
    }

    /// ``changes(bufferMax:)``, with the newest value of what was stored.
    public func decodedChanges(bufferMax: Int = 1_024) async throws(LarderClientError) -> DecodedChanges<Value> {
        decoded(try await changes(bufferMax: bufferMax))
    }

    /// ``changes(forKey:bufferMax:)``, with the newest value of what was stored.
    public func decodedChanges(forKey key: some CacheKey, bufferMax: Int = 1_024) async throws(LarderClientError)
        -> DecodedChanges<Value>
    {
        decoded(try await changes(forKey: key, bufferMax: bufferMax))
    }

    /// ``changes(prefix:bufferMax:)``, with the newest value of what was stored.
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
            // Also selects the database, and so finds out whether there can be one with the name.
            guard try await store.server().isLarder else {
                throw LarderClientError(
                    .invalidArgument, "only larderd reports changes", operation: "changes",
                    socketPath: core.socketPath)
            }
            let listener = ChangeListener(keys, of: store, max: bufferMax, socketPath: core.socketPath)
            let hub = core.changesHub
            let changes = CacheChanges(listener.buffer, owner: core) { _ in hub.remove(listener) }
            // If this fails, the sequence is released and undoes what it began.
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
            .invalidArgument, "the \(what) has \(bytes.count) bytes, and may have at most \(keyBytesMax)",
            operation: "changes", key: printableKey(bytes))
    }
}

/// The longest key that larderd takes, in bytes.
private let keyBytesMax = 65_536
