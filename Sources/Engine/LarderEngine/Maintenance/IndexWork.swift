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
        self.context = context
        self.databases = databases
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
        for database in databases() {
            do throws(LarderError) {
                if try step(database) { more = true }
            } catch {
                context.report(
                    .debug, "the work on the indexes of database '\(database.name)' stopped: \(error)",
                    database: database.name)
            }
        }
        return more
    }

    /// Runs one step.
    /// - Returns: whether there is more to do now.
    func step(_ database: Database) throws(LarderError) -> Bool {
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
            if state.cleaning[id] == nil { state.cleaning[id] = try HintCleaning.ifDue(database, store) }
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
        if own > 0 {
            limits.append(EvictionLimit(asked: own, database: database, databases: [database], disk: disk))
        }
        if let bytes = disk.limitBytes {
            limits.append(EvictionLimit(asked: bytes, database: nil, databases: databases(), disk: disk))
        }
        return limits.contains { $0.measure() > $0.marks.high }
    }

    private func next(
        _ database: Database, _ store: EpochStore
    ) throws(LarderError) -> (OpenIndex, IndexProgress)? {
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

/// A hint in LevelDB.
struct FoundHint {
    let key: [UInt8]
    let termCount: Int

    /// The key of the entry.
    var entry: Key { Key(Array(key[(Hint.headBytes + termCount)...])) }
    var number: UInt64 { key.withUnsafeBytes { BigEndian.read($0, at: 1) } ?? 0 }
}

/// Removes the stale hints of one index, step by step, because a sample has shown that there are many.
struct HintCleaning {
    private let number: UInt64
    /// Where the next step begins.
    private var position: [UInt8]

    /// The share of stale hints above which an index is cleaned.
    private static let staleShareMax = 1.0 / 3
    private static let sampleCount = 64
    private static let hintsPerStep = 256

    /// Returns the cleaning of an index that has many stale hints; nil if there is none. Looks only if many hints were
    /// written, or records removed, since the last time.
    static func ifDue(_ database: Database, _ store: EpochStore) throws(LarderError) -> HintCleaning? {
        let indexing = database.indexing
        let open = indexing.open.filter { $0.extractor != nil }
        let known = open.reduce(0) { $0 + (indexing.count($1.index.number, in: store)?.hints ?? 0) }
        guard !open.isEmpty, indexing.churn.load(ordering: .relaxed) >= max(1024, known / 3) else { return nil }
        indexing.churn.store(0, ordering: .relaxed)
        var keptCount = 0
        defer { indexing.keptCount.store(keptCount, ordering: .relaxed) }
        var result: HintCleaning?
        for index in open {
            let number = index.index.number
            let count = try count(number, database, store)
            keptCount += Int(Double(count.hints) * (1 - count.staleShare))
            guard count.staleShare > staleShareMax else { continue }
            // One at a time: the next call looks again.
            if result != nil { indexing.churn.store(.max / 2, ordering: .relaxed) }
            result = result ?? HintCleaning(number: number, position: Hint.head(number))
        }
        return result
    }

    /// Counts the hints of an index, and estimates the share of stale ones.
    static func count(
        _ number: UInt64, _ database: Database, _ store: EpochStore
    ) throws(LarderError) -> DatabaseIndexes.HintCount {
        let generation = store.writeGeneration
        let (count, sample) = try sample(number, store)
        let stale = try areStale(sample, database, store).count(where: \.self)
        let found = DatabaseIndexes.HintCount(
            epoch: store.epoch, generation: generation, hints: count,
            staleShare: Double(stale) / Double(max(1, sample.count)))
        database.indexing.note(found, of: number)
        return found
    }

    /// Counts the hints of an index, and chooses some of them at random.
    private static func sample(
        _ number: UInt64, _ store: EpochStore
    ) throws(LarderError) -> (count: Int, sample: [FoundHint]) {
        var (count, sample) = (0, [FoundHint]())
        var random = SplitMix()
        try store.forEachHint(number) { key, value in
            count += 1
            let place = sample.count < sampleCount ? sample.count : Int.random(in: 0..<count, using: &random)
            guard place < sampleCount, let hint = found(key, value) else { return }
            if place == sample.count { sample.append(hint) } else { sample[place] = hint }
        }
        return (count, sample)
    }

    private static func found(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> FoundHint? {
        Hint.termCount(key, value).map { FoundHint(key: [UInt8](key), termCount: $0) }
    }

    /// Returns for each hint whether the record in LevelDB lacks its term.
    private static func areStale(
        _ hints: [FoundHint], _ database: Database, _ store: EpochStore
    ) throws(LarderError) -> [Bool] {
        var makers: [UInt64: HintMaker] = [:]
        for open in database.indexing.open where open.extractor != nil {
            makers[open.index.number] = HintMaker([open])
        }
        var areStale = hints.map { _ in false }
        // Read records that are near each other together.
        let keys = hints.map(\.entry)
        let places = hints.indices.sorted { keys[$0].stored.lexicographicallyPrecedes(keys[$1].stored) }
        for place in places {
            let (hint, key) = (hints[place], keys[place])
            // Without an extractor it is unknown; the hints of dropped indexes are removed elsewhere.
            guard var maker = makers[hint.number] else { continue }
            guard let record = try store.get(key, fillCache: false) else {
                areStale[place] = true
                continue
            }
            // Keep the hints of a record that cannot be read: a later version may have written it.
            guard record.withUnsafeBytes({ (try? RecordHeader(parsing: $0, nil)) != nil }) else { continue }
            var isFound = false
            key.withBytes { bytes in
                record.withUnsafeBytes {
                    maker.forEachHint(bytes, $0) { _, term, _ in isFound = isFound || term == hint.key }
                }
            }
            areStale[place] = !isFound
            makers[hint.number] = maker
        }
        return areStale
    }

    /// Removes those hints that are stale. Called with `indexLock` held: a checkpoint might write a hint again.
    static func remove(
        _ hints: [FoundHint], _ database: Database, _ store: EpochStore
    ) throws(LarderError) -> Int {
        let batch = LarderLevelDB.WriteBatch()
        for (hint, isStale) in zip(hints, try areStale(hints, database, store)) where isStale {
            batch.delete(hint.key)
            database.indexing.noteRemoval(from: hint.number)
        }
        if batch.isEmpty { return 0 }
        store.noteDead(batch.byteCount)
        try store.write(batch, sync: false, changesEntries: false)
        return batch.count
    }

    /// Runs one step.
    /// - Returns: whether it was the last one.
    mutating func step(_ database: Database, _ store: EpochStore) throws(LarderError) -> Bool {
        let next = try store.indexLock.withLock { () throws(LarderError) -> [UInt8]? in
            var (hints, next) = ([FoundHint](), [UInt8]?.none)
            try store.access("index") { (leveldb) throws(LevelDBError) in
                try leveldb.scan(Hint.head(number), from: position) { cursor in
                    guard hints.count < Self.hintsPerStep else {
                        next = cursor.key
                        return false
                    }
                    let (key, value) = (cursor.key, cursor.value)
                    if let hint = key.withUnsafeBytes({ key in value.withUnsafeBytes { Self.found(key, $0) } }) {
                        hints.append(hint)
                    }
                    return true
                }
            }
            _ = try Self.remove(hints, database, store)
            return next
        }
        position = next ?? []
        if next == nil, var count = database.indexing.count(number, in: store) {
            count.staleShare = 0
            database.indexing.note(count, of: number)
        }
        return next == nil
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
