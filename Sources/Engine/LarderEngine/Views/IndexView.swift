import LarderLevelDB
import LarderPlatform

/// The indexes of a database for one query.
///
/// A candidate is a term and the key of an entry that may have this term. The query looks up the entry, and evaluates
/// its whole condition on it:
/// - An entry that the query's condition matches, from before the view was created until the query ends, is a
///   candidate for one of the terms that it has in that time. This also holds if its term changes meanwhile.
/// - A candidate's entry may be missing, or have other terms, because it was changed since, or because the hint is
///   stale. If its condition matches nevertheless, the query must return it: it may not be a candidate for its present
///   term. The same entry may then be a candidate twice. So a query over several terms keeps the keys that it has
///   returned, and a query in the order of an index compares the present term with the candidate's.
/// - Pass hints to ``reportStale(_:term:key:)`` if the entry is missing or has other terms, so that stale hints are
///   removed.
///
/// LevelDB cannot delete the files that a view reads, so close or release it soon. Used by one thread at a time.
package final class IndexView {
    /// An index that can be used.
    package struct ReadyIndex {
        package let index: DatabaseIndex
        package let extractor: any IndexExtractor
        /// The hints of entries that LevelDB did not have when the view was created.
        let runs: [HintRun]
    }

    /// The indexes that were ready when the view was created.
    package let indexes: [ReadyIndex]

    let database: Database
    let store: EpochStore
    private let held: StoreSnapshot
    /// ``EpochStore/writeGeneration`` before the snapshot was taken.
    fileprivate let generation: UInt64
    let mayBlock: Bool
    /// The cursor of LevelDB that earlier candidates have left.
    private var spare: HintCursor?
    private var isClosed = false

    init(
        _ database: Database, _ store: EpochStore, _ held: StoreSnapshot, _ generation: UInt64,
        _ indexes: [ReadyIndex], mayBlock: Bool
    ) {
        self.database = database
        self.mayBlock = mayBlock
        self.store = store
        self.held = held
        self.generation = generation
        self.indexes = indexes
    }

    deinit { close() }

    /// Releases the files. Later calls throw. Idempotent.
    package func close() {
        if isClosed { return }
        isClosed = true
        if let spare { store.release(spare.held) }
        spare = nil
        store.release(held)
    }

    /// Returns the candidates with the terms of a range, in the order of (term, key), each once.
    /// - Parameters:
    ///   - lower: the lowest term.
    ///   - upper: greater than every term of the range; nil for no limit. Pass ``ByteOrder/successor(ofPrefix:)`` to
    ///     include a term, or the terms with a beginning.
    ///   - backward: whether to begin with the greatest term and key.
    package func candidates(
        _ index: DatabaseIndex, from lower: [UInt8], upTo upper: [UInt8]?, backward: Bool = false
    ) throws(LarderError) -> IndexCandidates {
        let (isEmpty, snapshot) = held.state
        guard isEmpty || snapshot != nil else { throw gone() }
        let runs = indexes.first { $0.index.number == index.number }?.runs ?? []
        let below = if let spare { spare } else { try makeCursor(snapshot) }
        spare = nil
        return IndexCandidates(self, below, Hint.head(index.number), runs, lower, upper, backward)
    }

    private func makeCursor(_ snapshot: LarderLevelDB.Snapshot?) throws(LarderError) -> HintCursor {
        guard let snapshot else { return HintCursor(StoreCursor(nil)) }
        let options = ReadOptions(fillCache: true, snapshot: snapshot)
        return HintCursor(
            try store.adopt("query") { (database) throws(LevelDBError) in
                StoreCursor(try database.cursor(options, prefix: [KeyKind.hint]))
            })
    }

    /// Takes back the cursor of candidates.
    fileprivate func giveBack(_ cursor: HintCursor) {
        if isClosed || spare != nil { store.release(cursor.held) } else { spare = cursor }
    }

    /// Notes that the entry of a key does not have this term, so that the hint is removed if LevelDB's record does not
    /// have it either. Cheap; may ignore the report.
    package func reportStale(_ index: DatabaseIndex, term: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) {
        let areMany = database.indexing.stale.add(Hint.head(index.number) + term + key, termCount: term.count)
        if areMany { database.context.indexLoop.wake() }
    }

    private func gone() -> LarderError {
        store.endingError("query")
            ?? LarderError(
                .invalidated, "the query has ended: \(IndexCandidates.interruption)", operation: "query",
                database: database.name)
    }
}

