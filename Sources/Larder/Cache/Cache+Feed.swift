import LarderEngine
import LarderObserving

// Changes from a position on.

extension Cache {
    /// The changes of the database from a position on, each with the place to go on behind it: at any later time, and after
    /// a restart of the program. Where what is behind it is not known any more, all entries are told first.
    /// - Parameters:
    ///   - position: where to begin: that of an earlier change, `beginning`, or `now`.
    ///   - prefix: only entries whose keys begin with it, and purges. The same one belongs to a position.
    /// - Throws: ``LarderError/Code/invalidArgument`` for what is no position.
    public func changes(since position: ChangePosition, prefix: some CacheKey = "") throws(LarderError)
        -> PositionedChanges<[UInt8]>
    {
        let source = source
        return try source.feed(since: position, prefix) { record, _ in record.withPayload { [UInt8]($0) } }
    }

    /// ``changes(since:prefix:)`` with decoded values.
    public func decodedChanges<Value: Codable & Sendable>(
        _ type: Value.Type, since position: ChangePosition, prefix: some CacheKey = ""
    ) throws(LarderError) -> PositionedChanges<Value> {
        let source = source
        return try source.feed(since: position, prefix) { record, key in
            try source.decodeOrThrow(type, record, key.withUnsafeBytes { Key($0) })
        }
    }
}
