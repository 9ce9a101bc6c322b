import LarderEngine

/// The range and the order of an enumeration.
public struct EntryOptions: Sendable {
    /// The bytes with which keys must begin. A prefix that is longer than any key, more than 65,536 bytes, matches
    /// none. The default is empty: all keys.
    public var prefix: [UInt8]
    /// The inclusive lower bound in the order of bytes. The default is nil: none.
    public var from: [UInt8]?
    /// The exclusive upper bound in the order of bytes. The default is nil: none.
    public var to: [UInt8]?
    /// Whether to enumerate from the last key to the first. The default is false.
    public var backward: Bool
    /// Whether to include expired entries that have not been removed yet. The default is false.
    public var includingExpired: Bool
    /// Whether blocks that are read from the disk stay in the block cache. The default is false, so that a full
    /// enumeration does not evict frequently used blocks.
    public var fillCache: Bool
    /// The maximum number of entries, counted after filters. The default is nil: all.
    public var limit: Int?

    /// Creates options. Each parameter is described at the property of its name.
    public init(
        prefix: any CacheKey = "", from: (any CacheKey)? = nil, to: (any CacheKey)? = nil, backward: Bool = false,
        includingExpired: Bool = false, fillCache: Bool = false, limit: Int? = nil
    ) {
        self.prefix = prefix.keyBytes
        self.from = from?.keyBytes
        self.to = to?.keyBytes
        self.backward = backward
        self.includingExpired = includingExpired
        self.fillCache = fillCache
        self.limit = limit
    }

    /// The same options in the engine's form.
    var enumeration: EnumerationOptions {
        EnumerationOptions(
            prefix: prefix, start: backward ? to : from, backward: backward, includeExpired: includingExpired,
            fillCache: fillCache)
    }

    /// Returns ``limit``, or the largest `Int` if it is nil. Throws if it is negative.
    func checkedLimit(_ database: String) throws(LarderError) -> Int {
        guard let limit else { return .max }
        guard limit >= 0 else {
            throw LarderError(
                .invalidArgument, "the limit of an enumeration is \(limit), and must not be negative",
                operation: "enumerate", database: database)
        }
        return limit
    }

    /// The position of a key relative to the bounds of the enumeration.
    enum Position {
        case inside
        /// Before the first key of the run. Occurs in backward runs, which start at the excluded upper bound.
        case before
        /// After the last key of the run.
        case behind
    }

    func position(of key: ArraySlice<UInt8>) -> Position {
        if backward {
            if let to, !key.lexicographicallyPrecedes(to) { return .before }
            if let from, key.lexicographicallyPrecedes(from) { return .behind }
        } else if let to, !key.lexicographicallyPrecedes(to) {
            return .behind
        }
        return .inside
    }
}
