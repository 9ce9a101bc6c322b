import LarderEngine

/// Which entries an enumeration goes over, and how.
public struct EntryOptions: Sendable {
    /// Only keys that begin with these bytes. The default is empty: all keys.
    public var prefix: [UInt8]
    /// Where to begin: at this key if it is there, else at the next one in the direction of travel. The default is nil:
    /// at the first, or going backward at the last.
    public var startingAt: [UInt8]?
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
        prefix: some CacheKey = "", startingAt: (any CacheKey)? = nil, backward: Bool = false,
        includingExpired: Bool = false, fillCache: Bool = false, limit: Int? = nil
    ) {
        self.prefix = prefix.keyBytes
        self.startingAt = startingAt?.keyBytes
        self.backward = backward
        self.includingExpired = includingExpired
        self.fillCache = fillCache
        self.limit = limit
    }

    /// The engine's options.
    var enumeration: EnumerationOptions {
        EnumerationOptions(
            prefix: prefix, start: startingAt, backward: backward, includeExpired: includingExpired,
            fillCache: fillCache)
    }
}
