import LarderEngine
import LarderObserving

// Observing changes.

extension Cache {
    /// Observes all entries of the database, from this call on: entries that are stored, removed or purged, or that
    /// expire.
    ///
    /// ```swift
    /// for try await change in try cache.changes() {
    ///     switch change.kind {
    ///     case .stored, .removed, .evicted, .expired: reload(change.key)
    ///     case .purged, .fellBehind: reloadEverything()
    ///     }
    /// }
    /// ```
    /// Reports changes by any handle on the database. An expiry is reported within about a second of the deadline if
    /// the entry was stored while it was observed, for at most 65,536 entries with a deadline. Other expiries are
    /// reported when the sweep reclaims their space: see `sweep()`. Writes cost no more while there is no observer.
    /// - Parameter bufferMax: the number of keys with unread changes, at least 1. If more keys have unread changes, all
    ///   unread changes are dropped, and `CacheChange.Kind.fellBehind` is reported instead.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid `bufferMax`; ``LarderError/Code/deleted``.
    public func changes(bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.prefix([]), bufferMax: bufferMax)
    }

    /// Observes one entry, like ``changes(bufferMax:)``. Changes that affect all entries, such as purges, are reported
    /// too. If there is an entry, its expiry is reported within about a second.
    /// - Throws: also ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    public func changes(forKey key: some CacheKey, bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.key(Array(try source.key(key, "changes").bytes)), bufferMax: bufferMax)
    }

    /// Observes the entries whose keys begin with `prefix`, like ``changes(bufferMax:)``. Changes that affect all
    /// entries, such as purges, are reported too. The empty prefix stands for all.
    /// - Throws: also ``LarderError/Code/invalidArgument`` for a prefix of more than 65,536 bytes.
    public func changes(prefix: some CacheKey, bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.prefix(Array(try source.key(prefix, "changes").bytes)), bufferMax: bufferMax)
    }

    /// Like ``changes(bufferMax:)``, with the newest value of each stored entry.
    public func decodedChanges<Value: Codable & Sendable>(_ type: Value.Type, bufferMax: Int = 1_024)
        throws(LarderError) -> DecodedChanges<Value>
    {
        decoded(type, try changes(bufferMax: bufferMax))
    }

    /// Like ``changes(forKey:bufferMax:)``, with the newest value of each stored entry.
    public func decodedChanges<Value: Codable & Sendable>(
        _ type: Value.Type, forKey key: some CacheKey, bufferMax: Int = 1_024
    ) throws(LarderError) -> DecodedChanges<Value> {
        decoded(type, try changes(forKey: key, bufferMax: bufferMax))
    }

    /// Like ``changes(prefix:bufferMax:)``, with the newest value of each stored entry.
    public func decodedChanges<Value: Codable & Sendable>(
        _ type: Value.Type, prefix: some CacheKey, bufferMax: Int = 1_024
    ) throws(LarderError) -> DecodedChanges<Value> {
        decoded(type, try changes(prefix: prefix, bufferMax: bufferMax))
    }

    private func decoded<Value: Codable & Sendable>(_ type: Value.Type, _ changes: CacheChanges)
        -> DecodedChanges<Value>
    {
        DecodedChanges(changes) { [self] key in try await value(type, forKey: key) }
    }
}
