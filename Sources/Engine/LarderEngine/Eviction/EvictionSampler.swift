import LarderLevelDBFormat

/// Reads a sample of entries at random places of a larder's databases. From it, computes the worth up to which entries
/// must be evicted to free a share of the bytes.
struct EvictionSampler {
    typealias Result = (estimate: EvictionEstimate, threshold: Double)

    private typealias Entry = (reads: Double, storedAt: Int64, end: Int64?, bytes: Int)

    private static let places = 96
    private static let entriesPerPlace = 16
    private static let bytesPerPlace = 256 << 10

    /// - Parameters:
    ///   - stores: the stores to sample, each with the bytes of its files.
    ///   - share: the share of all bytes to evict.
    static func sample(
        _ stores: [(database: Database, store: EpochStore, bytes: Int)], share: Double, now: Int64,
        _ random: inout some RandomNumberGenerator
    ) throws(LarderError) -> Result {
        let total = max(1, stores.reduce(0) { $0 + $1.bytes })
        var entries: [Entry] = []
        for (database, store, bytes) in stores {
            let count = max(4, Self.places * bytes / total)
            for start in starts(store, count: count, &random) { entries += try read(database, store, from: start) }
        }
        let ages = entries.map { max(0, now.subtractingClamped($0.storedAt)) }.sorted()
        let estimate = EvictionEstimate(now: now, residence: ages.isEmpty ? 0 : ages[ages.count / 2])
        let judged = entries.map { entry in
            (
                worth: estimate.worth(
                    reads: entry.reads, storedAt: entry.storedAt, end: entry.end, bytes: entry.bytes),
                bytes: entry.bytes
            )
        }
        return (estimate, EvictionEstimate.threshold(judged, share: share))
    }

    /// Returns the keys at which to begin reading: the first possible key, and the first keys of random tables.
    private static func starts(
        _ store: EpochStore, count: Int, _ random: inout some RandomNumberGenerator
    ) -> [[UInt8]] {
        let tables = ((try? ManifestScan.scan(directory: store.path)) ?? nil)?.tables.values.filter {
            $0.smallest.count > 9 && $0.smallest[0] == KeyKind.record
        }
        var starts: [[UInt8]] = [[KeyKind.record]]
        // Sort the tables, so that the same random numbers always choose the same tables.
        guard let tables = tables?.sorted(by: { $0.smallest.lexicographicallyPrecedes($1.smallest) }), !tables.isEmpty
        else { return starts }
        while starts.count < count {
            // Drop the eight bytes that LevelDB appends to a key: sequence number and type.
            starts.append(Array(tables[Int.random(in: 0..<tables.count, using: &random)].smallest.dropLast(8)))
        }
        return starts
    }

    private static func read(
        _ database: Database, _ store: EpochStore, from start: [UInt8]
    ) throws(LarderError) -> [Entry] {
        var found = EvictionRange()
        try found.collect(
            store, from: start, bytesMax: bytesPerPlace, entriesMax: entriesPerPlace, database.removalRules.purges)
        let rules = database.rules
        return found.entries.compactMap { entry in
            guard let header = entry.header else { return nil }
            let key = Key(stored: found.key(entry))
            guard let reads = key.withBytes({ database.diskReads(of: $0, key.hash) }) else { return nil }
            return (reads, header.storedAt, rules.end(header), entry.byteCount)
        }
    }
}

/// Estimates the worth of an entry on the disk: how many fetches from the origin the entry saves, per byte.
///
/// ```
/// worth = (reads + youth) × rest of its life × cost of fetching it again ÷ bytes
/// ```
/// - *reads*: the recent reads of the entry: the reads from the disk (``ReadSketch``), plus an estimate of the reads
///   from memory.
/// - *youth*: 1 for an entry that was just stored, ½ after the usual residence time, and less after that. This protects
///   new entries, which have had no time to be read. Among otherwise equal entries without reads, the oldest is evicted
///   first.
/// - *rest of its life*: the time until the entry expires, as a share of the residence time, at most 1. An entry that
///   expires soon saves little.
/// - *cost of fetching it again*: a constant part plus the size of the entry.
///
/// A value: arithmetic without access to any files.
package struct EvictionEstimate: Sendable {
    /// The time of the estimate, in milliseconds since 1970.
    let now: Int64
    /// The usual residence time of entries, in milliseconds: half of the entries on the disk are older.
    let residence: Double

    /// The constant part of the cost of a fetch, expressed in transferred bytes: 64 KiB.
    private static let fixedCost = 65_536.0
    /// The approximate bytes that an entry takes on the disk in addition to its key and its record.
    private static let overheadBytes = 32.0
    /// The minimum factor for the rest of an entry's life. It is above 0, so that entries that expire soon are still
    /// ordered by the other factors.
    private static let restMin = 0.01

    package init(now: Int64, residence: Int64) {
        self.now = now
        self.residence = Double(max(1000, residence))
    }

    /// - Parameters:
    ///   - reads: 0 or more.
    ///   - storedAt: in milliseconds since 1970.
    ///   - end: when the entry may no longer be returned, not even as stale, in milliseconds since 1970; nil for never.
    ///   - bytes: the size of its key and record.
    package func worth(reads: Double, storedAt: Int64, end: Int64?, bytes: Int) -> Double {
        let age = Double(max(0, now.subtractingClamped(storedAt)))
        let youth = residence / (residence + age)
        let rest = end.map { min(1, max(Self.restMin, Double($0.subtractingClamped(now)) / residence)) } ?? 1
        let size = Double(bytes) + Self.overheadBytes
        return (reads + youth) * rest * (Self.fixedCost + size) / size
    }

    /// Returns the worth up to which entries must be evicted to free a share of the bytes. The entries of the sample
    /// with at most this worth have at least `share` of the sample's bytes.
    /// - Parameter sample: a sample of entries. If it is empty, the result is 0.
    package static func threshold(_ sample: [(worth: Double, bytes: Int)], share: Double) -> Double {
        let sorted = sample.sorted { $0.worth < $1.worth }
        let most = share * Double(sorted.reduce(0) { $0 + $1.bytes })
        var sum = 0.0
        for entry in sorted {
            sum += Double(entry.bytes)
            if sum >= most { return entry.worth }
        }
        return 0
    }
}
