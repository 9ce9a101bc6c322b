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

    private let database: Database
    private let store: EpochStore
    private let held: StoreSnapshot

    init(_ database: Database, _ store: EpochStore, _ held: StoreSnapshot, _ indexes: [ReadyIndex]) {
        self.database = database
        self.store = store
        self.held = held
        self.indexes = indexes
    }

    deinit { close() }

    /// Releases the files. Later calls throw. Idempotent.
    package func close() { store.release(held) }

    /// Returns the candidates with the terms of a range, in the order of (term, key), each once.
    /// - Parameters:
    ///   - lower: the lowest term.
    ///   - upper: greater than every term of the range; nil for no limit. Pass ``ByteOrder/successor(ofPrefix:)`` to
    ///     include a term, or the terms with a beginning.
    ///   - backward: whether to begin with the greatest term and key.
    ///   - position: the term and the key after which to begin, in the given direction: a position of an earlier view.
    package func candidates(
        _ index: DatabaseIndex, from lower: [UInt8], upTo upper: [UInt8]?, backward: Bool = false,
        after position: (term: [UInt8], key: [UInt8])? = nil
    ) throws(LarderError) -> IndexCandidates {
        let (isEmpty, snapshot) = held.state
        guard isEmpty || snapshot != nil else { throw gone() }
        let runs = indexes.first { $0.index == index }?.runs ?? []
        let range = HintRange(lower: lower, upper: upper, backward: backward, position: position)
        var below = StoreCursor(nil)
        if let snapshot {
            let options = ReadOptions(fillCache: true, snapshot: snapshot)
            below = try store.adopt("query") { (database) throws(LevelDBError) in
                StoreCursor(try database.cursor(options, prefix: Hint.head(index.number)))
            }
        }
        return IndexCandidates(store, below, Hint.head(index.number), runs, range)
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

/// A range of hints, and where to begin in it.
struct HintRange {
    let lower: [UInt8]
    let upper: [UInt8]?
    let backward: Bool
    let position: (term: [UInt8], key: [UInt8])?

    /// Where a forward iteration begins: at the first hint that is not less.
    var start: [UInt8] { position.map { $0.term + $0.key } ?? lower }

    /// Where a backward iteration begins: before the first hint that is not less; nil for the end.
    var end: [UInt8]? { position.map { $0.term + $0.key } ?? upper }

    /// Whether a term is before the range, in it, or after it, in the direction of the iteration.
    func compare(_ term: UnsafeRawBufferPointer) -> Int {
        let isLow = lower.withUnsafeBytes { ByteOrder.compare(term, $0) } < 0
        let isHigh = upper?.withUnsafeBytes { ByteOrder.compare(term, $0) >= 0 } ?? false
        if isLow { return backward ? 1 : -1 }
        return isHigh ? (backward ? -1 : 1) : 0
    }
}

/// The candidates of a range of terms. Used by one thread at a time.
package final class IndexCandidates {
    /// A sorted sequence of hints: a run, or a part of LevelDB's hints, which is a run too.
    private struct Source {
        var run: HintRun
        /// The next hint of the run.
        var place: Int
    }

    private let store: EpochStore
    private let below: StoreCursor
    private let head: [UInt8]
    private let range: HintRange
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

    init(_ store: EpochStore, _ below: StoreCursor, _ head: [UInt8], _ runs: [HintRun], _ range: HintRange) {
        self.store = store
        self.below = below
        self.head = head
        self.range = range
        sources.append(Source(run: HintRun.Maker().run(), place: 0))
        for run in runs { sources.append(Source(run: run, place: Self.start(run, range))) }
    }

    deinit { store.release(below) }

    private static func start(_ run: HintRun, _ range: HintRange) -> Int {
        if range.backward { return range.end.map { run.lowerBound($0) - 1 } ?? run.count - 1 }
        let place = run.lowerBound(range.start)
        let isAtPosition =
            range.position != nil && place < run.count && run.withBytes(place) { $0.elementsEqual(range.start) }
        return isAtPosition ? place + 1 : place
    }

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
        guard let current else {
            throw LarderError(.invalidArgument, "there is no candidate", operation: "query")
        }
        return current.run.withHint(current.place, body)
    }

    private func has(_ index: Int) -> Bool { (0..<sources[index].run.count).contains(sources[index].place) }

    private func advance(_ index: Int) { sources[index].place += range.backward ? -1 : 1 }

    /// Compares the hints of two sources in the direction of the iteration.
    private func order(_ left: Int, _ right: Int) -> Int {
        let order = sources[left].run.withBytes(sources[left].place) { left in
            sources[right].run.withBytes(sources[right].place) { ByteOrder.compare(left, $0) }
        }
        return range.backward ? -order : order
    }

    /// Moves a source to its next hint in the range.
    /// - Returns: false at its end.
    private func settle(_ index: Int) throws(LarderError) -> Bool {
        while true {
            while has(index) {
                let place = sources[index].run.withHint(sources[index].place) { term, _ in range.compare(term) }
                if place == 0 { return true }
                if place > 0 {
                    sources[index].place = range.backward ? -1 : sources[index].run.count
                    if index == 0 { hasMore = false }
                } else {
                    advance(index)
                }
            }
            guard index == 0, hasMore else { return false }
            try readMore()
        }
    }

    // MARK: LevelDB

    /// Reads LevelDB's next hints.
    private func readMore() throws(LarderError) {
        if let error = store.endingError("query") { throw error }
        hasMore = false
        if below.isEmpty { return }
        var maker = HintRun.Maker()
        let most = readCount
        readCount = min(2 * readCount, Self.readCountMax)
        let more: Bool? = try store.access("query") { (_) throws(LevelDBError) in
            guard let cursor = below.cursor else { return nil }
            if hasStarted { try move(cursor) } else { try begin(cursor) }
            hasStarted = true
            while cursor.isValid {
                let isInRange = try add(cursor, to: &maker)
                if !isInRange { return false }
                if maker.count == most { return true }
                try move(cursor)
            }
            return false
        }
        guard let more else {
            throw LarderError(
                .invalidated, "the query has ended: \(Self.interruption)", operation: "query",
                database: store.databaseName)
        }
        hasMore = more
        let count = maker.count
        let run = maker.run(isReversed: range.backward)
        sources[0] = Source(run: run, place: range.backward ? count - 1 : 0)
    }

    private func move(_ cursor: LarderLevelDB.Cursor) throws(LevelDBError) {
        if range.backward { try cursor.previous() } else { try cursor.next() }
    }

    private func begin(_ cursor: LarderLevelDB.Cursor) throws(LevelDBError) {
        guard range.backward else {
            let start = head + range.start
            try cursor.seek(to: start)
            if range.position != nil, cursor.isValid, try cursor.withKey({ $0.elementsEqual(start) }) {
                try cursor.next()
            }
            return
        }
        guard let end = range.end.map({ head + $0 }) else { return try cursor.seekToLast() }
        try cursor.seekBackward(to: end)
        if cursor.isValid, try cursor.withKey({ $0.elementsEqual(end) }) { try cursor.previous() }
    }

    /// Adds the hint at a cursor.
    /// - Returns: false if it is after the range.
    private func add(_ cursor: LarderLevelDB.Cursor, to maker: inout HintRun.Maker) throws(LevelDBError) -> Bool {
        let value = try cursor.withValue { [UInt8]($0.prefix(3)) }
        return try cursor.withKey { key in
            // Pass over a malformed hint, which a check reports.
            guard let termCount = value.withUnsafeBytes({ Hint.termCount(key, $0) }) else { return true }
            let hint = UnsafeRawBufferPointer(rebasing: key[Hint.headBytes...])
            if range.compare(UnsafeRawBufferPointer(rebasing: hint[..<termCount])) > 0 { return false }
            maker.add(hint, termCount: termCount)
            return true
        }
    }
}

