import LarderJSONCoding
import LarderModelCoding
import LarderQueries

/// A value of each group of a query: `.count`, `.sum(\.price)`, `.min(\.price)`, `.max(\.price)`.
public struct QueryAggregate<Model: SendableMetatype, Result: Sendable>: Sendable {
    fileprivate let words: [[UInt8]]
    fileprivate let problem: String?
    fileprivate var check: PropertyChecks.Check?
    fileprivate let decode: @Sendable (QueryGroups.Value, ModelCodec) throws -> Result
}

extension QueryAggregate where Result == Int {
    /// The number of entries of the group.
    public static var count: QueryAggregate {
        QueryAggregate(words: QueryWord.list("COUNT"), problem: nil) { value, _ in
            if case .count(let count) = value { count } else { 0 }
        }
    }
}

extension QueryAggregate {
    /// The sum of a property; nil if no entry has a number there. Integers are added exactly, other numbers as doubles; a
    /// sum that does not fit into the property's type throws.
    public static func sum<Number: Codable & Sendable>(
        _ property: KeyPath<Model, Number>, at place: String? = nil
    ) -> QueryAggregate where Result == Number? { make("SUM", property, place) }

    /// The smallest number of a property; nil if there is none.
    public static func min<Number: Codable & Sendable>(
        _ property: KeyPath<Model, Number>, at place: String? = nil
    ) -> QueryAggregate where Result == Number? { make("MIN", property, place) }

    /// The largest number of a property; nil if there is none.
    public static func max<Number: Codable & Sendable>(
        _ property: KeyPath<Model, Number>, at place: String? = nil
    ) -> QueryAggregate where Result == Number? { make("MAX", property, place) }

    private static func make<Number: Codable & Sendable>(
        _ word: String, _ property: AnyKeyPath, _ place: String?
    ) -> QueryAggregate where Result == Number? {
        let path = place ?? PropertyPath.names(of: property)
        return QueryAggregate(
            words: QueryWord.list(word) + [QueryWord.path(path ?? "")],
            problem: path == nil ? "\(property) is not a stored property" : nil,
            check: place == nil
                ? path.flatMap { EditPath($0) }.flatMap { PropertyChecks.Check($0, property, .query) } : nil
        ) { value, codec in
            guard case .json(let text) = value, !text.elementsEqual("null".utf8) else { return nil }
            return try text.withUnsafeBytes { try codec.decode(Number.self, $0, storedAs: .json) }
        }
    }

    fileprivate func decode(_ values: [QueryGroups.Value], _ index: inout Int, _ codec: ModelCodec) throws -> Result {
        defer { index += 1 }
        return try decode(values[index], codec)
    }
}

/// The groups of a query: `rows()` reads them.
///
/// Thread-safe: an immutable value.
public struct ModelGroups<Model: Codable & SendableMetatype, Source: QuerySource, Group: Decodable, Results>: Sendable {
    fileprivate let query: ModelQuery<Model, Source>
    fileprivate let output: QueryPages<Model, Source>.Output
    fileprivate let decode: @Sendable ([QueryGroups.Value], ModelCodec) throws -> Results

    /// A group: its value, and its aggregates in the order of the call.
    public typealias Row = (group: Group, results: Results)

    fileprivate func rows(_ result: QueryResult) throws(Source.QueryFailure) -> [Row] {
        let runner = query.runner
        var rows: [Row] = []
        for group in result.groups {
            let value: Group
            do {
                value = try group.json.withUnsafeBytes { try runner.codec.decode(Group.self, $0, storedAs: .json) }
            } catch {
                throw runner.failure(
                    .group(
                        error,
                        "a group cannot be read as \(Group.self): \(CodingProblem.decoding(error)); to group by the "
                            + "elements of an array, use grouped(byElementsOf:)"))
            }
            do { rows.append((value, try decode(group.values, runner.codec))) } catch {
                throw runner.failure(
                    .group(
                        error,
                        "a value of a group cannot be read as \(Results.self): \(CodingProblem.decoding(error))"))
            }
        }
        return rows
    }
}

extension ModelGroups where Source: BlockingQuerySource {
    /// Returns the groups in the order of their values. Models without the property are in no group. A query can have
    /// 100,000 groups.
    public func rows() throws(Source.QueryFailure) -> [Row] { try rows(try query.collect(output).result) }
}

extension ModelGroups where Source: AsyncQuerySource {
    /// Returns the groups in the order of their values. Models without the property are in no group. A query can have
    /// 100,000 groups.
    public func rows() async throws(Source.QueryFailure) -> [Row] {
        try rows(try await query.collectForTask(output).result)
    }
}

extension ModelQuery {
    /// Groups the models by a property. `skip` and `limit` of the query count groups.
    public func grouped<Group: Codable, each Result: Sendable>(
        by property: KeyPath<Model, Group>, at place: String? = nil,
        _ aggregates: repeat QueryAggregate<Model, each Result>
    ) -> ModelGroups<Model, Source, Group, (repeat each Result)> {
        groups(property, place, repeat each aggregates)
    }

    /// Groups the models by the elements of an array or set: a model counts once in the group of each element.
    public func grouped<Elements: Collection & Codable, each Result: Sendable>(
        byElementsOf property: KeyPath<Model, Elements>, at place: String? = nil,
        _ aggregates: repeat QueryAggregate<Model, each Result>
    ) -> ModelGroups<Model, Source, Elements.Element, (repeat each Result)> where Elements.Element: Codable {
        adding { (_) throws(ImpossibleQuery) in try runner.codec.requireArray(Elements.self) }
            .groups(property, place, repeat each aggregates)
    }

    private func groups<Group: Codable, each Result: Sendable>(
        _ property: AnyKeyPath, _ place: String?, _ aggregates: repeat QueryAggregate<Model, each Result>
    ) -> ModelGroups<Model, Source, Group, (repeat each Result)> {
        var (words, path): ([[UInt8]], String) = ([], "")
        let query = adding { (query) throws(ImpossibleQuery) in
            path = try query.path(property, place)
            for aggregate in repeat each aggregates {
                if let problem = aggregate.problem { throw ImpossibleQuery(message: problem) }
                words += aggregate.words
                if let check = aggregate.check { query.add(check) }
            }
        }
        return ModelGroups(query: query, output: .groups(path: path, aggregates: words)) { values, codec in
            var index = 0
            return (repeat try (each aggregates).decode(values, &index, codec))
        }
    }
}