/// A cursor over LevelDB's hints.
private final class HintCursor {
    let held: StoreCursor
    /// A key: the cursor is at the first hint that is not less. Nil if that is not known.
    var floor: [UInt8]?

    init(_ held: StoreCursor) { self.held = held }

    /// Moves to the first hint that is not less than a key. Nothing is read if the cursor is there, because there are no
    /// hints between an earlier key and this one.
    func seek(_ cursor: LarderLevelDB.Cursor, to key: [UInt8]) throws(LevelDBError) {
        let isThere = try floor.map { (floor) throws(LevelDBError) in
            if key.lexicographicallyPrecedes(floor) { return false }
            if !cursor.isValid { return true }
            return try cursor.withKey { current in key.withUnsafeBytes { ByteOrder.compare(current, $0) } >= 0 }
        }
        if isThere ?? false { return }
        floor = nil
        try cursor.seek(to: key)
        floor = key
    }
}

/// The candidates of a range of terms. Used by one thread at a time.
package final class IndexCandidates {
    /// A sorted sequence of hints: a run, or a part of LevelDB's hints, which is a run too.
    private struct Source {
        let run: HintRun
        /// The hints of the run that are in the range, and the next one.
        let places: Range<Int>
        var place: Int

        init(_ run: HintRun, _ places: Range<Int>, backward: Bool) {
            (self.run, self.places, place) = (run, places, backward ? places.upperBound - 1 : places.lowerBound)
        }
    }

    let view: IndexView
    private let below: HintCursor
    /// The beginning of the index's hints in LevelDB.
    private let head: [UInt8]
    /// The lowest key of the range in LevelDB, and the first key after it.
    private let start: [UInt8]
    private let end: [UInt8]
    private let backward: Bool
    private var store: EpochStore { view.store }
    /// The first is LevelDB's.
    private var sources: [Source] = []
    private var current: (run: HintRun, place: Int)?
    private var hasStarted = false
    /// Whether LevelDB may have more hints in the range.
    private var hasMore = true
    /// The number of hints that are read from LevelDB next.
    private var readCount = 16
    private static let readCountMax = 1024

    static let interruption = "it kept space that the disk limit needs, or the database was reopened; query again"

    fileprivate init(
        _ view: IndexView, _ below: HintCursor, _ head: [UInt8], _ runs: [HintRun], _ lower: [UInt8],
        _ upper: [UInt8]?, _ backward: Bool
    ) {
        self.view = view
        self.below = below
        self.head = head
        self.backward = backward
        start = head + lower
        end = upper.map { head + $0 } ?? ByteOrder.successor(ofPrefix: head) ?? []
        sources.append(Source(.empty, 0..<0, backward: false))
        for run in runs {
            let start = run.lowerBound(lower)
            let end = upper.map { run.lowerBound($0) } ?? run.count
            if start < end { sources.append(Source(run, start..<end, backward: backward)) }
        }
    }

    deinit { view.giveBack(below) }

    /// Moves to the next candidate; the first call moves to the first one.
    /// - Returns: false at the end.
    package func next() throws(LarderError) -> Bool {
        var best: Int?
        for index in sources.indices {
            guard try settle(index) else { continue }
            if let other = best, order(index, other) >= 0 { continue }
            best = index
        }
        guard let best else {
            current = nil
            return false
        }
        current = (sources[best].run, sources[best].place)
        // Pass over the same hint in all sources.
        for index in sources.indices where index != best && has(index) && order(index, best) == 0 { advance(index) }
        advance(best)
        return true
    }

    /// Passes the present candidate to `body`. The bytes are valid only during the call.
    package func withCandidate<Result>(
        _ body: (_ term: UnsafeRawBufferPointer, _ key: UnsafeRawBufferPointer) -> Result
    ) throws(LarderError) -> Result {
        guard let current else { throw LarderError(.invalidArgument, "there is no candidate", operation: "query") }
        return current.run.withHint(current.place, body)
    }

    private func has(_ index: Int) -> Bool { sources[index].places.contains(sources[index].place) }

    private func advance(_ index: Int) { sources[index].place += backward ? -1 : 1 }

    /// Compares the hints of two sources in the direction of the iteration.
    private func order(_ left: Int, _ right: Int) -> Int {
        let order = sources[left].run.withBytes(sources[left].place) { left in
            sources[right].run.withBytes(sources[right].place) { ByteOrder.compare(left, $0) }
        }
        return backward ? -order : order
    }

    /// Moves a source to its next hint in the range.
    /// - Returns: false at its end.
    private func settle(_ index: Int) throws(LarderError) -> Bool {
        while !has(index) {
            guard index == 0, hasMore else { return false }
            try readMore()
        }
        return true
    }

    // MARK: LevelDB

    /// Reads LevelDB's next hints into a run.
    private func readMore() throws(LarderError) {
        var maker = HintRun.Maker(reserving: readCount)
        try read(readCount) { maker.add($0, termCount: $1) }
        readCount = min(2 * readCount, Self.readCountMax)
        let count = maker.count
        sources[0] = Source(maker.run(isReversed: backward), 0..<count, backward: backward)
    }

    /// Passes LevelDB's next hints to `body`.
    /// - Parameter most: the number of hints.
    private func read(
        _ most: Int, _ body: (_ hint: UnsafeRawBufferPointer, _ termCount: Int) -> Void
    ) throws(LarderError) {
        if let error = store.endingError("query") { throw error }
        hasMore = false
        if below.held.isEmpty { return }
        let more: Bool? = try store.access("query") { (_) throws(LevelDBError) in
            guard let cursor = below.held.cursor else { return nil }
            if !hasStarted, try !begin(cursor) { return false }
            hasStarted = true
            var (isInRange, count) = (true, 0)
            let limit = backward ? start : end
            try cursor.walk(backward: backward) { key, value in
                guard count < most else { return false }
                let order = limit.withUnsafeBytes { ByteOrder.compare(key, $0) }
                isInRange = backward ? order >= 0 : order < 0
                guard isInRange else { return false }
                count += 1
                // Pass over a malformed hint, which a check reports.
                if let termCount = Hint.termCount(key, value) {
                    body(UnsafeRawBufferPointer(rebasing: key[Hint.headBytes...]), termCount)
                }
                return true
            }
            if count > 0 { below.floor = nil }
            return isInRange && cursor.isValid
        }
        guard let more else {
            throw LarderError(
                .invalidated, "the query has ended: \(Self.interruption)", operation: "query",
                database: store.databaseName)
        }
        hasMore = more
    }

    /// Moves to the beginning of the range.
    /// - Returns: false if the range is certainly empty.
    private func begin(_ cursor: LarderLevelDB.Cursor) throws(LevelDBError) -> Bool {
        let isBeyond = try store.lastHints.precede(start, head, view.generation) { () throws(LevelDBError) in
            below.floor = nil
            try cursor.seekBackward(to: ByteOrder.successor(ofPrefix: head) ?? [])
            guard cursor.isValid else { return [] }
            return try cursor.withKey { $0.starts(with: head) ? [UInt8]($0) : [] }
        }
        if isBeyond { return false }
        if backward {
            below.floor = nil
            try cursor.seekBackward(to: end)
            if cursor.isValid, try cursor.withKey({ $0.elementsEqual(end) }) { try cursor.previous() }
        } else {
            try below.seek(cursor, to: start)
        }
        return true
    }

    /// Passes next candidates to `body`: at most `most`, but perhaps fewer than there are.
    /// - Returns: false if there are no more candidates.
    func read(next most: Int, _ body: (_ hint: UnsafeRawBufferPointer, _ termCount: Int) -> Void) throws(LarderError)
        -> Bool
    {
        // Memory has no hints in the range.
        if sources.count == 1, !has(0) {
            if hasMore { try read(most, body) }
            return hasMore
        }
        guard try next(), let current else { return false }
        current.run.withHint(current.place) { term, _ in
            current.run.withBytes(current.place) { body($0, term.count) }
        }
        return true
    }
}

