/// How much a near cache keeps. A value.
public struct NearCacheOptions: Hashable, Sendable {
    /// The most entries, 1 to 16,777,216. The default is 10,000.
    public var entriesMax: Int
    /// The most bytes of keys and encoded values, with some 160 bytes for each entry, from 1 on. The default is 16 MiB.
    /// Decoded models may take more than their encoding.
    public var bytesMax: Int
    /// How long an entry is handed out at the most, in milliseconds from 1 on, whatever its deadline; nil, the
    /// default, for no such limit.
    public var ageMillisecondsMax: Int?
    /// Whether it is kept too that a key has no entry, for a minute at the most: such a key counts as an entry without a
    /// value. The default is true.
    public var keepsAbsences: Bool

    /// Every option is described at the property of its name.
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

/// What a near cache did so far. A value.
public struct NearCacheStatistics: Hashable, Sendable {
    /// How many entries it has now, keys that are known to have none included.
    public let entries: Int
    /// What they take: see ``NearCacheOptions/bytesMax``.
    public let bytes: Int
    /// Reads that needed no round trip.
    public let hits: Int
    /// Reads that did.
    public let misses: Int
    /// Keys of which the daemon told that they changed; each time that it told of all counts as one.
    public let invalidations: Int
    /// Entries that left to make room.
    public let evictions: Int
    /// Whether the daemon tells of changes now: not before the first connection, nor while it is lost.
    public let isLive: Bool
}
