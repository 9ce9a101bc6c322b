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
        (indexingFor, self.indexesAll) = (policyChanges, indexesAll)
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
            var found = EvictionRange()
            try found.collect(
                store, from: start, bytesMax: .max, entriesMax: Self.recordsPerStep, removalRules.purges,
                operation: "sweep")
            next = found.next
            var removal = Sweeper.Removal()
            var changes: [EntryChange] = []
            let batch = LarderLevelDB.WriteBatch()
            let rules = ExpiryIndex.Rules(state.rules.policy)
            let now = database.unnoticedNow()
            for candidate in found.entries {
                met.entries += 1
                met.bytes += candidate.byteCount
                guard let header = candidate.header else { continue }
                let key = Key(stored: found.key(candidate))
                if removalRules.isGone(header, now: now) {
                    // Skip an entry that is dirty in memory: the checkpoint replaces or removes its record in LevelDB.
                    guard let wasFound = database.dropFromMemory(key) else { continue }
                    batch.delete(key.stored)
                    if let change = database.sweptChange(Array(key.bytes), header, state.rules) {
                        changes.append(change)
                    }
                    removal.entries += 1
                    if !wasFound { removal.unfound += 1 }
                    removal.bytes += candidate.byteCount
                    continue
                }
                if indexingFor != nil, indexesAll || header.rule == .governed {
                    let slot = rules.slot(header)
                    guard slot != 0 else { continue }
                    batch.put(key.stored.withUnsafeBytes { ExpiryIndex.key(slot, storedKey: $0) }, ExpiryIndex.value)
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
}
