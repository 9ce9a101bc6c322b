import LarderLevelDB
import LarderPlatform
import Synchronization

/// The background work on indexes: builds them, and removes hints that are no longer needed. Runs in short steps;
/// during a step that reads records and writes hints, no checkpoint writes to the same LevelDB.
///
/// A step may be interrupted by a failure or a crash at any point: hints that were written too early do no harm, and
/// ``IndexProgress`` is written only after everything before it is synced.
///
/// Thread-safe: `state` is locked during a round.
final class IndexWork: Sendable {
    private struct State {
        /// The index of each database whose hints are being cleaned.
        var cleaning: [ObjectIdentifier: HintCleaning] = [:]
        /// When the last round began, in milliseconds of ``MonotonicClock``.
        var roundStart: Int64 = .max
    }

    private let context: EngineContext
    private let databases: @Sendable () -> [Database]
    private let state = Locked(State())

    /// The number of records whose hints are written in one step.
    static let recordsPerStep = 512
    /// The size of the hints after which a step ends early: 1 MiB.
    private static let stepBytes = 1 << 20
    /// How often a step finds the hints of entries that were written, if there are many.
    private static let fillsPerStep = 16
    /// The number of records after which the progress is written.
    private static let recordsPerNote: UInt64 = 1 << 15
    /// The pause after which the indexes are looked at again, if nothing happens, in milliseconds.
    private static let pauseMilliseconds: Int64 = 60_000
    /// The pause while the building waits for the eviction, in milliseconds.
    private static let evictionMilliseconds: Int64 = 250
    /// Whether an index is not built further, because the disk limit leaves no space for its hints.
    private let waitsForSpace = Atomic<Bool>(false)

    init(_ context: EngineContext, _ databases: @escaping @Sendable () -> [Database]) {
        (self.context, self.databases) = (context, databases)
    }

    /// Starts the thread when there is work for it: a larder without indexes has none.
    func start() {
        context.indexLoop.start("larder-index", onDemand: true) { [self] in
            if round() { return 0 }
            return waitsForSpace.load(ordering: .relaxed) ? Self.evictionMilliseconds : Self.pauseMilliseconds
        }
    }

    func stop() { context.indexLoop.stop() }

    /// Wakes the thread if a database without indexes has hints of dropped ones. Called by the maintenance thread.
    func lookForDropped(_ databases: [Database]) {
        for database in databases where database.indexing.mayHaveDropped.load(ordering: .relaxed) {
            guard let store = database.durableState.store, store.isMade, !store.isSuspended, !store.isFrozen else {
                continue
            }
            if (try? store.hasHints()) ?? true {
                context.indexLoop.wake()
            } else {
                database.indexing.mayHaveDropped.store(false, ordering: .relaxed)
            }
        }
    }

    /// Runs one step for each database.
    /// - Returns: whether there is more to do now.
    func round() -> Bool {
        var more = false
        waitsForSpace.store(false, ordering: .relaxed)
        let now = MonotonicClock.milliseconds()
        let isQuiet = state.withLock { state in
            defer { state.roundStart = now }
            return state.roundStart <= now - Self.pauseMilliseconds
        }
        for database in databases() {
            do throws(LarderError) {
                if try step(database, isQuiet: isQuiet) { more = true }
            } catch {
                context.report(
                    .debug, "the work on the indexes of database '\(database.name)' stopped: \(error)",
                    database: database.name)
            }
        }
        return more
    }

    /// Runs one step.
    /// - Parameter isQuiet: whether the pause before this step was a whole one.
    /// - Returns: whether there is more to do now.
    func step(_ database: Database, isQuiet: Bool = false) throws(LarderError) -> Bool {
        let indexing = database.indexing
        for _ in 0..<Self.fillsPerStep where indexing.dirty.changed.areMany {
            database.indexes.fillHints(for: .background)
        }
        guard let store = database.durableState.store, store.isMade, !store.isSuspended, !store.isFrozen else {
            return indexing.dirty.changed.areMany
        }
        return try state.withLock { (state) throws(LarderError) in
            let id = ObjectIdentifier(database)
            try removeReported(database, store)
            if try build(database, store) { return true }
            if indexing.mayHaveDropped.load(ordering: .acquiring), try removeDropped(database, store) { return true }
            if state.cleaning[id] == nil {
                state.cleaning[id] = try HintCleaning.ifDue(database, store, isQuiet: isQuiet)
            }
            guard let done = try state.cleaning[id]?.step(database, store) else {
                return indexing.dirty.changed.areMany
            }
            if done { state.cleaning[id] = nil }
            return true
        }
    }

    // MARK: Building

    /// Builds a part of the first index that is not ready.
    /// - Returns: false if all indexes are ready, or there is no space for more hints.
    private func build(_ database: Database, _ store: EpochStore) throws(LarderError) -> Bool {
        guard try next(database, store) != nil else { return false }
        if isDiskFull(database) {
            // Continue when the eviction has made room.
            waitsForSpace.store(true, ordering: .relaxed)
            context.larder.disk.changed()
            return false
        }
        if store.knownCount == nil { _ = try store.countedRecords(database.rules, now: database.unnoticedNow()) }
        return try store.indexLock.withLock { () throws(LarderError) in
            // Look again: an index that is durable now is known to every checkpoint that begins after this.
            guard let (open, progress) = try next(database, store) else { return false }
            do throws(LarderError) {
                try build(open, from: progress, database, store)
            } catch {
                // What was written is uncertain: continue from what LevelDB has noted.
                database.indexing.note(nil, of: open.index.number, in: store)
                throw error
            }
            return true
        }
    }

