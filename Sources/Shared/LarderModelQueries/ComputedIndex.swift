import LarderJSONCoding
import LarderModelCoding
import LarderPlatform
import LarderQueries

/// An index of values that a closure computes from each model, for conditions and orders. Only in the library.
///
/// ```swift
/// let byDay = Index.computed("byDay", version: 1) { (book: Book) in [book.bought.day] }
/// let books = try Cache(named: "books", policy: .low, indexes: [Index(byDay)])
/// let found = try books.query(Book.self).where(byDay, today).values()
/// let latest = try books.query(Book.self).sorted(by: byDay, .reverse).limit(10).values()
/// ```
/// - The closure must return the same values for the same model in every process: no clock, no random numbers, nothing
///   that may change. **If you change it, or how the models are decoded, increase the version**; the index is then built
///   anew. Otherwise queries miss entries.
/// - The name of the model's type, with its module, belongs to the index: several models can have indexes of one name.
///   Of private and local types of one name in a module, only one can have computed indexes: others throw
///   `invalidArgument`.
///   Of several closures for the same model, type of values, name and version in a database, the first one that was
///   declared fills the index until the larder is closed. With another type of values, the index is built anew.
/// - Any thread may call the closure, also concurrently: when an entry reaches the disk or is queried for the first
///   time, when the index is built, and for each candidate of a query. It must not call the cache. Be fast: the
///   checkpoint waits. The index makes the larder decode each stored model once or twice more.
/// - An entry that cannot be decoded as the model has no values: conditions on the index do not find it, and it is no
///   error. Other queries find all entries.
/// - Values are compared as JSON, as ``ModelCodec/json`` encodes them, whatever codec the cache has. A value that cannot
///   be encoded is left out. An entry with more than 256 values is a candidate of each query.
/// - A query on an index that is not ready, that is not declared in this process, or in a snapshot, calls the closure
///   for all entries that match its other conditions, in pages, like ``ModelQuery/filter(_:)``. Without
///   ``ModelQuery/scan()``, it throws `invalidArgument` if more than 100,000 entries would be examined.
/// - A process that stores entries without declaring the index, such as `larderd`, makes it incomplete; the next process
///   that declares it builds it anew.
///
/// Thread-safe: an immutable value.
public struct ComputedIndex<Model: Codable & SendableMetatype, Value: Encodable & SendableMetatype>: Sendable {
    let name: String
    let path: QueryPath
    let prefix: [UInt8]
    fileprivate let compute: @Sendable (Model) -> [Value]

    /// The values of a model, without those that cannot be encoded.
    func values(of model: Model) -> [JSONText] { compute(model).compactMap { try? ModelCodec.json.json(of: $0) } }

    func values(in text: UnsafeRawBufferPointer, _ codec: ModelCodec) -> [JSONText] {
        (try? codec.decode(Model.self, text, storedAs: .json)).map { values(of: $0) } ?? []
    }

    /// The name of the model's type, without the addresses around private types, which differ between processes.
    static var modelName: String {
        let parts = String(reflecting: Model.self).split(separator: ".")
        return parts.filter { !$0.hasPrefix("(unknown context at ") }.joined(separator: ".")
    }

    /// Says what is wrong if another type with a computed index has the same name; nil if none has.
    var problem: String? {
        let (name, type) = (Self.modelName, ObjectIdentifier(Model.self))
        let first = namedTypes.withLock { types in
            if types[name] == nil { types[name] = type }
            return types[name]
        }
        if first == type { return nil }
        return "two private types are named \(name), so their computed indexes cannot be told apart: rename one of them"
    }
}

/// The models of the computed indexes that were declared or queried, by name.
private let namedTypes = Locked<[String: ObjectIdentifier]>([:])

