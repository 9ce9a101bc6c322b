import LarderJSONCoding
import LarderModelCoding
import LarderQueries

/// A query of models: the fresh entries of a database that are JSON and match its conditions. It finds what is cached,
/// not what exists.
///
/// ```swift
/// let cheap = try await books.query(Book.self).where(\.author, "Bo").sorted(by: \.price).limit(10).values()
/// ```
/// A query is a value: each call returns a query with one more condition, and nothing is read before `values()`,
/// `keys()`, `count()`, `page(after:)`, `explain()` or the rows of a group or selection. These calls also throw
/// the errors of the earlier ones.
///
/// - A property is found by its name. If `CodingKeys`, or the encoder's strategy, store it under another name, pass
///   that name: `where("ISBN", "1")`, `sorted(by: \.isbn, at: "ISBN")`. A predicate or selection cannot use such a
///   property. The first query of a property reads one more entry, and throws if its field has another name.
/// - Values are encoded as the models are, and compared as JSON: numbers by their value (with a fraction, as doubles), text by its bytes. A date or
///   an enumeration equals what is encoded in the same way.
/// - Entries of other types must not match: they cannot be decoded. Give each type a key prefix (``where(keyPrefix:)``)
///   or a database.
/// - A query uses the declared indexes (``Index``), and examines all entries otherwise. See `explain()`.
///
/// Thread-safe: an immutable value.
public struct ModelQuery<Model: Codable & SendableMetatype, Source: QuerySource>: Sendable {
    /// A condition that is evaluated on decoded models.
    struct Filter: Sendable {
        /// What is evaluated, for `explain()`.
        let note: String
        /// Whether an entry that cannot be decoded is omitted.
        var omitsUndecodable = false
        let allows: @Sendable (Model) throws -> Bool
    }

    var runner: QueryRunner<Source.QueryFailure>
    private var conditions: [ConditionWords] = []
    private(set) var filters: [Filter] = []
    private(set) var inclusions: [Inclusion<Model>] = []
    /// The words after SORT.
    private var order: [[UInt8]] = []
    private(set) var skipCount = 0
    private(set) var limitCount: Int?
    private var scans = false
    var keyPrefix: [UInt8] = []
    /// The properties that are read by their own names.
    private var checks: [PropertyChecks.Check] = []
    /// The first error of the calls.
    private var problem: String?

    package init(_ runner: QueryRunner<Source.QueryFailure>) { self.runner = runner }

    /// Appends what `body` does, unless an earlier call was impossible.
    func adding(_ body: (inout Self) throws(ImpossibleQuery) -> Void) -> Self {
        guard problem == nil else { return self }
        var query = self
        do throws(ImpossibleQuery) { try body(&query) } catch { query.problem = error.message }
        return query
    }

    mutating func add(_ condition: ConditionWords) { conditions.append(condition) }
    mutating func add(_ filter: Filter) { filters.append(filter) }
    mutating func add(_ check: PropertyChecks.Check?) { if let check { checks.append(check) } }
    mutating func add(_ inclusion: Inclusion<Model>) { inclusions.append(inclusion) }

    mutating func sort(by path: String, _ direction: Direction) {
        order += [QueryWord.path(path)] + (direction == .reverse ? QueryWord.list("DESC") : [])
    }

    // MARK: Rows

    /// What is known of an entry apart from its model.
    public enum EntryFact: String, Sendable {
        /// The key, by its bytes.
        case key = "@key"
        /// When the entry was stored.
        case stored = "@stored"
        /// When the entry expires. Entries that do not expire come first.
        case expires = "@expires"
    }

    /// The direction of an order.
    public enum Direction: Sendable {
        /// The smallest value first.
        case forward
        /// The largest value first.
        case reverse
    }

    /// Sorts the rows by a property; after earlier calls, rows that are equal so far. Nil comes first. Arrays are
    /// sorted by their smallest element, or the largest one in reverse. Otherwise equal rows have the order of their
    /// keys. Costs nothing if an index has this order; otherwise all matching entries are read.
    public func sorted(
        by property: PartialKeyPath<Model>, _ direction: Direction = .forward, at place: String? = nil
    ) -> Self {
        adding { (query) throws(ImpossibleQuery) in
            query.sort(by: try query.path(property, place), direction)
        }
    }

    /// Like `sorted(by:_:at:)`, by the entry's key or its times.
    public func sorted(by fact: EntryFact, _ direction: Direction = .forward) -> Self {
        adding { $0.sort(by: fact.rawValue, direction) }
    }

