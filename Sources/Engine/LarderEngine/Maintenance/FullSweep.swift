import LarderLevelDB

/// Scans all entries of a database in LevelDB, in steps and without using the expiry index. Removes expired entries. If
/// requested, adds governed entries (whose deadline follows from the database's policy) to the index.
///
/// Used only by the maintenance thread. After a restart of the process, the scan starts again.
struct FullSweep {
    /// The key at which the next step starts; nil at the end.
    private var resume: [UInt8]? = [KeyKind.record]
    /// The number of the policy change that requires the scan to add entries to the index; nil if it adds none.
    let indexingFor: Int?
    /// Whether the index has lost keys, so that the scan also adds entries with their own deadlines to it.
    private let indexesAll: Bool

    /// The number and size of the entries that the scan has left in place so far.
    private(set) var live = Sweeper.Removal()

    static let recordsPerStep = 512

    init(indexingFor policyChanges: Int? = nil, all indexesAll: Bool = false) {
        indexingFor = policyChanges
        self.indexesAll = indexesAll
    }

    var isOver: Bool { resume == nil }

    /// Runs one step of at most ``recordsPerStep`` records.
    /// - Returns: the entries that it removed.
    mutating func step(_ database: Database, _ store: EpochStore) throws(LarderError) -> Sweeper.Removal {
        guard let start = resume else { return Sweeper.Removal() }
        var next: [UInt8]?
        var met = Sweeper.Removal()
        let removal = try store.indexLock.withLock { () throws(LarderError) in
            let state = database.appliedState
            let removalRules = database.removalRules
            let found = try Self.collect(from: start, store, removalRules.purges)
            next = found.count < Self.recordsPerStep ? nil : found.last.map { $0.key.stored + [0] }
            var removal = Sweeper.Removal()
            var changes: [EntryChange] = []
            let batch = LarderLevelDB.WriteBatch()
            let rules = ExpiryIndex.Rules(state.rules.policy)
            let now = database.unnoticedNow()
            for candidate in found {
                met.entries += 1
                met.bytes += candidate.byteCount
                guard let header = candidate.header else { continue }
                if removalRules.isGone(header, now: now) {
                    // Skip an entry that is dirty in memory: the checkpoint replaces or removes its record in LevelDB.
                    guard let dropped = database.dropFromMemory(candidate.key) else { continue }
                    batch.delete(candidate.key.stored)
                    if let change = database.sweptChange(Array(candidate.key.bytes), header, state.rules) {
                        changes.append(change)
                    }
                    removal.entries += 1
                    if !dropped.wasFound { removal.unfound += 1 }
                    removal.bytes += candidate.byteCount
                    continue
                }
                if indexingFor != nil, indexesAll || header.rule == .governed {
                    let slot = rules.slot(header)
                    guard slot != 0 else { continue }
                    batch.put(
                        candidate.key.stored.withUnsafeBytes { ExpiryIndex.key(slot, storedKey: $0) }, ExpiryIndex.value
                    )
                }
            }
            if !batch.isEmpty { try store.write(batch, sync: false) }
            database.context.changes.publish(changes)
            return removal
        }
        resume = next
        live.entries += met.entries - removal.entries
        live.bytes += met.bytes - removal.bytes
        Sweeper.note(removal, database)
        return removal
    }

    private struct Candidate {
        let key: Key
        /// The record's header; nil if the record cannot be read.
        let header: RecordHeader?
        let byteCount: Int
    }

    private static func collect(
        from start: [UInt8], _ store: EpochStore, _ purges: TagPurges?
    ) throws(LarderError) -> [Candidate] {
        try store.access("sweep") { (database) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try database.cursor(options, prefix: [KeyKind.record])
            defer { cursor.close() }
            var found: [Candidate] = []
            try cursor.seek(to: start)
            while cursor.isValid, found.count < recordsPerStep {
                let key = cursor.key
                let (header, count) = try cursor.withValue { (try? RecordHeader(parsing: $0, purges), $0.count) }
                found.append(Candidate(key: Key(stored: key), header: header, byteCount: key.count + count))
                try cursor.next()
            }
            return found
        }
    }
}
