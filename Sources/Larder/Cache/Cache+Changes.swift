import LarderEngine
import LarderObserving

// Changes as they happen.

extension Cache {
    /// The changes of all entries of the database, from this call on: what is stored, removed, purged, and what expires.
    ///
    /// ```swift
    /// for try await change in try cache.changes() {
    ///     switch change.kind {
    ///     case .stored, .removed, .evicted, .expired: reload(change.key)
    ///     case .purged, .fellBehind: reloadEverything()
    ///     }
    /// }
    /// ```
    /// Tells what any handle on the database does, in every way. An entry that expires is told within about a second
    /// of its deadline if it was stored while it was observed; otherwise, and if more than 65,536 entries with a
    /// deadline were, when the sweep reclaims its space: see `sweep()`. While nobody observes a larder, writes cost
    /// what they cost without this.
    /// - Parameter bufferMax: how many keys may wait while nobody takes changes, at least 1. Beyond that all are
    ///   dropped, and `CacheChange.Kind.fellBehind` is told instead.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an impossible `bufferMax`; ``LarderError/Code/deleted``.
    public func changes(bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.prefix([]), bufferMax: bufferMax)
    }

    /// The changes of one entry, as ``changes(bufferMax:)``, and what happens to all entries at once. If there is an
    /// entry, its expiry is told within about a second.
    /// - Throws: also ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    public func changes(forKey key: some CacheKey, bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.key(Array(try source.key(key, "changes").bytes)), bufferMax: bufferMax)
    }

    /// The changes of the entries whose keys begin with `prefix`, as ``changes(bufferMax:)``, and what happens to all
    /// entries at once. The empty prefix means all.
    /// - Throws: also ``LarderError/Code/invalidArgument`` for a prefix of more than 65,536 bytes.
    public func changes(prefix: some CacheKey, bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.prefix(Array(try source.key(prefix, "changes").bytes)), bufferMax: bufferMax)
    }

    /// ``changes(bufferMax:)``, with the newest value of what was stored.
    public func decodedChanges<Value: Codable & Sendable>(_ type: Value.Type, bufferMax: Int = 1_024)
        throws(LarderError) -> DecodedChanges<Value>
    {
        decoded(type, try changes(bufferMax: bufferMax))
    }

    /// ``changes(forKey:bufferMax:)``, with the newest value of what was stored.
    public func decodedChanges<Value: Codable & Sendable>(
        _ type: Value.Type, forKey key: some CacheKey, bufferMax: Int = 1_024
    ) throws(LarderError) -> DecodedChanges<Value> {
        decoded(type, try changes(forKey: key, bufferMax: bufferMax))
    }

    /// ``changes(prefix:bufferMax:)``, with the newest value of what was stored.
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
