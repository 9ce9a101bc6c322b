import LarderEngine

/// The contents of a larder, and the counts of what was done with it since it was opened, by database.
///
/// Each number is exact, but they are not all of the same instant. A value.
public struct CacheStatistics: Hashable, Sendable {
    /// One database of a larder.
    public struct Database: Hashable, Sendable {
        /// Reads that found a fresh entry.
        public let hits: Int
        /// Reads that found no fresh entry.
        public let misses: Int
        /// Entries that were stored.
        public let writes: Int
        /// Entries that were removed, by any call.
        public let removals: Int
        /// How many entries there are, including expired ones that were not swept yet; nil if they cannot be counted,
        /// because the database cannot be opened.
        public let entries: Int?
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

    /// Reads that found a fresh entry, in all databases.
    public var hits: Int { databases.values.reduce(0) { $0 + $1.hits } }
    /// Reads that found none, in all databases.
    public var misses: Int { databases.values.reduce(0) { $0 + $1.misses } }
    /// The share of the reads that found a fresh entry, from 0 to 1; nil if nothing was read yet.
    public var hitRatio: Double? {
        let reads = hits + misses
        return reads == 0 ? nil : Double(hits) / Double(reads)
    }
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
                databases[database.name] = CacheStatistics.Database(
                    hits: counts.hits, misses: counts.misses, writes: counts.writes, removals: counts.removals,
                    entries: try? database.count(includingExpired: true), bytes: database.byteCountOnDisk())
            }
            let memory = engine.memory
            return CacheStatistics(
                databases: databases, memoryBytes: memory.usedBytes, memoryLimitBytes: memory.limitBytes,
                journalBytes: engine.journalByteCount)
        }
    }

    /// ``statistics()``, without blocking the caller.
    public func statistics() async throws(LarderError) -> CacheStatistics {
        try await BlockingWork.run { () throws(LarderError) in try self.statistics() }
    }
}
