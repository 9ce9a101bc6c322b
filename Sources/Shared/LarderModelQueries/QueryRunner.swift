import LarderModelCoding
import LarderQueries

/// A database whose models can be queried. ``ModelQuery`` has the calls for it.
public protocol QuerySource: Sendable {
    /// The errors of its queries.
    associatedtype QueryFailure: Error
}

/// A database whose queries can block the calling thread.
public protocol BlockingQuerySource: QuerySource {}

/// A database whose queries can be awaited.
public protocol AsyncQuerySource: QuerySource {}

/// Runs the words of queries on a database.
package struct QueryRunner<Failure: Error>: Sendable {
    package enum Problem {
        /// The call is impossible.
        case invalid(String)
        case undecodable(any Any.Type, key: [UInt8], any Error)
        /// A value of a group is not of the expected type.
        case group(any Error, String)
        /// The closure of a filter, or a predicate, has thrown.
        case filter(key: [UInt8], any Error)
    }

    let codec: ModelCodec
    /// Whether entries are omitted that cannot be decoded.
    let omitsUndecodable: Bool
    let failure: @Sendable (Problem) -> Failure
    /// Whether a cache or client has the queried database. The argument is an ``AsyncQuerySource``.
    package var isOf: @Sendable (Any) -> Bool = { _ in true }
    /// The values of the computed indexes that the query is sorted by.
    var computed: ComputedValues = [:]
    /// Runs a query; the flag requests only its explanation. Nil if the database has no such calls.
    package var run: (@Sendable ([[UInt8]], ComputedValues, Bool) throws(Failure) -> QueryResult)?
    /// Begins a live query with the words after QUERY LIVE. The sink gets the result first.
    package var live: (@Sendable ([[UInt8]], @escaping LiveSink) async throws(Failure) -> LiveFeed)?
    package var runForTask: (@Sendable ([[UInt8]], ComputedValues, Bool) async throws(Failure) -> QueryResult)?
    /// Returns the fresh entries of keys, in their order.
    package var read: (@Sendable ([[UInt8]]) throws(Failure) -> [StoredText?])?
    package var readForTask: (@Sendable ([[UInt8]]) async throws(Failure) -> [StoredText?])?
    /// Removes the entries of rows whose texts have not changed. Returns their number. Called without rows at the end.
    package var remove: (@Sendable ([QueryResult.Row]) throws(Failure) -> Int)?
    package var removeForTask: (@Sendable ([QueryResult.Row]) async throws(Failure) -> Int)?

    package init(
        _ codec: ModelCodec, omitsUndecodable: Bool = false, _ failure: @escaping @Sendable (Problem) -> Failure
    ) {
        (self.codec, self.omitsUndecodable, self.failure) = (codec, omitsUndecodable, failure)
    }

    func result(_ words: [[UInt8]], explains: Bool = false) throws(Failure) -> QueryResult {
        guard let run else { throw failure(.invalid("this database has no blocking queries")) }
        return try run(words, computed, explains)
    }

    func resultForTask(_ words: [[UInt8]], explains: Bool = false) async throws(Failure) -> QueryResult {
        guard let runForTask else { throw failure(.invalid("this database has no asynchronous queries")) }
        return try await runForTask(words, computed, explains)
    }

    func removal<Removal>(_ call: Removal?) throws(Failure) -> Removal {
        guard let call else { throw failure(.invalid("a snapshot cannot be changed: query the cache itself")) }
        return call
    }

    /// Decodes a part of a result.
    func decode<Value: Decodable>(_ type: Value.Type, _ text: [UInt8], _ key: [UInt8]) throws(Failure) -> Value {
        do { return try text.withUnsafeBytes { try codec.decode(type, $0, storedAs: .json) } } catch {
            throw failure(.undecodable(type, key: key, error))
        }
    }
}
