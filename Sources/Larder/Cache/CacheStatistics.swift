import LarderEngine

/// The contents of a larder, and the counts of what was done with it since it was opened, by database.
///
/// What counts:
///
/// - *Hits and misses*: each key that a call of the database asks for counts once, however often it is looked up for that:
///   `value`, `values`, `bytes`, `contains`, `info`, `timeToLive`, `value(forKey:renewing:)`, `removeValue`, and
///   `update` for each run of its closure. Enumerations, counts and snapshots count nothing, because they do not ask for
///   keys of the database as it is; nor does the look at an entry of the calls that store under a condition, add, touch
///   or remove.
/// - *Writes*: each entry that is stored, by any call. Another lifetime is none.
/// - *Removals*: each fresh entry that a call removes. The removal of a key without one is none, nor is the sweep of what
///   has expired. `removeAll` does not know how many entries it removes, unless it is told to count: each call is one of
///   the *purges*.
///
/// What a larder has after a crash in its journal, and reads into memory again, counts as written. If an entry is changed
/// by somebody else while a batch removes it, the batch may count what it saw. Otherwise each number is exact, but they
/// are not all of the same instant. A value.
public struct CacheStatistics: Hashable, Sendable {
    /// One database of a larder.
    public struct Database: Hashable, Sendable {
        /// Keys that were asked for and had a fresh entry.
        public let hits: Int
        /// Keys that were asked for and had none.
        public let misses: Int
        /// Entries that were stored.
        public let writes: Int
        /// Fresh entries that were removed, and the entries of `removeAll(counting: true)`, expired ones included.
        public let removals: Int
        /// How often `removeAll` emptied the database.
        public let purges: Int
        /// Entries that were removed to keep a limit of the disk.
        public let evictions: Int
        /// How many fresh entries there are; nil if they cannot be counted,
        /// because the database cannot be opened.
        public let entries: Int?
        /// How many entries it keeps for their grace; nil if they cannot be counted.
        public let staleEntries: Int?
        /// The size of its files in bytes. Recent writes are still in the journal, which all databases share.
        public let bytes: Int
    }

    /// The larder's databases that have files, by name.
    public let databases: [String: Database]
    /// Bytes that entries in memory take now.
    public let memoryBytes: Int
    /// Bytes that they may take: ``CacheOptions/memoryBytes``.
    public let memoryLimitBytes: Int
    /// Bytes of the journal's files.
    public let journalBytes: Int
    /// The most bytes that all files may take on the disk: ``CacheOptions/diskBytesMax``; nil for no limit.
    public let diskLimitBytes: Int?
    /// How often origins failed of which values were fetched, in the background too.
    public let originFailures: Int

    /// Keys that had a fresh entry, in all databases.
    public var hits: Int { databases.values.reduce(0) { $0 + $1.hits } }
    /// Keys that had none, in all databases.
    public var misses: Int { databases.values.reduce(0) { $0 + $1.misses } }
    /// The share of the reads that found a fresh entry, from 0 to 1; nil if nothing was read yet.
    public var hitRatio: Double? {
        let reads = hits + misses
        return reads == 0 ? nil : Double(hits) / Double(reads)
    }
    /// Entries that were removed to keep a limit of the disk, of all databases.
    public var evictions: Int { databases.values.reduce(0) { $0 + $1.evictions } }
    /// Entries of all databases that can be counted.
    public var entries: Int { databases.values.reduce(0) { $0 + ($1.entries ?? 0) } }
    /// Bytes of the files of all databases, and of the journal.
    public var bytes: Int { databases.values.reduce(journalBytes) { $0 + $1.bytes } }
}

extension Cache {
    /// The contents of the cache's larder, and the counts of what was done with it since it was opened. Counts the
    /// entries in LevelDB if there was a write to it since they were last counted.
    public func statistics() throws(LarderError) -> CacheStatistics {
        try source.whileOpen("statistics") { (engine) throws(LarderError) in
            var databases: [String: CacheStatistics.Database] = [:]
            for database in engine.databases {
                let counts = database.counts
                let numbers = try? database.entryNumbers()
                databases[database.name] = CacheStatistics.Database(
                    hits: counts.hits, misses: counts.misses, writes: counts.writes - counts.renewals,
                    removals: counts.removals - counts.vainRemovals, purges: counts.purges,
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

    /// ``statistics()``, without blocking the caller.
    public func statistics() async throws(LarderError) -> CacheStatistics {
        try await BlockingWork.run { () throws(LarderError) in try self.statistics() }
    }
}
