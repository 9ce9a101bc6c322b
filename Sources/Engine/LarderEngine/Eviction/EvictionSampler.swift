import LarderLevelDB
import LarderLevelDBFormat

/// Reads a sample of entries at random places of a larder's databases. From it, computes the worth up to which entries
/// must be evicted to free a share of the bytes.
struct EvictionSampler {
    /// The result of a sample.
    struct Result {
        let estimate: EvictionEstimate
        let threshold: Double
    }

    private struct Entry {
        let reads: Double
        let storedAt: Int64
        let end: Int64?
        let bytes: Int
    }

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
        return Result(estimate: estimate, threshold: EvictionEstimate.threshold(judged, share: share))
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
        let purges = database.removalRules.purges
        let found = try store.access("evict") { (leveldb) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try leveldb.cursor(options, prefix: [KeyKind.record])
            defer { cursor.close() }
            var found: [(key: Key, header: RecordHeader, bytes: Int)] = []
            var bytes = 0
            try cursor.seek(to: start)
            while cursor.isValid, found.count < entriesPerPlace, bytes < bytesPerPlace {
                let key = cursor.key
                let (header, count) = try cursor.withValue { (try? RecordHeader(parsing: $0, purges), $0.count) }
                bytes += key.count + count
                if let header { found.append((Key(stored: key), header, key.count + count)) }
                try cursor.next()
            }
            return found
        }
        let rules = database.rules
        return found.compactMap { entry in
            guard let reads = entry.key.withBytes({ database.diskReads(of: $0, entry.key.hash) }) else { return nil }
            return Entry(
                reads: reads, storedAt: entry.header.storedAt, end: rules.end(entry.header), bytes: entry.bytes)
        }
    }
}