extension IndexCatalog {
    /// Creates a view of the indexes. May block, because it may have to find the terms of entries that were changed
    /// recently.
    /// - Parameter mayBlock: if false, the view and its candidates do not block; see ``withoutDisk(_:)``.
    /// - Returns: nil if the database has no files, and so no entries; or if the view would block.
    package func view(mayBlock: Bool = true) throws(LarderError) -> IndexView? {
        try ForkGuard.check("query")
        while true {
            let state = database.appliedState
            if !mayBlock, !state.isOpen { return nil }
            guard let store = try database.readableStore(state, "query") else { return nil }
            // The order matters. An entry that is dirty now has its hints in the runs. An entry that becomes clean
            // after this, or is clean now, has its hints in the snapshot, which is taken later: either those of the
            // record that it has now, or of a later one. An extractor that becomes known after this lacks hints.
            let open = indexing.open
            guard let runs = mayBlock ? fillHints() : fillHintsQuickly() else { return nil }
            // Whatever is written after this, and is in the snapshot nevertheless, has its hints in the runs.
            let generation = store.writeGeneration
            let usable = try readyIndexes(open.filter { state.indexes.contains($0.index) }, runs, in: store)
            let held = try Snapshot.hold(store)
            if database.appliedState.store === store {
                return IndexView(database, store, held, generation, usable, mayBlock: mayBlock)
            }
            store.release(held)
        }
    }

