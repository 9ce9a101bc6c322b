import LarderEngine

/// The contents of a larder, and the counters of its databases since it was opened.
///
/// The counters:
///
/// - *Hits and misses*: each key that one of the following calls requests counts once: `value`, `values`, `bytes`,
///   `contains`, `info`, `timeToLive`, `value(forKey:renewing:)`, `removeValue`, and `update` for each run of its
///   closure. Enumerations, counts and snapshots do not count, because they do not request keys of the current
///   database. Lookups of calls that store under a condition, add, touch or remove do not count either.
/// - *Writes*: each entry that is stored, by any call. A change of the lifetime does not count.
/// - *Removals*: each fresh entry that a call removes. Removing a missing key does not count, nor does the sweep of
///   expired entries. Each call of `removeAll` counts as one of the *purges*. The removed entries count as removals
///   only if the call has `counting: true`.
///
/// Entries that are replayed from the journal after a crash count as writes. If another caller changes an entry while a
/// batch removes it, the batch may count the state before that change. Otherwise each number is exact, but the numbers
/// are not all from the same instant.
public struct CacheStatistics: Hashable, Sendable {
    /// The contents and counters of one database.
    public struct Database: Hashable, Sendable {
        /// The number of requested keys that had a fresh entry.
        public let hits: Int
        /// The number of requested keys that had no fresh entry.
        public let misses: Int
        /// The number of entries that were stored.
        public let writes: Int
        /// The number of fresh entries that were removed. `removeAll(counting: true)` also adds expired ones.
        public let removals: Int
        /// The number of calls of `removeAll` that emptied the database.
        public let purges: Int
        /// The number of entries that were evicted to keep the disk limit.
        public let evictions: Int
        /// The number of fresh entries; nil if they cannot be counted because the database cannot be opened.
        public let entries: Int?
        /// The number of expired entries that are kept for their grace; nil if they cannot be counted.
        public let staleEntries: Int?
        /// The size of the database's files in bytes, without recent writes, which are still in the journal of the
        /// larder.
        public let bytes: Int
    }

    /// The larder's databases that have files, by name.
    public let databases: [String: Database]
    /// The memory that cached entries use, in bytes.
    public let memoryBytes: Int
    /// The limit of ``memoryBytes``: ``CacheOptions/memoryBytes``.
    public let memoryLimitBytes: Int
    /// The size of the journal's files in bytes.
    public let journalBytes: Int
    /// The limit for all files on disk, in bytes: ``CacheOptions/diskBytesMax``; nil for no limit.
    public let diskLimitBytes: Int?
    /// The number of failed fetches from origins, including those in the background.
    public let originFailures: Int

    /// The number of requested keys that had a fresh entry, in all databases.
    public var hits: Int { databases.values.reduce(0) { $0 + $1.hits } }
    /// The number of requested keys that had no fresh entry, in all databases.
    public var misses: Int { databases.values.reduce(0) { $0 + $1.misses } }
    /// The hit ratio, from 0 to 1; nil before the first read.
    public var hitRatio: Double? {
        let reads = hits + misses
        return reads == 0 ? nil : Double(hits) / Double(reads)
    }
    /// The number of entries that were evicted to keep the disk limit, in all databases.
    public var evictions: Int { databases.values.reduce(0) { $0 + $1.evictions } }
    /// The number of fresh entries in all databases whose entries can be counted.
    public var entries: Int { databases.values.reduce(0) { $0 + ($1.entries ?? 0) } }
    /// The size of the files of all databases and of the journal, in bytes.
    public var bytes: Int { databases.values.reduce(journalBytes) { $0 + $1.bytes } }

    /// The statistics as gauges for a metrics system, to record from time to time, in a fixed order: for each database
    /// `larder.hits`, `larder.misses`, `larder.writes`, `larder.removals`, `larder.evictions`, `larder.entries` (if they
    /// can be counted) and `larder.bytes`, with the dimension `database`; then `larder.memory.bytes`,
    /// `larder.journal.bytes` and `larder.origin.failures`.
    public var measurements: [CacheMeasurement] {
        var result: [CacheMeasurement] = []
        func add(_ name: String, _ value: Int, _ dimensions: [String: String] = [:]) {
            result.append(CacheMeasurement("larder." + name, .gauge, Double(value), dimensions))
        }
        for (name, database) in databases.sorted(by: { $0.key < $1.key }) {
            let dimensions = ["database": name]
            add("hits", database.hits, dimensions)
            add("misses", database.misses, dimensions)
            add("writes", database.writes, dimensions)
            add("removals", database.removals, dimensions)
            add("evictions", database.evictions, dimensions)
            if let entries = database.entries { add("entries", entries, dimensions) }
            add("bytes", database.bytes, dimensions)
        }
        add("memory.bytes", memoryBytes)
        add("journal.bytes", journalBytes)
        add("origin.failures", originFailures)
        return result
    }
}

extension Cache {
    /// Returns the contents of the cache's larder, and its counters since it was opened. Counts the entries in LevelDB
    /// again if LevelDB was written to since the last count.
    public func statistics() throws(LarderError) -> CacheStatistics {
        try source.whileOpen("statistics") { (engine) throws(LarderError) in
            var databases: [String: CacheStatistics.Database] = [:]
            for database in engine.databases {
                let counts = database.counts
                let numbers = try? database.entryNumbers()
                databases[database.name] = CacheStatistics.Database(
                    hits: counts.hits, misses: counts.misses, writes: counts.writes - counts.renewals,
                    removals: counts.removals - counts.removalsWithoutEntry, purges: counts.purges,
                    evictions: counts.evicted,
                    entries: numbers?.fresh, staleEntries: numbers?.stale, bytes: database.byteCountOnDisk())
            }
            let memory = engine.memory
            return CacheStatistics(
                databases: databases, memoryBytes: memory.usedBytes, memoryLimitBytes: memory.limitBytes,
                journalBytes: engine.journalByteCount, diskLimitBytes: engine.diskLimitBytes,
                originFailures: engine.originFailures)
        }
    }

    /// Runs ``statistics()`` without blocking the calling thread.
    public func statistics() async throws(LarderError) -> CacheStatistics {
        try await BlockingWork.run { () throws(LarderError) in try self.statistics() }
    }
}