    /// Whether the eviction has to free space first, because of a limit of the larder or of the database.
    private func isDiskFull(_ database: Database) -> Bool {
        let (disk, own) = (context.larder.disk, database.diskLimit)
        var limits: [EvictionLimit] = []
        if own > 0 { limits.append(EvictionLimit(asked: own, database: database, databases: [database], disk: disk)) }
        if let bytes = disk.limitBytes {
            limits.append(EvictionLimit(asked: bytes, database: nil, databases: databases(), disk: disk))
        }
        return limits.contains { $0.measure() > $0.marks.high }
    }

    private func next(_ database: Database, _ store: EpochStore) throws(LarderError) -> (OpenIndex, IndexProgress)? {
        let state = database.durableState
        guard state.store === store else { return nil }
        for open in database.indexing.open where open.extractor != nil && state.indexes.contains(open.index) {
            let progress = try database.indexing.progress(open.index.number, in: store)
            if progress != .ready { return (open, progress) }
        }
        return nil
    }

    /// Writes the hints of the next records. Called with `indexLock` held.
    private func build(
        _ open: OpenIndex, from progress: IndexProgress, _ database: Database, _ store: EpochStore
    ) throws(LarderError) {
        guard case .building(let before, let start) = progress else { return }
        var hints = HintMaker([open])
        let batch = LarderLevelDB.WriteBatch()
        var records = before
        var next: [UInt8]?
        try store.access("index") { (leveldb) throws(LevelDBError) in
            try leveldb.scan([KeyKind.record], from: start) { (cursor) throws(LevelDBError) in
                if records - before == Self.recordsPerStep || batch.byteCount >= Self.stepBytes {
                    next = cursor.key
                    return false
                }
                let key = cursor.key
                try cursor.withValue { record in
                    key.withUnsafeBytes { key in
                        hints.forEachHint(UnsafeRawBufferPointer(rebasing: key.dropFirst()), record) { _, hint, count in
                            batch.put(hint, Hint.value(termCount: count))
                        }
                    }
                }
                records += 1
                return true
            }
        }
        if !batch.isEmpty { try store.write(batch, sync: false) }
        let number = open.index.number
        guard let next else {
            try write(.ready, of: number, store)
            database.indexing.note(.ready, of: number, in: store)
            return database.report(.info, "the index '\(open.index.name)' is ready: \(records) entries were read")
        }
        let reached = IndexProgress.building(records: records, position: next)
        if records / Self.recordsPerNote != before / Self.recordsPerNote { try write(reached, of: number, store) }
        database.indexing.note(reached, of: number, in: store)
    }

    /// Writes the progress, after everything before it is synced: a machine failure must not preserve the progress and
    /// lose hints.
    private func write(_ progress: IndexProgress, of number: UInt64, _ store: EpochStore) throws(LarderError) {
        try LarderError.wrapping("index") { () throws(FileError) in try FileSystem.syncDirectory(store.path) }
        try store.noteSynced()
        let batch = LarderLevelDB.WriteBatch()
        batch.put(IndexProgress.key(number), progress.value)
        try store.write(batch, sync: true, changesEntries: false)
    }

    // MARK: Removing hints

    private func removeReported(_ database: Database, _ store: EpochStore) throws(LarderError) {
        let reported = database.indexing.stale.take()
        guard !reported.isEmpty else { return }
        try store.indexLock.withLock { () throws(LarderError) in
            _ = try HintCleaning.remove(reported.map { FoundHint(key: $0.key, termCount: $0.value) }, database, store)
        }
    }

    /// Removes some hints of indexes that were dropped.
    /// - Returns: whether there may be more.
    private func removeDropped(_ database: Database, _ store: EpochStore) throws(LarderError) -> Bool {
        try store.indexLock.withLock { () throws(LarderError) in
            // Numbers are never reused, and indexes that are being created or dropped are open. So no checkpoint writes
            // hints of the others any more.
            database.indexing.mayHaveDropped.store(false, ordering: .releasing)
            let known = Set(database.indexing.open.map(\.index.number))
            let batch = LarderLevelDB.WriteBatch()
            var isDone = true
            try store.access("index") { (leveldb) throws(LevelDBError) in
                try leveldb.scan([KeyKind.hint]) { (cursor) throws(LevelDBError) in
                    while cursor.isValid {
                        let number = try cursor.withKey { BigEndian.read($0, at: 1) }
                        guard let number, known.contains(number) else { break }
                        guard let after = ByteOrder.successor(ofPrefix: Hint.head(number)) else { return false }
                        try cursor.seek(to: after)
                    }
                    guard cursor.isValid else { return false }
                    batch.delete(cursor.key)
                    isDone = batch.count < 2 * Self.recordsPerStep
                    return isDone
                }
                guard isDone else { return }
                try leveldb.scan(IndexProgress.prefix) { cursor in
                    let number = cursor.key.withUnsafeBytes { IndexProgress.number($0) }
                    if let number, !known.contains(number) { batch.delete(cursor.key) }
                    return true
                }
            }
            store.noteDead(batch.byteCount)
            if !batch.isEmpty { try store.write(batch, sync: false, changesEntries: false) }
            if !isDone { database.indexing.mayHaveDropped.store(true, ordering: .releasing) }
            return !isDone
        }
    }
}

extension EpochStore {
    /// Whether LevelDB has any hint.
    fileprivate func hasHints() throws(LarderError) -> Bool {
        try access("index") { (database) throws(LevelDBError) in
            var found = false
            for prefix in [[KeyKind.hint], IndexProgress.prefix] {
                try database.scan(prefix) { _ in
                    found = true
                    return false
                }
            }
            return found
        }
    }
}
