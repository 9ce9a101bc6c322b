import LarderLevelDB
import LarderPlatform
import Synchronization

/// A hint in LevelDB.
struct FoundHint {
    let key: [UInt8]
    let termCount: Int

    var entry: Key { Key(Array(key[(Hint.headBytes + termCount)...])) }
    var number: UInt64 { key.withUnsafeBytes { BigEndian.read($0, at: 1) } ?? 0 }
}

/// Removes the stale hints of one index, step by step, because a sample has shown that there are many.
struct HintCleaning {
    private let number: UInt64
    /// Where the next step begins.
    private var position: [UInt8]

    /// The share of stale hints above which an index is cleaned, and the share of new ones at which it is looked at.
    private static let shareMax = 1.0 / 3
    /// The same while nothing is written, when cleaning slows nothing down.
    private static let quietShareMax = 1.0 / 12
    private static let sampleCount = 64
    private static let hintsPerStep = 256

    /// Returns the cleaning of an index that has many stale hints; nil if there is none. Looks only if many hints were
    /// written, or records removed, since the last time.
    /// - Parameter isQuiet: whether nothing was to be done for a while.
    static func ifDue(_ database: Database, _ store: EpochStore, isQuiet: Bool) throws(LarderError) -> HintCleaning? {
        let (indexing, most) = (database.indexing, isQuiet ? quietShareMax : shareMax)
        let open = indexing.open.filter { $0.extractor != nil }
        let known = open.reduce(0) { $0 + (indexing.count($1.index.number, in: store)?.hints ?? 0) }
        let quietDue = max(256, Int(Double(known) * quietShareMax))
        let due = isQuiet ? quietDue : max(1024, Int(Double(known) * shareMax))
        guard !open.isEmpty, indexing.churn.load(ordering: .relaxed) >= due else { return nil }
        indexing.churn.store(0, ordering: .relaxed)
        var keptCount = 0
        defer { indexing.keptCount.store(keptCount, ordering: .relaxed) }
        var result: HintCleaning?
        for index in open {
            let number = index.index.number
            let count = try count(number, database, store)
            keptCount += Int(Double(count.hints) * (1 - count.staleShare))
            guard count.staleShare > most else {
                // Leave these for a quiet moment.
                if count.staleShare > quietShareMax { indexing.churn.max(quietDue, ordering: .relaxed) }
                continue
            }
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
        for open in database.indexing.open where open.extractor != nil { makers[open.index.number] = HintMaker([open]) }
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
    static func remove(_ hints: [FoundHint], _ database: Database, _ store: EpochStore) throws(LarderError) -> Int {
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
            var hints: [FoundHint] = []
            let next = try store.readHints(number, from: position, most: Self.hintsPerStep) { key, value in
                if let hint = Self.found(key, value) { hints.append(hint) }
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
