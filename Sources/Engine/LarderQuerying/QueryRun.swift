import LarderEngine
import LarderJSONCoding
import LarderPlatform
import LarderQueries

/// The limits of a query. A query that reaches one throws, and never returns a part of its result.
package struct QueryLimits: Sendable {
    /// How many entries a query without an index may examine, unless it has SCAN.
    package var scannedMax = 100_000
    /// How long a query may take, in milliseconds.
    package var milliseconds: Int64 = 10_000
    /// The maximum size of the kept rows, in bytes.
    package var rowBytesMax = 512 << 20
    /// The maximum size of the rows of all live queries, in bytes.
    package var liveBytesMax = 256 << 20
    /// Whether error texts name calls of the library instead of options of the daemon.
    fileprivate let isOfLibrary: Bool

    package init(isOfLibrary: Bool = false) { self.isOfLibrary = isOfLibrary }

    fileprivate func option(_ name: String) -> String { isOfLibrary ? "" : " (\(name))" }
    fileprivate var scanHint: String { isOfLibrary ? "call scan()" : "add SCAN" }

    /// What makes an index for a query; nil if none can help.
    fileprivate func declaration(for query: Query) -> String? {
        query.suggestedIndex(inSwift: isOfLibrary).map { isOfLibrary ? "declare \($0) in `indexes:`" : $0 }
    }
}

/// The reason why a query has no result.
package enum QueryFailure: Error {
    /// In words for the sender of the query.
    case refused(String)
    case engine(LarderError)
    /// The caller has cancelled the query.
    case cancelled
    /// The query takes too long for an event loop, or needs the disk.
    case tooLong
}

