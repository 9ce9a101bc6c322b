/// The limits of a near cache. A value type.
public struct NearCacheOptions: Hashable, Sendable {
    /// The maximum number of entries, 1 to 16,777,216. The default is 10,000.
    public var entriesMax: Int
    /// The maximum number of bytes for keys and encoded values, plus about 160 bytes for each entry; at least 1. The
    /// default is 16 MiB. Decoded models may need more memory than their encoding.
    public var bytesMax: Int
    /// The maximum age of an entry in milliseconds, at least 1, independent of its deadline; nil, the default, for no
    /// limit.
    public var ageMillisecondsMax: Int?
    /// Whether to remember, for up to a minute, that a key has no entry. In the limits, such a key counts as an entry
    /// without a value. The default is true.
    public var keepsAbsences: Bool

    /// Creates limits. Each parameter is described at the property of its name.
    public init(
        entriesMax: Int = 10_000, bytesMax: Int = 16 << 20, ageMillisecondsMax: Int? = nil,
        keepsAbsences: Bool = true
    ) {
        self.entriesMax = entriesMax
        self.bytesMax = bytesMax
        self.ageMillisecondsMax = ageMillisecondsMax
        self.keepsAbsences = keepsAbsences
    }
}

/// The statistics of a near cache. A value type.
public struct NearCacheStatistics: Hashable, Sendable {
    /// The current number of entries, including keys that are known to have no entry.
    public let entries: Int
    /// The size of the entries in bytes: see ``NearCacheOptions/bytesMax``.
    public let bytes: Int
    /// The number of reads that needed no round trip.
    public let hits: Int
    /// The number of reads that needed a round trip.
    public let misses: Int
    /// The number of changed keys that the daemon has reported; a report for all keys counts as one.
    public let invalidations: Int
    /// The number of entries that were evicted.
    public let evictions: Int
    /// Whether the daemon currently reports changes: false before the first connection and while the connection is
    /// lost.
    public let isLive: Bool
}
