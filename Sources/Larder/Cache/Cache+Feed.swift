import LarderEngine
import LarderObserving

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