    /// Omits the first rows, at most 10,000. For later pages use `page(after:)`, which does not read the earlier rows
    /// if an index has the order of the query.
    public func skip(_ count: Int) -> Self {
        adding { (query) throws(ImpossibleQuery) in
            guard count >= 0 else { throw ImpossibleQuery(message: "skip(\(count)) is negative") }
            guard count <= Query.skipMax else {
                throw ImpossibleQuery(message: "skip(\(count)) is more than \(Query.skipMax): use page(after:)")
            }
            query.skipCount = count
        }
    }

    /// Returns at most this number of rows. Without a limit, `values()` and `keys()` return all rows.
    public func limit(_ count: Int) -> Self {
        adding { (query) throws(ImpossibleQuery) in
            guard count >= 0 else { throw ImpossibleQuery(message: "limit(\(count)) is negative") }
            query.limitCount = count
        }
    }

    /// Allows the query to examine any number of entries if no index supports it. Otherwise it throws if there are more
    /// than 100,000; in the daemon, than `--query-scan`.
    public func scan() -> Self { adding { $0.scans = true } }

    /// Returns only models for which `isIncluded` is true. Evaluated in this process on the decoded models that match
    /// the other conditions, before skip, limit, counts and groups. Called on any thread. If it throws, the query does.
    public func filter(_ isIncluded: @escaping @Sendable (Model) throws -> Bool) -> Self {
        adding { $0.add(Filter(note: "a closure", allows: isIncluded)) }
    }

    // MARK: Words

    /// Returns the path of a property in the stored JSON.
    mutating func path(
        _ property: AnyKeyPath, _ place: String? = nil, _ reader: PropertyChecks.Reader = .query
    ) throws(ImpossibleQuery) -> String {
        let names = PropertyPath.names(of: property)
        if let place {
            if !place.hasPrefix("@"), let path = EditPath(place) {
                if names != nil { add(PropertyChecks.Check(path, property, reader)) }
                return place
            }
            throw ImpossibleQuery(
                message: "'\(printableKey(place.utf8))' is not a place: expected names, such as a.b; "
                    + "\(EditPath.unnamed): use filter { }")
        }
        guard let names else {
            throw ImpossibleQuery(
                message:
                    "\(property) is not a plain stored property; pass the name in the JSON, as in at: \"name\", or use "
                    + "filter { }")
        }
        if let path = EditPath(names) { add(PropertyChecks.Check(path, property, reader)) }
        return names
    }

    /// The words that find a model for the checks of the query's properties; nil if all are verified.
    func sampleWords(_ unfinished: [PropertyChecks.Check]) -> [[UInt8]]? {
        if unfinished.isEmpty || problem != nil { return nil }
        let words = keyPrefix.isEmpty ? [] : QueryWord.list("WHERE", "@key", "PREFIX") + [keyPrefix]
        return words + QueryWord.list("LIMIT", "1")
    }

    /// The checks of the query's properties that have not ended.
    var unfinishedChecks: [PropertyChecks.Check] { runner.codec.checks?.unfinished(checks) ?? [] }

    /// - Parameter sample: the result of ``sampleWords(_:)``; nil if that query has failed.
    func verify(_ unfinished: [PropertyChecks.Check], _ sample: QueryResult?) throws(Source.QueryFailure) {
        if let sample, sample.rows.isEmpty { return }
        let text = (sample?.rows.first?.values.first ?? nil) ?? []
        let model = try? text.withUnsafeBytes { try runner.codec.decode(Model.self, $0, storedAs: .json) }
        do throws(PropertyChecks.Mismatch) {
            try runner.codec.checks?.verify(unfinished, model, runner.codec)
        } catch {
            throw runner.failure(.invalid(error.text))
        }
    }

    /// Returns the words of the query.
    /// - Parameter output: the words of the result's form; none for rows.
    func words(
        _ output: [[UInt8]], skip: Int, limit: Int?, after cursor: [UInt8]?
    ) throws(Source.QueryFailure) -> [[UInt8]] {
        if let problem { throw runner.failure(.invalid(problem)) }
        guard runner.codec.codec == .json else { throw runner.failure(.invalid(runner.codec.notJSON)) }
        var words = output
        if !conditions.isEmpty { words += QueryWord.list("WHERE") + ConditionWords.all(conditions).words }
        if !order.isEmpty { words += QueryWord.list("SORT") + order }
        if skip > 0 { words += QueryWord.list("SKIP", "\(skip)") }
        if let limit { words += QueryWord.list("LIMIT", "\(limit)") }
        if let cursor { words += QueryWord.list("AFTER") + [cursor] }
        return scans ? words + QueryWord.list("SCAN") : words
    }
}
