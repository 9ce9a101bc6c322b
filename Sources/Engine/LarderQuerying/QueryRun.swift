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
    /// Whether error texts name calls of the library instead of options of the daemon.
    private let isOfLibrary: Bool

    package init(isOfLibrary: Bool = false) { self.isOfLibrary = isOfLibrary }

    fileprivate func option(_ name: String) -> String { isOfLibrary ? "" : " (\(name))" }
    fileprivate var scanHint: String { isOfLibrary ? "call scan()" : "add SCAN" }
}

/// The reason why a query has no result.
package enum QueryFailure: Error {
    /// In words for the sender of the query.
    case refused(String)
    case engine(LarderError)
    /// The caller has cancelled the query.
    case cancelled
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

    private var document = JSONDocument()
    /// Whether the entry that was examined last is JSON.
    private var isJSON = false
    private var rows: QueryRows<[[UInt8]?]>
    private var rowBytes = 0
    private var groups: QueryGroups?
    private var fields: FieldReport
    /// Which entries were examined when the query ended.
    private var scope = FieldReport.Scope.some
    private var order: QueryOrder
    private var plan: IndexPlan?
    private var indexes: [(index: DatabaseIndex, definition: IndexDefinition)] = []
    /// The keys of the found entries, if an entry may be found twice.
    private var found: Set<[UInt8]> = []
    private var foundBytes = 0
    private var candidates = 0
    private var examined = 0
    private var documents = 0
    private var matches = 0
    private var until: Int64 = 0
    /// The number of tests in the condition, at least 1.
    private let testCount: Int
    /// The work since the time was checked last, in bytes of text that was tested.
    private var work = 0

    /// The work after which the time is checked, and that of an entry besides its text.
    private static let workMax = 1 << 20
    private static let entryWork = 4096
    /// The maximum size of the keys that a query with an index remembers, in bytes.
    private static let foundBytesMax = 256 << 20
    /// How often a query begins if rows expire while it runs.
    private static let attemptsMax = 3

    /// - Parameter explains: whether the result explains how the query was run.
    package init(
        _ query: Query, in database: Database, _ snapshot: Snapshot? = nil, _ limits: QueryLimits,
        explains: Bool = false, isCancelled: @escaping () -> Bool = { false }
    ) {
        (self.query, self.database, self.snapshot, self.limits) = (query, database, snapshot, limits)
        (self.explains, self.isCancelled) = (explains, isCancelled)
        order = query.rowOrder
        testCount = query.condition?.testCount ?? 1
        rows = QueryRows(order, capacity: 0)
        fields = FieldReport(query)
    }

    /// Runs the query. Begins again if the database is purged or reopened meanwhile.
    package mutating func result() throws(QueryFailure) -> QueryResult {
        until = MonotonicClock.milliseconds() + limits.milliseconds
        var attempts = 0
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

    private mutating func begin() {
        (order, plan, indexes, found, foundBytes) = (query.rowOrder, nil, [], [], 0)
        (rowBytes, candidates, examined, documents, matches) = (0, 0, 0, 0, 0)
        scope = .some
        if case .groups(let path, let aggregates) = query.output {
            groups = QueryGroups(path, aggregates, isDescending: query.order.parts.first?.isDescending ?? false)
        }
    }

    private mutating func once() throws(QueryFailure) -> QueryResult {
        let view = snapshot == nil ? try Self.engine { () throws(LarderError) in try database.indexes.view() } : nil
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
        if let view, let plan { try follow(plan, view) } else { try scan() }
        return result(of: database.now())
    }

    // MARK: Indexes

    private mutating func follow(_ plan: IndexPlan, _ view: IndexView) throws(QueryFailure) {
        for part in plan.parts {
            for range in part.ranges { try follow(range, part.index, view, nil) }
        }
        if let ordered = plan.ordered { try follow(ordered.range, ordered.index, view, ordered) }
    }

    /// Examines the candidates of a range.
    /// - Parameter ordered: the order of the candidates; nil if it is not that of the rows.
    private mutating func follow(
        _ range: TermRange, _ number: Int, _ view: IndexView, _ ordered: IndexPlan.Ordered?
    ) throws(QueryFailure) {
        let (index, definition) = indexes[number]
        let list = try Self.engine { () throws(LarderError) in
            try view.candidates(index, from: range.lower, upTo: range.end, backward: ordered?.isBackward ?? false)
        }
        while try Self.engine({ () throws(LarderError) in try list.next() }) {
            let (term, key) = try Self.engine { () throws(LarderError) in
                try list.withCandidate { ([UInt8]($0), [UInt8]($1)) }
            }
            candidates += 1
            try note(work: Self.entryWork)
            if found.contains(key) { continue }
            var isOver = false
            if let ordered, rows.isFull, let last = rows.last?.position {
                isOver = ordered.follows(last, term: term, key: key, definition)
            }
            switch try look(up: key, term, definition) {
            case .found(let isKept):
                // The next match would follow the last row of the result.
                if !isKept, isOver || query.output == .count { return }
                foundBytes += key.count + 64
                guard foundBytes <= Self.foundBytesMax else {
                    throw .refused("the query finds too many entries for one call; use a narrower condition, or LIMIT")
                }
                found.insert(key)
            case .other: break
            case .stale:
                term.withUnsafeBytes { term in
                    key.withUnsafeBytes { view.reportStale(index, term: term, key: $0) }
                }
            }
        }
    }

    /// What the entry of a candidate is.
    private enum Look {
        /// The entry matches. `isKept`: whether it does not follow the kept rows.
        case found(isKept: Bool)
        case other
        /// There is no entry, or it does not have the term of the candidate.
        case stale
    }

    private mutating func look(
        up key: [UInt8], _ term: [UInt8], _ definition: IndexDefinition
    ) throws(QueryFailure) -> Look {
        guard let record = try Self.engine({ () throws(LarderError) in try database.get(Key(key)) }) else {
            return .stale
        }
        examined += 1
        let (header, rules, before) = (record.header, database.rules, matches)
        let look = record.withPayload { payload in
            Result { () throws(QueryError) -> Look in
                let expires = rules.deadline(header)
                let isKept = try examine(key, payload, stored: header.storedAt, expires: expires)
                if matches > before { return .found(isKept: isKept) }
                return hasTerm(term, key, stored: header.storedAt, expires, definition) ? .other : .stale
            }
        }
        try note(work: record.withPayload { $0.count } * testCount)
        do throws(QueryError) { return try look.get() } catch { throw .refused(error.text) }
    }

    /// Whether the entry that was examined last has a term.
    private func hasTerm(
        _ term: [UInt8], _ key: [UInt8], stored: Int64, _ expires: Int64?, _ definition: IndexDefinition
    ) -> Bool {
        guard isJSON else { return false }
        var isFound = false
        key.withUnsafeBytes { key in
            IndexTerms.forEach(
                of: document, QueryFacts(key: key, stored: stored, expires: expires), definition
            ) { if $0 == term { isFound = true } }
        }
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
        let isOrdered = order.parts.isEmpty
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
        while try Self.engine({ () throws(LarderError) in try cursor.next() }) {
            let key = try Self.engine { () throws(LarderError) in Array(try cursor.key().bytes) }
            if let end = range.end, !key.lexicographicallyPrecedes(end) { return }
            examined += 1
            if examined > limits.scannedMax, !query.scans { throw .refused(tooManyEntries) }
            let rules = database.rules
            var byteCount = 0
            var isKept: Result<Bool, QueryError> = .success(true)
            try Self.engine { () throws(LarderError) in
                try cursor.withPayload { header, payload in
                    byteCount = payload.count
                    isKept = Result { () throws(QueryError) in
                        try examine(key, payload, stored: header.storedAt, expires: rules.deadline(header))
                    }
                }
            }
            do throws(QueryError) {
                if !(try isKept.get()), isOrdered { return }
            } catch {
                throw .refused(error.text)
            }
            try note(work: Self.entryWork + byteCount * testCount)
        }
        if isWhole { scope = .all }
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
            + (query.suggestedIndex.map { ": create an index, for example with \($0)" } ?? "") + scan
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
    private mutating func examine(
        _ key: [UInt8], _ payload: UnsafeRawBufferPointer, stored: Int64, expires: Int64?
    ) throws(QueryError) -> Bool {
        isJSON = document.load(payload)
        guard isJSON else { return true }
        documents += 1
        fields.examine(document)
        let outcome = key.withUnsafeBytes { keyBytes in
            Result { () throws(QueryError) in
                try add(key, QueryFacts(key: keyBytes, stored: stored, expires: expires), payload)
            }
        }
        return try outcome.get()
    }

    private mutating func add(
        _ key: [UInt8], _ facts: QueryFacts, _ payload: UnsafeRawBufferPointer
    ) throws(QueryError) -> Bool {
        guard query.condition?.matches(document, facts) ?? true else { return true }
        matches += 1
        switch query.output {
        case .count: return matches - query.skip < query.limit ?? .max
        case .groups:
            try groups?.add(document, facts)
            return true
        case .rows, .keys, .select: break
        }
        let position = QueryPosition(values: order.values(document, facts), key: key)
        if let last = query.cursor?.last, !order.precedes(last, position) { return true }
        guard rows.keeps(position) else { return false }
        let values: [[UInt8]?]
        switch query.output {
        case .rows: values = [[UInt8](payload)]
        case .select(let paths): values = paths.map { $0.json(document, facts) }
        default: values = []
        }
        rowBytes += Self.byteCount(key, values)
        if let removed = rows.add(position, values, expires: facts.expires) {
            rowBytes -= Self.byteCount(removed.position.key, removed.content)
        }
        guard rowBytes <= limits.rowBytesMax else {
            let limit = "\(limits.rowBytesMax) bytes\(limits.option("--max-reply"))"
            throw QueryError("the rows exceed \(limit): use LIMIT, KEYS or SELECT")
        }
        return true
    }

    private static func byteCount(_ key: [UInt8], _ values: [[UInt8]?]) -> Int {
        values.reduce(key.count + 64) { $0 + ($1?.count ?? 0) }
    }

    // MARK: Result

    private func result(of now: Int64) -> QueryResult {
        var result = QueryResult()
        let sorted = rows.sorted().dropFirst(query.skip)
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
        } else if plan == nil, fields.isEmpty, let index = query.suggestedIndex {
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
        if order.parts.isEmpty, plan == nil { return "the rows have the order of the keys, so nothing is sorted" }
        let text = order.parts.isEmpty ? "key" : "\(order.text) and key"
        return "the matches are sorted by \(text), and the first \(rows.count) are kept"
    }
}

/// Makes the extractors of indexes on JSON documents, for the options of the engine.
package struct DocumentIndexMaker: IndexMaker {
    package init() {}

    package func extractor(of definition: [UInt8]) -> (any IndexExtractor)? {
        IndexDefinition(bytes: definition).map { DocumentTerms(definition: $0) }
    }
}

/// Finds the terms of JSON documents. Entries that are not JSON have none.
private struct DocumentTerms: IndexExtractor {
    let definition: IndexDefinition

    func addTerms(of entry: IndexedEntry, to terms: inout TermList) {
        guard entry.key.starts(with: definition.prefix), let document = JSONDocument(entry.payload) else { return }
        // Indexes cannot refer to the deadline, which depends on the policy.
        let facts = QueryFacts(key: entry.key, stored: entry.header.storedAt, expires: nil)
        IndexTerms.forEach(of: document, facts, definition) { terms.add($0) }
    }
}