/// Runs a query on the entries of a database that are cached and fresh.
///
/// Blocks: use it on a thread that may wait for the disk. Used by one thread at a time.
package struct QueryRun: ~Copyable {
    private let query: Query
    private let database: Database
    /// The snapshot to read; nil for the current entries.
    private let snapshot: Snapshot?
    private let limits: QueryLimits
    private let explains: Bool
    private let isCancelled: () -> Bool

    private let computed: ComputedValues
    /// Evaluates the condition; nil if there is none.
    private let condition: QueryCondition.Evaluator?
    private var document = JSONDocument()
    /// Whether the entry that was examined last is JSON.
    private var isJSON = false
    private var rows: QueryRows
    private var rowBytes = 0
    private var groups: QueryGroups?
    private var fields: FieldReport
    /// Which entries were examined when the query ended.
    private var scope = FieldReport.Scope.some
    private var order: QueryOrder
    private var plan: IndexPlan?
    private var indexes: [(index: DatabaseIndex, definition: IndexDefinition)] = []
    /// The keys of the found entries, if an entry may be found twice.
    private var found = FoundKeys()
    private var candidates = 0
    private var examined = 0
    private var documents = 0
    private var matches = 0
    private var until: Int64 = 0
    /// The number of tests in the condition and of selected paths, at least 1.
    private let testCount: Int
    /// Whether the query may wait for the disk and other threads.
    private var mayBlock = true
    /// The work since the time was checked last, in bytes of text that was tested.
    private var work = 0

    /// The number of candidates whose entries are looked up together.
    private static let batchCount = 64
    /// The least number of candidates for which the cells around a place are divided.
    private static let nearestCount = 16
    /// The number of tests in a condition up to which an event loop may run the query, and other short work need not
    /// be separated from it.
    package static let quickTestsMax = 16
    /// The number of ranges of an index that an event loop may read.
    private static let quickRangesMax = 64
    /// The work after which the time is checked, and that of an entry besides its text.
    private static let workMax = 1 << 20
    private static let entryWork = 4096
    /// The maximum size of the keys that a query with an index remembers, in bytes.
    private static let foundBytesMax = 256 << 20
    /// How often a query begins if rows expire while it runs.
    private static let attemptsMax = 3

    /// - Parameters:
    ///   - explains: whether the result explains how the query was run.
    ///   - computed: the values of all computed indexes in the order of the query.
    package init(
        _ query: Query, in database: Database, _ snapshot: Snapshot? = nil, _ limits: QueryLimits,
        explains: Bool = false, computed: ComputedValues = [:], isCancelled: @escaping () -> Bool = { false }
    ) {
        (self.query, self.database, self.snapshot, self.limits) = (query, database, snapshot, limits)
        (self.explains, self.computed, self.isCancelled) = (explains, computed, isCancelled)
        order = query.rowOrder
        condition = query.condition?.evaluator
        // Each selected path is looked up in the text.
        let pathCount = if case .select(let paths) = query.output { paths.count } else { 0 }
        testCount = max(1, (query.condition?.testCount ?? 0) + pathCount)
        rows = QueryRows(order, capacity: 0)
        fields = FieldReport()
    }

    /// Runs the query. Begins again if the database is purged or reopened meanwhile.
    package mutating func result() throws(QueryFailure) -> QueryResult {
        until = MonotonicClock.milliseconds() + limits.milliseconds
        var attempts = 0
        defer { count() }
        while true {
            begin()
            attempts += 1
            do throws(QueryFailure) {
                let result = try once()
                // If rows have expired, others may take their places.
                if result.rows.count < query.rowsMax, result.cursor != nil, attempts < Self.attemptsMax { continue }
                return result
            } catch {
                guard case .engine(let error) = error, snapshot == nil,
                    error.code == .purged || error.code == .invalidated
                else { throw error }
                try checkTime()
            }
        }
    }

    /// Runs the query for its rows with their positions.
    /// - Returns: the rows in order, and whether others follow.
    package mutating func positionedRows() throws(QueryFailure) -> (rows: [QueryRows.Row], isCut: Bool) {
        _ = try result()
        let now = database.now()
        return (rows.sorted().filter { row in row.expires.map { $0 > now } ?? true }, rows.isCut)
    }

    /// Runs the query on the thread of an event loop, if an index finds at most ``batchCount`` candidates, and everything
    /// is in memory.
    /// - Returns: nil if the query must run on another thread.
    package mutating func resultInMemory() -> QueryResult? {
        guard snapshot == nil, testCount <= Self.quickTestsMax else { return nil }
        mayBlock = false
        until = MonotonicClock.milliseconds() + limits.milliseconds
        begin()
        let result = database.indexes.withoutDisk { do throws(QueryFailure) { return try once() } catch { return nil } }
        if result != nil { count() }
        return result
    }

    private func count() { database.indexes.countQuery(isScan: plan == nil, examined: examined) }

    private mutating func begin() {
        (order, plan, indexes) = (query.rowOrder, nil, [])
        found.removeAll()
        (rowBytes, candidates, examined, documents, matches) = (0, 0, 0, 0, 0)
        scope = .some
        if case .groups(let path, let aggregates) = query.output {
            groups = QueryGroups(path, aggregates, isDescending: query.order.parts.first?.isDescending ?? false)
        }
    }

    private mutating func once() throws(QueryFailure) -> QueryResult {
        let view = try Self.engine { () throws(LarderError) in
            snapshot == nil ? try database.indexes.view(mayBlock: mayBlock) : nil
        }
        defer { view?.close() }
        for ready in view?.indexes ?? [] {
            // The extractor has the definition already parsed.
            guard let terms = ready.extractor as? DocumentTerms else { continue }
            indexes.append((ready.index, terms.definition))
        }
        fields = FieldReport(query, indexes.map(\.definition))
        plan = IndexPlanner(indexes.map(\.definition), query).plan(query)
        if let ordered = plan?.ordered { order = ordered.order }
        rows = QueryRows(order, capacity: query.skip + query.rowsMax)
        if !mayBlock, plan?.rangeCount ?? 0 > Self.quickRangesMax { throw .tooLong }
        if let view, let plan {
            try follow(plan, view)
        } else if !mayBlock {
            throw .tooLong
        } else {
            try scan()
        }
        return result(of: database.now())
    }

    // MARK: Indexes

    private mutating func follow(_ plan: IndexPlan, _ view: IndexView) throws(QueryFailure) {
        var batch = CandidateBatch()
        for part in plan.parts {
            for range in part.ranges { try follow(range, part.index, view, nil, &batch) }
            if let cells = part.nearest { try follow(cells, part.index, view, &batch) }
        }
        if let ordered = plan.ordered { try follow(ordered.range, ordered.index, view, ordered, &batch) }
    }

    /// Examines the candidates of a range.
    /// - Parameter ordered: the order of the candidates; nil if it is not that of the rows.
    private mutating func follow(
        _ range: TermRange, _ number: Int, _ view: IndexView, _ ordered: IndexPlan.Ordered?,
        _ batch: inout CandidateBatch
    ) throws(QueryFailure) {
        let list = try Self.engine { () throws(LarderError) in
            try view.candidates(
                indexes[number].index, from: range.lower, upTo: range.end, backward: ordered?.isBackward ?? false)
        }
        while true {
            // In order, the query ends at the first candidate that follows the rows.
            let left = ordered == nil ? .max : max(1, query.skip + query.rowsMax - rows.count + 1)
            let isMore = try Self.engine { () throws(LarderError) in
                try list.next(min(left, Self.batchCount), into: &batch)
            }
            if !isMore { return }
            if try examine(&batch, of: list, number, view, ordered) { return }
        }
    }

    /// Examines the candidates around a place, the nearest first, until no other row can be nearer than the kept ones.
    private mutating func follow(
        _ nearest: NearestCells, _ number: Int, _ view: IndexView, _ batch: inout CandidateBatch
    ) throws(QueryFailure) {
        var nearest = nearest
        var count = 0
        while true {
            var farthest: Double?
            if rows.isCut, case .number(let distance)? = rows.last?.position.values.first { farthest = distance.double }
            guard let (cells, range) = nearest.next(upTo: farthest) else { return }
            count += 1
            if !mayBlock, count > Self.quickRangesMax { throw .tooLong }
            try note(work: Self.entryWork)
            let list = try Self.engine { () throws(LarderError) in
                try view.candidates(indexes[number].index, from: range.lower, upTo: range.end)
            }
            // Small cells have few candidates that are too far away, but if many are needed, they take longer.
            let most = min(max(Self.nearestCount, candidates / Self.batchCount), Self.batchCount)
            while true {
                let isMore = try Self.engine { () throws(LarderError) in
                    try list.next(most, into: &batch) { nearest.contains($0) }
                }
                if !isMore || batch.count == most && nearest.divide(cells) { break }
                if try examine(&batch, of: list, number, view, nil) { return }
            }
        }
    }

    /// Looks up and examines the candidates of a batch.
    /// - Returns: whether no candidate after them is needed.
    private mutating func examine(
        _ batch: inout CandidateBatch, of list: IndexCandidates, _ number: Int, _ view: IndexView,
        _ ordered: IndexPlan.Ordered?
    ) throws(QueryFailure) -> Bool {
        if !mayBlock, candidates + batch.count > Self.batchCount { throw .tooLong }
        try Self.engine { () throws(LarderError) in try list.look(up: &batch) }
        var isOver = false
        try batch.withEach { (candidate) throws(QueryFailure) in
            isOver = try follow(candidate, number, view, ordered)
            return !isOver
        }
        return isOver
    }

    /// Examines a candidate.
    /// - Returns: whether no candidate after it is needed.
    private mutating func follow(
        _ candidate: CandidateBatch.Candidate, _ number: Int, _ view: IndexView, _ ordered: IndexPlan.Ordered?
    ) throws(QueryFailure) -> Bool {
        candidates += 1
        try note(work: Self.entryWork)
        if found.contains(candidate.key, hash: candidate.hash) { return false }
        var isOver = false
        if let ordered, rows.isFull, let last = rows.last?.position {
            isOver = ordered.follows(
                last, term: [UInt8](candidate.term), key: [UInt8](candidate.key), indexes[number].definition)
        }
        switch try look(at: candidate, number) {
        case .found(let isKept):
            // The next match would follow the last row of the result.
            if !isKept, isOver || query.output == .count { return true }
            found.insert(candidate.key, hash: candidate.hash)
            guard found.byteCount <= Self.foundBytesMax else {
                throw .refused("the query finds too many entries for one call; use a narrower condition, or LIMIT")
            }
        case .other: break
        case .stale: view.reportStale(indexes[number].index, term: candidate.term, key: candidate.key)
        }
        return false
    }

    /// What the entry of a candidate is.
    private enum Look {
        /// The entry matches. `isKept`: whether it does not follow the kept rows.
        case found(isKept: Bool)
        case other
        /// There is no entry, or it does not have the term of the candidate.
        case stale
    }

    private mutating func look(at candidate: CandidateBatch.Candidate, _ number: Int) throws(QueryFailure) -> Look {
        switch candidate.found {
        case .absent: return .stale
        case .entry(let entry): return try look(at: candidate.term, entry, number)
        case .unread: if !mayBlock { throw .tooLong }
        }
        let record = try Self.engine { () throws(LarderError) in try database.get(Key(candidate.key)) }
        guard let record else { return .stale }
        let deadline = database.rules.deadline(record.header)
        return try record.withPayload { payload in
            let entry = EntryView(
                key: candidate.key, storedAt: record.header.storedAt, deadline: deadline, payload: payload)
            return Result { () throws(QueryFailure) in try look(at: candidate.term, entry, number) }
        }.get()
    }

    private mutating func look(
        at term: UnsafeRawBufferPointer, _ entry: EntryView, _ number: Int
    ) throws(QueryFailure) -> Look {
        let (facts, before) = (QueryFacts(entry), matches)
        let isKept = try examine(facts, entry.payload)
        if matches > before { return .found(isKept: isKept) }
        let definition = indexes[number].definition
        // Whether an entry has the term of a computed index costs decoding it.
        return definition.kind == .computed || hasTerm(term, facts, definition) ? .other : .stale
    }

    /// Whether the entry that was examined last has a term.
    private func hasTerm(_ term: UnsafeRawBufferPointer, _ facts: QueryFacts, _ definition: IndexDefinition) -> Bool {
        guard isJSON else { return false }
        var isFound = false
        IndexTerms.forEach(of: document, facts, definition) { if term.elementsEqual($0) { isFound = true } }
        return isFound
    }

    // MARK: Scan

    private static func engine<Result>(_ body: () throws(LarderError) -> Result) throws(QueryFailure) -> Result {
        do throws(LarderError) { return try body() } catch { throw .engine(error) }
    }

    /// Examines entries in the order of their keys.
    private mutating func scan() throws(QueryFailure) {
        let range = query.keyRange
        var options = EnumerationOptions(prefix: range.prefix, start: range.start)
        let isOrdered = order.isOfKeys
        if isOrdered, let last = query.cursor?.last.key {
            // The smallest key after the last one.
            let next = last + [0]
            if options.start?.lexicographicallyPrecedes(next) ?? !next.lexicographicallyPrecedes(range.prefix) {
                options.start = next
            }
        }
        let cursor = try Self.engine { () throws(LarderError) in
            if let snapshot { return try snapshot.cursor(options) }
            return try database.cursor(options)
        }
        guard let cursor else { return }
        defer { cursor.close() }
        let isWhole = options.prefix.isEmpty && options.start == nil && range.end == nil
        // The library evaluates conditions on a computed index, so all pages together examine all entries. The first page
        // finds out whether these are too many.
        let isFirstOfAll = query.cursor == nil && query.paths.contains { $0.root == .computed }
        let endsEarly = isOrdered && (query.scans || !isFirstOfAll)
        var end = ScanEnd.none
        try Self.engine { () throws(LarderError) in
            try cursor.readAll { entry in
                end = scan(entry, upTo: range.end, endsEarly: endsEarly)
                if case .none = end { return true }
                return false
            }
        }
        switch end {
        case .none: if isWhole { scope = .all }
        case .complete: break
        case .tooMany: throw .refused(tooManyEntries)
        case .failed(let failure): throw failure
        }
    }

    /// Why a scan has ended before the last entry.
    private enum ScanEnd {
        case none, complete, tooMany
        case failed(QueryFailure)
    }

    /// Examines the next entry of a scan.
    private mutating func scan(_ entry: EntryView, upTo end: [UInt8]?, endsEarly: Bool) -> ScanEnd {
        if let end, end.withUnsafeBytes({ ByteOrder.compare(entry.key, $0) }) >= 0 { return .complete }
        if examined >= limits.scannedMax, !query.scans { return .tooMany }
        do throws(QueryFailure) {
            if try !examine(QueryFacts(entry), entry.payload), endsEarly { return .complete }
            try note(work: Self.entryWork)
            return .none
        } catch {
            return .failed(error)
        }
    }

    private var tooManyEntries: String {
        let scan = "; or \(limits.scanHint) to examine all entries"
        let limit = "\(limits.scannedMax) entries\(limits.option("--query-scan"))"
        if snapshot != nil {
            return
                "queries in a snapshot use no index, and the database has more than \(limit): close the snapshot\(scan)"
        }
        for status in (try? database.indexes.list(counting: false)) ?? [] {
            guard case .building(let percent) = status.state,
                let definition = IndexDefinition(bytes: status.index.definition),
                IndexPlanner([definition], query).plan(query) != nil
            else { continue }
            return "the index \(status.index.name) is still being built (\(percent) %), and the database has more than "
                + "\(limit): try again later\(scan)"
        }
        return
            "no index supports the query, and the database has more than \(limit)"
            + (limits.declaration(for: query).map {
                ": \(limits.isOfLibrary ? "" : "create an index, for example with ")\($0)\(scan)"
            }
                ?? ": \(limits.scanHint) to examine all entries")
    }

    private mutating func note(work more: Int) throws(QueryFailure) {
        work += more
        guard work >= Self.workMax else { return }
        work = 0
        try checkTime()
    }

    private func checkTime() throws(QueryFailure) {
        if isCancelled() { throw .cancelled }
        if MonotonicClock.milliseconds() > until {
            throw .refused(
                "the query was stopped after \(limits.milliseconds) ms\(limits.option("--query-time-limit")) and "
                    + "\(examined) entries")
        }
    }

    // MARK: Entries

    /// Evaluates the condition on an entry, and adds it to the result.
    /// - Returns: false if the entry follows the kept rows.
    private mutating func examine(_ facts: QueryFacts, _ payload: UnsafeRawBufferPointer) throws(QueryFailure) -> Bool {
        examined += 1
        let isKept: Bool
        do throws(QueryError) { isKept = try add(facts, payload) } catch { throw .refused(error.text) }
        try note(work: payload.count * testCount)
        return isKept
    }

    private mutating func add(_ facts: QueryFacts, _ payload: UnsafeRawBufferPointer) throws(QueryError) -> Bool {
        isJSON = document.load(payload)
        guard isJSON else { return true }
        documents += 1
        fields.examine(document)
        if let condition, !condition(document, facts) { return true }
        var values: [QueryValue]?
        if !computed.isEmpty {
            values = order.values(document, facts, payload, computed)
            if values == nil { return true }
        }
        matches += 1
        switch query.output {
        case .count: return matches - query.skip < query.limit ?? .max
        case .groups:
            try groups?.add(document, facts)
            return true
        case .rows, .keys, .select: break
        }
        // Most rows are left out before they are made. Such a row is not of an earlier page, because the kept ones are not.
        if values == nil, rows.leavesOut(document, facts) { return false }
        let key = [UInt8](facts.key)
        let position = QueryPosition(values: values ?? order.values(document, facts), key: key)
        if let last = query.cursor?.last, !order.precedes(last, position) { return true }
        guard rows.keeps(position) else { return false }
        let content: [[UInt8]?]
        switch query.output {
        case .rows: content = [[UInt8](payload)]
        case .select(let paths): content = query.values(of: paths, document, facts)
        default: content = []
        }
        rowBytes += Self.byteCount(key, content)
        if let removed = rows.add(position, content, expires: facts.expires) {
            rowBytes -= Self.byteCount(removed.position.key, removed.content)
        }
        guard rowBytes <= limits.rowBytesMax else {
            let limit = "\(limits.rowBytesMax) bytes\(limits.option("--max-reply"))"
            throw QueryError("the rows exceed \(limit): use LIMIT, KEYS or SELECT")
        }
        return true
    }

    private static func byteCount(_ key: [UInt8], _ values: [[UInt8]?]) -> Int {
        values.reduce(key.count + 64) { $0 + 48 + ($1?.count ?? 0) }
    }

    // MARK: Result

    private func result(of now: Int64) -> QueryResult {
        var result = QueryResult()
        let sorted = rows.sorted().dropFirst(query.skip)
        result.rows.reserveCapacity(sorted.count)
        // Entries that have expired since they were examined are not returned.
        for row in sorted where row.expires.map({ $0 > now }) ?? true {
            result.rows.append(QueryResult.Row(key: row.position.key, values: row.content))
        }
        if rows.isCut, let last = sorted.last {
            result.cursor = QueryCursor(order: order, last: last.position).text(of: query)
        }
        result.count = min(max(0, matches - query.skip), query.limit ?? .max)
        let groups = self.groups?.sorted() ?? []
        result.groups = Array(groups.dropFirst(query.skip).prefix(query.limit ?? .max))
        let sentences = fields.sentences(of: scope)
        if scope == .all { result.warnings = sentences }
        if explains { result.explanation = explanation(groups: groups.count, fields: sentences) }
        return result
    }

    private func explanation(groups: Int, fields: [String]) -> [String] {
        var lines: [String] = []
        if let plan {
            for index in plan.indexes {
                lines.append("the index \(indexes[index].index.name) is used (\(indexes[index].definition.text))")
            }
            lines.append("\(candidates) candidates, \(examined) entries examined; \(matches) match")
        } else {
            lines.append(scanExplanation)
            lines.append("\(examined) entries examined, \(documents) of them JSON; \(matches) match")
        }
        switch query.output {
        case .count: break
        case .groups: lines.append("\(groups) groups")
        default: lines.append(orderExplanation)
        }
        if snapshot != nil {
            lines.append("queries in a snapshot use no index")
        } else if plan == nil, fields.isEmpty, let index = limits.declaration(for: query) {
            lines.append("an index would help: \(index)")
        }
        return lines + fields
    }

    private var scanExplanation: String {
        let range = query.keyRange
        if !range.prefix.isEmpty {
            let prefix = String(decoding: range.prefix, as: UTF8.self)
            return "no index is used: the entries whose keys begin with '\(prefix)' are scanned"
        }
        let isWhole = range.start == nil && range.end == nil
        return "no index is used: the entries\(isWhole ? "" : " of a range of keys") are scanned"
    }

    private var orderExplanation: String {
        if let ordered = plan?.ordered {
            return ordered.order.parts.isEmpty
                ? "the rows have the order of the keys" : "the rows have the order of the index: \(ordered.order.text)"
        }
        if order.isOfKeys, plan == nil { return "the rows have the order of the keys, so nothing is sorted" }
        let text = order.parts.isEmpty ? "key" : "\(order.text) and key"
        return "the matches are sorted by \(text), and the first \(rows.count) are kept"
    }
}

extension QueryFacts {
    fileprivate init(_ entry: EntryView) { self.init(key: entry.key, stored: entry.storedAt, expires: entry.deadline) }
}
