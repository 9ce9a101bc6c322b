import LarderEngine
import LarderObserving

// Calls that report changes of entries as they happen.

extension Cache {
    /// Observes all entries of the database, beginning with this call. Reports each entry that is stored, removed,
    /// evicted or purged, or that expires.
    ///
    /// ```swift
    /// for try await change in try cache.changes() {
    ///     switch change.kind {
    ///     case .stored, .removed, .evicted, .expired: reload(change.key)
    ///     case .purged, .fellBehind: reloadEverything()
    ///     }
    /// }
    /// ```
    /// Changes made through any handle on the database are reported. If an entry was stored while an observer was
    /// active, its expiry is reported within about a second of the deadline. This applies to at most 65,536 entries
    /// with a deadline. Other expiries are reported when the sweep removes the entries: see `sweep()`. Without
    /// observers, writes have no extra cost.
    /// - Parameter bufferMax: the maximum number of keys with unread changes, at least 1. If more keys have unread
    ///   changes, all unread changes are dropped, and `CacheChange.Kind.fellBehind` is reported instead.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid `bufferMax`; ``LarderError/Code/deleted``.
    public func changes(bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.prefix([]), bufferMax: bufferMax)
    }

    /// Observes one entry, like ``changes(bufferMax:)``. Changes that affect all entries, such as purges, are reported
    /// too. If the key has an entry now, the expiry of this entry is reported within about a second of the deadline.
    /// - Throws: also ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
    public func changes(forKey key: some CacheKey, bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.key(Array(try source.key(key, "changes").bytes)), bufferMax: bufferMax)
    }

    /// Observes the entries whose keys begin with `prefix`, like ``changes(bufferMax:)``. Changes that affect all
    /// entries, such as purges, are reported too. The empty prefix selects all entries.
    /// - Throws: also ``LarderError/Code/invalidArgument`` for a prefix of more than 65,536 bytes.
    public func changes(prefix: some CacheKey, bufferMax: Int = 1_024) throws(LarderError) -> CacheChanges {
        try source.changes(.prefix(Array(try source.key(prefix, "changes").bytes)), bufferMax: bufferMax)
    }

    /// Observes entries like ``changes(bufferMax:)``, and decodes the newest value of each stored entry.
    public func decodedChanges<Value: Codable & Sendable>(_ type: Value.Type, bufferMax: Int = 1_024)
        throws(LarderError) -> DecodedChanges<Value>
    {
        decoded(type, try changes(bufferMax: bufferMax))
    }

    /// Observes an entry like ``changes(forKey:bufferMax:)``, and decodes the newest stored value.
    public func decodedChanges<Value: Codable & Sendable>(
        _ type: Value.Type, forKey key: some CacheKey, bufferMax: Int = 1_024
    ) throws(LarderError) -> DecodedChanges<Value> {
        decoded(type, try changes(forKey: key, bufferMax: bufferMax))
    }

    /// Observes entries like ``changes(prefix:bufferMax:)``, and decodes the newest value of each stored entry.
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

// Change feeds: calls that report changes since a position in the past.

extension Cache {
    /// Returns the changes after a position. Each change has a position from which a later call can continue, even
    /// after a restart of the program. If the history after the position is no longer available, all entries are
    /// reported first.
    /// - Parameters:
    ///   - position: where to start: the position of an earlier change, `beginning`, or `now`.
    ///   - prefix: limits the feed to purges, and to entries whose keys begin with `prefix`. To continue from a
    ///     position, use the same prefix as before.
    /// - Throws: ``LarderError/Code/invalidArgument`` for an invalid position.
    public func changes(since position: ChangePosition, prefix: some CacheKey = "") throws(LarderError)
        -> PositionedChanges<[UInt8]>
    {
        let source = source
        return try source.feed(since: position, prefix) { record, _ in record.withPayload { [UInt8]($0) } }
    }

    /// Returns the same changes as ``changes(since:prefix:)``, with decoded values.
    public func decodedChanges<Value: Codable & Sendable>(
        _ type: Value.Type, since position: ChangePosition, prefix: some CacheKey = ""
    ) throws(LarderError) -> PositionedChanges<Value> {
        let source = source
        return try source.feed(since: position, prefix) { record, key in
            try source.decodeOrThrow(type, record, key.withUnsafeBytes { Key($0) })
        }
    }
}