extension Index {
    /// Returns an index of values that a closure computes from each model. Declare it as `Index(byDay)`, and query it
    /// with `where(byDay, …)`.
    /// - Parameters:
    ///   - name: 1 to 48 letters, digits, `.`, `_` and `-`, unique among the indexes of the model's type. Declaring an
    ///     invalid name throws `invalidArgument`.
    ///   - version: of the closure: any number.
    ///   - prefix: the index lists only entries whose keys begin with this. Queries use it if they have
    ///     ``ModelQuery/where(keyPrefix:)``. The default is empty: all entries.
    ///   - compute: returns the values under which a model is found; none to leave it out. See ``ComputedIndex``.
    public static func computed<Model, Value>(
        _ name: String, version: Int, prefix: any CacheKey = "", _ compute: @escaping @Sendable (Model) -> [Value]
    ) -> ComputedIndex<Model, Value> {
        let path = QueryPath.computed(
            name, version: version, of: "\(ComputedIndex<Model, Value>.modelName) as \(Value.self)")
        return ComputedIndex(name: name, path: path, prefix: prefix.keyBytes, compute: compute)
    }
}

// Both kinds of calls: clients have only one.
extension ModelQuery where Source: BlockingQuerySource & AsyncQuerySource {
    /// The computed values of the model contain this one. Models that cannot be decoded have no values.
    public func `where`<Value>(_ index: ComputedIndex<Model, Value>, _ value: Value) -> Self {
        adding { (query) throws(ImpossibleQuery) in
            let operand = try ModelCodec.json.operand(value)
            try query.add(index) { ConditionWords($0, equals: operand) }
        }
    }

    /// The computed values of the model contain one of these.
    public func `where`<Value>(_ index: ComputedIndex<Model, Value>, in values: some Sequence<Value>) -> Self {
        adding { (query) throws(ImpossibleQuery) in
            let operands = try ModelCodec.json.operands(values)
            try query.add(index) { ConditionWords($0, isIn: operands) }
        }
    }

    /// One of the computed values of the model is in a range, such as `day..<nextDay`. For numbers, text (by its bytes)
    /// and dates.
    public func `where`<Value: Comparable, Values: RangeExpression>(
        _ index: ComputedIndex<Model, Value>, _ range: Values
    ) -> Self where Values.Bound == Value {
        adding { (query) throws(ImpossibleQuery) in
            let bounds = try RangeBounds<JSONText>(range, .json)
            // As a single test, so that both limits are those of one value.
            var closed = bounds
            closed.includesUpper = true
            try query.add(index, candidates: ConditionWords(index.path.text, closed)) { ConditionWords($0, bounds) }
        }
    }

    /// Sorts the rows by their computed values; after earlier calls, rows that are equal so far. A row with several
    /// values is sorted by the smallest one, or the largest one in reverse. **Entries without values, and those that
    /// cannot be decoded, are not in the result**, nor counted. Costs nothing if the index is the whole order of the
    /// query; otherwise the closure is called for all matching entries. Not possible in live queries.
    public func sorted<Value>(by index: ComputedIndex<Model, Value>, _ direction: Direction = .forward) -> Self {
        adding { (query) throws(ImpossibleQuery) in
            if let problem = index.problem { throw ImpossibleQuery(message: problem) }
            query.runner.computed[index.path] = { [codec = query.runner.codec] in index.values(in: $0, codec) }
            query.sort(by: index.path.text, direction)
        }
    }

    /// - Parameters:
    ///   - candidates: a condition on the index that is true for all matches; nil for the condition itself.
    ///   - make: returns the condition on a value at a path.
    private mutating func add<Value>(
        _ index: ComputedIndex<Model, Value>, candidates: ConditionWords? = nil, _ make: (String) -> ConditionWords
    ) throws(ImpossibleQuery) {
        if let problem = index.problem { throw ImpossibleQuery(message: problem) }
        let condition: QueryCondition?
        do throws(QueryError) { condition = try Query(QueryWord.list("WHERE") + make("$").words).condition } catch {
            throw ImpossibleQuery(message: error.text)
        }
        add(candidates ?? make(index.path.text))
        let note = "the computed index '\(index.name)'"
        add(
            Filter(note: note, omitsUndecodable: true) { model in
                guard let matches = condition?.evaluator else { return true }
                let facts = QueryFacts(key: UnsafeRawBufferPointer(start: nil, count: 0), stored: 0, expires: nil)
                return index.values(of: model).contains { value in
                    value.bytes.withUnsafeBytes { text in
                        guard let document = JSONDocument(text) else { return false }
                        return matches(document, facts)
                    }
                }
            })
    }
}