    private func fillHintsQuickly() -> [UInt64: [HintRun]]? {
        indexing.dirty.fillQuickly(database.shards, pinnedBytesMin: database.context.options.pinnedBytesMin) {
            indexing.open
        }
    }

    /// Lets an event loop run a query: LevelDB's calls on this thread throw meanwhile if they would have to read a file.
    /// After failures, the next queries do not try: one after the first failure, then up to 64.
    /// - Parameter body: runs the query; returns nil if that would block.
    package func withoutDisk<Result>(_ body: () -> Result?) -> Result? {
        let pause = indexing.loopPause.load(ordering: .relaxed)
        guard pause == 0 else {
            indexing.loopPause.store(pause - 1, ordering: .relaxed)
            return nil
        }
        let result = TableReads.refused(during: body)
        let next = indexing.nextLoopPause.load(ordering: .relaxed)
        if result == nil { indexing.loopPause.store(next, ordering: .relaxed) }
        indexing.nextLoopPause.store(result == nil ? min(64, 2 * next) : 1, ordering: .relaxed)
        return result
    }

    private func readyIndexes(
        _ indexes: [OpenIndex], _ runs: [UInt64: [HintRun]], in store: EpochStore
    ) throws(LarderError) -> [IndexView.ReadyIndex] {
        var usable: [IndexView.ReadyIndex] = []
        for open in indexes {
            guard let extractor = open.extractor, try indexing.progress(open.index.number, in: store) == .ready else {
                continue
            }
            usable.append(
                IndexView.ReadyIndex(index: open.index, extractor: extractor, runs: runs[open.index.number] ?? []))
        }
        return usable
    }

    /// Returns the state of each index.
    /// - Parameter counting: whether to count the hints; otherwise their numbers are those of the last count. Reads all
    ///   hints, unless LevelDB has not changed since the last count.
    package func list(counting: Bool) throws(LarderError) -> [IndexStatus] {
        try ForkGuard.check("index")
        let state = database.appliedState
        guard !state.indexes.isEmpty, let store = try database.readableStore(state, "index") else { return [] }
        let runs = counting ? fillHints(for: .count) : [:]
        var result: [IndexStatus] = []
        for open in indexing.open where database.appliedState.indexes.contains(open.index) {
            let number = open.index.number
            var count = indexing.count(number, in: store)
            if counting, count?.generation != store.writeGeneration {
                count = try HintCleaning.count(number, database, store)
            }
            let inMemory = (runs[number] ?? []).reduce(0) { $0 + $1.count }
            result.append(
                IndexStatus(
                    index: open.index, state: try status(open, in: store), hints: (count?.hints ?? 0) + inMemory,
                    stale: count.map { Int(Double($0.hints) * $0.staleShare) } ?? 0))
        }
        return result
    }

    package func countQuery(isScan: Bool, examined: Int) {
        let statistics = database.context.statistics
        statistics.queries.add()
        if isScan { statistics.queryScans.add() }
        statistics.queryExamined.add(examined)
    }

    private func status(_ open: OpenIndex, in store: EpochStore) throws(LarderError) -> IndexStatus.State {
        if open.extractor == nil { return .unreadable }
        switch try indexing.progress(open.index.number, in: store) {
        case .ready: return .ready
        case .building(let records, _):
            let total = store.knownCount?.total ?? 0
            return .building(percent: total == 0 ? 0 : min(99, Int(records) * 100 / total))
        }
    }
}
