import LarderLevelDB

extension Database {
    /// The number of entries.
    /// - Parameter includingExpired: whether to include expired entries that have not been removed yet.
    package func count(includingExpired: Bool) throws(LarderError) -> Int {
        let numbers = try entryNumbers()
        return includingExpired ? numbers.stored : numbers.fresh
    }

    /// The numbers of entries by state.
    ///
    /// Reads the headers of all records in LevelDB. Cheap if neither LevelDB nor the freshness rules have changed since
    /// the last count: the call then reuses its result. An entry with an invalid header counts as fresh.
    package func entryNumbers() throws(LarderError) -> EntryNumbers {
        // An eviction may invalidate all snapshots, including the one that is being counted. If so, count again.
        var attempts = 0
        while true {
            do throws(LarderError) {
                return try countOnce()
            } catch {
                attempts += 1
                guard error.code == .invalidated, attempts < Self.countAttemptsMax else { throw error }
            }
        }
    }

    private static let countAttemptsMax = 5

    private func countOnce() throws(LarderError) -> EntryNumbers {
        var generation: UInt64 = 0
        let view = try view("count", undisturbed: true) { (store) throws(LarderError) -> StoreSnapshot in
            generation = store.writeGeneration
            return try Snapshot.hold(store)
        }
        guard let view else { return EntryNumbers() }
        let snapshot = Snapshot(self, view)
        defer { snapshot.close() }
        let (rules, now) = (rules, now())
        var numbers = try view.store.countedRecords(rules, now: now, view.below, at: generation).numbers(now: now)
        for index in 0..<view.run.count {
            if let below = try snapshot.headerBelow(view.run.key(index), rules.purges) {
                numbers.add(below, rules, now: now, -1)
            }
            let above = view.run.withRecord(index) { $0.map { RecordHeader.read($0, rules.purges) } }
            if let above { numbers.add(above, rules, now: now, 1) }
        }
        numbers.ends.limit(to: numbers.fresh)
        return numbers
    }
}

extension EpochStore {
    /// Counts the records in LevelDB by state. Returns the last count if it is still valid.
    /// - Parameters:
    ///   - held: the snapshot to count; nil for the current state.
    ///   - generation: ``writeGeneration`` when the snapshot was taken; nil for the current one.
    func countedRecords(
        _ rules: FreshnessRules, now: Int64, _ held: StoreSnapshot? = nil, at generation: UInt64? = nil
    ) throws(LarderError) -> CountedRecords {
        let generation = generation ?? writeGeneration
        var records = CountedRecords(rules, at: generation)
        if held?.isEmpty ?? !isMade { return records }
        if let known = knownCount, known.generation == generation, known.rules == rules, now < known.knownUntil {
            return known
        }
        let counter = try adopt("count") { (database) throws(LevelDBError) in
            let options = ReadOptions(fillCache: false, snapshot: held?.snapshot)
            let cursor = try database.cursor(options, prefix: [KeyKind.record])
            try cursor.seekToFirst()
            return StoreCursor(cursor)
        }
        defer { release(counter) }
        // Count 4096 records at a time, so that closing or reopening the store does not have to wait long.
        while try access("count", { (_) throws(LevelDBError) in try counter.count(4096, &records, now: now) }) {}
        guard counter.cursor != nil else {
            throw LarderError(
                .invalidated,
                "the count was interrupted several times, by evictions or by reopening after failed writes; count again",
                operation: "count",
                database: databaseName)
        }
        records.complete()
        remember(records)
        return records
    }
}

extension Snapshot {
    /// Returns the header of the record that LevelDB had for a key at the snapshot's instant; nil if there was none.
    /// Ignores entries in memory.
    func headerBelow(
        _ key: Key, _ purges: TagPurges?
    ) throws(LarderError) -> Result<RecordHeader, RecordHeader.Defect>? {
        try access("count") { (store, snapshot, _) throws(LarderError) in
            guard let snapshot else { return nil }
            return try store.header(of: key, purges, snapshot: snapshot)?.0
        } ?? nil
    }
}

extension StoreCursor {
    /// Counts at most `most` records.
    /// - Returns: whether there may be more.
    fileprivate func count(_ most: Int, _ records: inout CountedRecords, now: Int64) throws(LevelDBError) -> Bool {
        guard let cursor else { return false }
        for _ in 0..<most {
            guard cursor.isValid else { return false }
            try cursor.withValue { records.add($0, now: now) }
            try cursor.next()
        }
        return true
    }
}
