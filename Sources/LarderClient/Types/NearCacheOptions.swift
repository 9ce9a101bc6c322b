/// How much a near cache keeps. A value.
public struct NearCacheOptions: Hashable, Sendable {
    /// The most entries, 1 to 16,777,216. The default is 10,000.
    public var entriesMax: Int
    /// The most bytes of keys and encoded values, plus some 160 bytes for each entry; at least 1. The default is 16
    /// MiB. Decoded models may take more than their encoding.
    public var bytesMax: Int
    /// How long an entry is kept at most, in milliseconds, at least 1, whatever its deadline; nil, the default, for no
    /// such limit.
    public var ageMillisecondsMax: Int?
    /// Whether the absence of an entry is kept too, for a minute at most: such a key counts as an entry without a
    /// value. The default is true.
    public var keepsAbsences: Bool

    /// Each option is described at the property of its name.
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

/// The statistics of a near cache. A value.
public struct NearCacheStatistics: Hashable, Sendable {
    /// How many entries it has now, including keys that are known to have none, and how many bytes they take: see
    /// ``NearCacheOptions/bytesMax``.
    public let entries: Int
    /// What they take: see ``NearCacheOptions/bytesMax``.
    public let bytes: Int
    /// Reads that needed no round trip.
    public let hits: Int
    /// Reads that did.
    public let misses: Int
    /// How many changed keys the daemon has reported; a report for all keys counts as one.
    public let invalidations: Int
    /// Entries that were evicted.
    public let evictions: Int
    /// Whether the daemon reports changes now: not before the first connection, nor while it is lost.
    public let isLive: Bool
}
