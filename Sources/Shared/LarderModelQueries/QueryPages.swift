import LarderJSONCoding
import LarderQueries

/// Collects the result of a query from its pages, and evaluates the filters: the same for blocking and asynchronous
/// calls.
struct QueryPages<Model: Codable & SendableMetatype, Source: QuerySource> {
    enum Output {
        case rows, texts, keys, count
        case select([String])
        case groups(path: String, aggregates: [[UInt8]])

        var words: [[UInt8]] {
            switch self {
            case .rows, .texts: []
            case .keys: QueryWord.list("KEYS")
            case .count: QueryWord.list("COUNT")
            case .select(let paths): QueryWord.list("SELECT", "\(paths.count)") + paths.map(QueryWord.path)
            case .groups(let path, let aggregates): QueryWord.list("GROUP") + [QueryWord.path(path)] + aggregates
            }
        }
    }

    typealias Failure = Source.QueryFailure

    let query: ModelQuery<Model, Source>
    private let output: Output
    /// Whether the result is one page, with a cursor.
    private let isPage: Bool
    /// The words of the next page; nil if the result is complete.
    private(set) var next: [[UInt8]]?
    private(set) var result = QueryResult()
    /// The models of the rows, if those were requested.
    var models: [Model] = []

    private var cursor: [UInt8]?
    private var skipCount: Int
    private var leftCount: Int
    private var pageRows: Int
    /// Whether the page ends with the last row of the result.
    private var isLast = false
    /// What to return of each row, if the query has filters.
    private var projection = Query.Output.rows
    private var groups: QueryGroups?

    /// The number of rows of the first page and of the largest one. Large pages save repeated sorting.
    private static var rowsOfPages: (first: Int, most: Int) { (1_000, 16_000) }

    init(
        _ query: ModelQuery<Model, Source>, _ output: Output, after cursor: String? = nil, isPage: Bool = false
    ) throws(Failure) {
        (self.query, self.output, self.isPage) = (query, output, isPage)
        self.cursor = cursor.map { Array($0.utf8) }
        skipCount = cursor == nil ? query.skipCount : 0
        leftCount = query.limitCount ?? (isPage ? Query.rowsWithoutLimit : .max)
        pageRows = min(leftCount, Self.rowsOfPages.first)
        if isFiltered {
            let words = try query.words(output.words, skip: 0, limit: nil, after: nil)
            do throws(QueryError) { projection = try Query(words, allowsComputed: true).output } catch {
                throw query.runner.failure(.invalid(error.text))
            }
        }
        if case .groups(let path, let aggregates) = projection {
            groups = QueryGroups(path, aggregates)
            // Skip and limit count groups.
            (skipCount, leftCount, pageRows) = (0, .max, Self.rowsOfPages.first)
        }
        next = try words()
    }

    private var isFiltered: Bool { !query.filters.isEmpty }

    /// Whether the first reply is the whole result.
    private var isSingle: Bool {
        if isFiltered { return false }
        switch output {
        case .count, .groups: return true
        case .rows, .texts, .keys, .select: return isPage
        }
    }

    private func words() throws(Failure) -> [[UInt8]] {
        if isSingle { return try query.words(output.words, skip: skipCount, limit: query.limitCount, after: cursor) }
        let (output, skip) = isFiltered ? ([], 0) : (output.words, skipCount)
        return try query.words(output, skip: skip, limit: pageRows, after: cursor)
    }

    /// Adds the reply to ``next``.
    mutating func add(_ page: QueryResult) throws(Failure) {
        next = nil
        if isSingle {
            result = page
        } else if !isFiltered {
            result.rows += page.rows
            (skipCount, leftCount) = (0, leftCount == .max ? .max : leftCount - page.rows.count)
            try advance(page.cursor)
        } else {
            try addFiltered(page)
        }
        guard case .rows = output, !isFiltered else { return }
        for row in isSingle ? result.rows : page.rows { if let model = try model(of: row) { models.append(model) } }
    }

    /// Removes some rows from the result; nil if it has none.
    mutating func takeRows() -> [QueryResult.Row]? {
        guard !result.rows.isEmpty else { return nil }
        defer { result.rows.removeLast(min(256, result.rows.count)) }
        return result.rows.suffix(256)
    }

    /// Requests the next page, if the result is not complete.
    private mutating func advance(_ cursor: [UInt8]?) throws(Failure) {
        guard let cursor, leftCount > 0 else { return }
        self.cursor = cursor
        pageRows = min(pageRows * 4, Self.rowsOfPages.most)
        if !isFiltered { pageRows = min(pageRows, leftCount) }
        next = try words()
    }

    /// Returns nil if the entry is omitted because it cannot be decoded.
    private func model(of row: QueryResult.Row) throws(Failure) -> Model? {
        guard let text = row.values.first ?? nil else { return nil }
        do throws(Failure) { return try query.runner.decode(Model.self, text, row.key) } catch {
            if query.runner.omitsUndecodable || query.filters.contains(where: \.omitsUndecodable) { return nil }
            throw error
        }
    }

    // MARK: Filters

    private mutating func addFiltered(_ page: QueryResult) throws(Failure) {
        let before = self
        for (index, row) in page.rows.enumerated() {
            guard leftCount > 0, let model = try model(of: row), try isAllowed(model, row.key) else { continue }
            if skipCount > 0 {
                skipCount -= 1
                continue
            }
            try add(row, model)
            if leftCount < .max { leftCount -= 1 }
            if leftCount == 0, isPage, !isLast, index + 1 < page.rows.count {
                // Read the page again up to this row: the cursor of that page is the cursor of the result.
                self = before
                (pageRows, isLast) = (index + 1, true)
                next = try words()
                return
            }
        }
        if isLast || leftCount == 0 {
            result.cursor = page.cursor
        } else {
            try advance(page.cursor)
        }
        if next == nil, let groups {
            let rows = groups.sorted().dropFirst(query.skipCount)
            result.groups = Array(rows.prefix(query.limitCount ?? .max))
        }
    }

    private func isAllowed(_ model: Model, _ key: [UInt8]) throws(Failure) -> Bool {
        do {
            for filter in query.filters where !(try filter.allows(model)) { return false }
            return true
        } catch {
            throw query.runner.failure(.filter(key: key, error))
        }
    }

    private mutating func add(_ row: QueryResult.Row, _ model: Model) throws(Failure) {
        result.count += 1
        if case .count = projection { return }
        var values: [[UInt8]?] = []
        if case .texts = output { values = row.values } else if case .rows = projection { models.append(model) }
        let added = (row.values.first ?? nil).map { text in
            text.withUnsafeBytes { text in
                row.key.withUnsafeBytes { key in
                    Result { () throws(QueryError) in
                        guard let document = JSONDocument(text) else { return }
                        // Only paths of properties are used, so the times of the entry are not needed.
                        let facts = QueryFacts(key: key, stored: 0, expires: nil)
                        if case .select(let paths) = projection { values = paths.map { $0.json(document, facts) } }
                        try groups?.add(document, facts)
                    }
                }
            }
        }
        if case .failure(let error)? = added { throw query.runner.failure(.invalid(error.text)) }
        if groups == nil { result.rows.append(QueryResult.Row(key: row.key, values: values)) }
    }
}