extension IndexCatalog {
    /// Creates a view of the indexes. May block, because it may have to find the terms of entries that were changed
    /// recently.
    /// - Returns: nil if the database has no files, and so no entries.
    package func view() throws(LarderError) -> IndexView? {
        try ForkGuard.check("query")
        while true {
            let state = database.appliedState
            guard let store = try database.readableStore(state, "query") else { return nil }
            // The order matters. An entry that is dirty now has its hints in the runs. An entry that becomes clean
            // after this, or is clean now, has its hints in the snapshot, which is taken later: either those of the
            // record that it has now, or of a later one.
            let runs = fillHints()
            let usable = try readyIndexes(state.indexes, runs, in: store)
            let held = try Snapshot.hold(store)
            if database.appliedState.store === store { return IndexView(database, store, held, usable) }
            store.release(held)
        }
    }

    private func readyIndexes(
        _ indexes: [DatabaseIndex], _ runs: [UInt64: [HintRun]], in store: EpochStore
    ) throws(LarderError) -> [IndexView.ReadyIndex] {
        var usable: [IndexView.ReadyIndex] = []
        for open in indexing.open where indexes.contains(open.index) {
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
        let runs = counting ? fillHints() : [:]
        var result: [IndexStatus] = []
        for open in indexing.open where database.appliedState.indexes.contains(open.index) {
            let number = open.index.number
            if counting { try countHints(number, in: store) }
            let count = indexing.count(number, in: store)
            let inMemory = (runs[number] ?? []).reduce(0) { $0 + $1.count }
            result.append(
                IndexStatus(
                    index: open.index, state: try status(open, in: store), hints: (count?.hints ?? 0) + inMemory,
                    stale: count.map { Int(Double($0.hints) * $0.staleShare) } ?? 0))
        }
        return result
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

    private func countHints(_ number: UInt64, in store: EpochStore) throws(LarderError) {
        let generation = store.writeGeneration
        let known = indexing.count(number, in: store)
        if known?.generation == generation { return }
        var hints = 0
        try store.forEachHint(number) { _, _ in hints += 1 }
        indexing.note(
            DatabaseIndexes.HintCount(
                epoch: store.epoch, generation: generation, hints: hints, staleShare: known?.staleShare ?? 0),
            of: number)
    }
}
