import LarderEngine

/// Which entries an enumeration goes over, and how.
public struct EntryOptions: Sendable {
    /// Only keys that begin with these bytes. The default is empty: all keys.
    public var prefix: [UInt8]
    /// The lower bound: only keys that are equal to it or come behind it in the order of bytes. The default is nil: none.
    public var from: [UInt8]?
    /// The upper bound: only keys that come before it, itself excluded. The default is nil: none.
    public var to: [UInt8]?
    /// From the last key to the first. The default is false.
    public var backward: Bool
    /// Whether entries are shown that have expired and were not swept yet. The default is false.
    public var includingExpired: Bool
    /// Whether what is read from the disk stays in the block cache. The default is false, so that going over everything
    /// does not push out what is used often.
    public var fillCache: Bool
    /// The most entries to hand out, counted after filters. The default is nil: all.
    public var limit: Int?

    /// Every option is described at the property of its name.
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

    /// The engine's options.
    var enumeration: EnumerationOptions {
        EnumerationOptions(
            prefix: prefix, start: backward ? to : from, backward: backward, includeExpired: includingExpired,
            fillCache: fillCache)
    }

    /// How many entries may be handed out.
    func checkedLimit(_ database: String) throws(LarderError) -> Int {
        guard let limit else { return .max }
        guard limit >= 0 else {
            throw LarderError(
                .invalidArgument, "the limit of an enumeration is \(limit), and must not be negative",
                operation: "enumerate", database: database)
        }
        return limit
    }

    /// Where a key stands that the cursor, which begins at one of the bounds, has come to.
    enum Position {
        case inside
        /// It is the upper bound itself, where a run backward begins.
        case before
        /// The run is over.
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
