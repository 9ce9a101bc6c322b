import LevelDB

/// Goes once over all entries of a database whose policy was "never" for a time, and puts the governed ones that were
/// stored then into the expiry index; those that are expired already it deletes.
///
/// Step by step as ``Sweeper``, and confined to the same thread. A restart of the process begins it again.
struct IndexingPass {
    private var policyChanges = -1
    private var resume: [UInt8] = []

    /// One bounded step.
    /// - Returns: what it deleted, and whether there is more to do.
    mutating func step(
        _ database: Database, _ store: EpochStore, _ state: Database.State
    ) throws(LarderError) -> (Sweeper.Removal, more: Bool) {
        if policyChanges != state.policyChanges {
            // What was written under "never" since may lie behind where this pass is.
            policyChanges = state.policyChanges
            resume = [KeyKind.record]
        }
        let (governed, last) = try Self.collect(from: resume, store)
        guard let last else {
            try database.finishIndexing(store, policyChanges: policyChanges)
            return (Sweeper.Removal(), false)
        }
        let removal = governed.isEmpty ? Sweeper.Removal() : try Self.index(governed, database)
        resume = last + [0]
        return (removal, true)
    }

    /// The governed ones of the next entries, and the last entry looked at; nil at the end.
    private static func collect(from start: [UInt8], _ store: EpochStore) throws(LarderError) -> ([Key], [UInt8]?) {
        try store.access("sweep") { (database) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try database.cursor(options, prefix: [KeyKind.record])
            defer { cursor.close() }
            var governed: [Key] = []
            var last: [UInt8]?
            try cursor.seek(to: start)
            for _ in 0..<Sweeper.recordsPerStep where cursor.isValid {
                let key = cursor.key
                let isGoverned = try cursor.withValue { (try? RecordHeader(parsing: $0))?.rule == .governed }
                if isGoverned { governed.append(Key(stored: key)) }
                last = key
                try cursor.next()
            }
            return (governed, last)
        }
    }

    private static func index(_ keys: [Key], _ database: Database) throws(LarderError) -> Sweeper.Removal {
        let removal = try database.commit(keys, .headers) { update -> Sweeper.Removal in
            var removal = Sweeper.Removal()
            for position in keys.indices {
                guard let header = update.stored(position)?.header, header.rule == .governed else { continue }
                if update.rules.freshness(header, now: update.now) == .expired {
                    removal.entries += 1
                    removal.bytes += update.byteCount(position)
                    update.remove(position)
                } else {
                    update.addIndex(position, header)
                }
            }
            return removal
        }
        Sweeper.note(removal, database)
        return removal
    }
}
