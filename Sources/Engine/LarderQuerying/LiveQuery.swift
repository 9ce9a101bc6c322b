import LarderEngine
import LarderQueries
import Synchronization

/// A live query, as the thread of ``LiveQueries`` keeps it.
///
/// `@unchecked Sendable`: `missed` is guarded by the lock of ``LiveQueries``. The other variables are used by the thread
/// that begins the query until it is started, then by that of ``LiveQueries``.
final class LiveQuery: @unchecked Sendable {
    /// Other live queries of this process have other numbers.
    let number = LiveQuery.numbers.wrappingAdd(1, ordering: .relaxed).newValue
    private static let numbers = Atomic<Int>(0)
    /// The query that is run: its limit is that of the kept rows.
    let query: Query
    let condition: QueryCondition.Evaluator?
    let refersToExpiry: Bool
    let send: LiveSink
    /// The approximate size of the query without rows.
    private let ownBytes: Int
    /// Whether the reader needs no events any more. The thread drops its work for such a query.
    let isStopped = Atomic<Bool>(false)
    /// The engine's number of rollbacks before the first run.
    var rollbackCount: UInt64 = 0
    /// The changes since the first run began that its rows may lack, until the query is started.
    var missed = NotedChanges()

    var rows: LiveRows
    var events: [LiveEvent] = []
    /// The number of the last change that the query was examined for.
    var examined = 0
    /// Whether the reader gets no events before it has called ``LiveQueryHandle/resume()``.
    var isBehind = false
    /// Whether the reader must get the whole result.
    var needsReset = false
    /// Whether any row may have changed.
    var isUnknown = false
    /// Whether the reader gets the events.
    var isStarted = false
    var hasEnded = false
    /// Why the query has ended.
    var failure: QueryFailure?

    /// The rows of a run in order, and whether others follow.
    typealias FoundRows = (rows: [LiveRows.Row], isCut: Bool)

    /// The maximum number of rows of a live query, with those that it skips.
    package static let rowsMax = 10_000
    /// The maximum number of conditions, which are evaluated for each change.
    private static let testsMax = 256
    /// The maximum number of values of IN and ALL.
    private static let valuesMax = 1_024

    init(_ query: Query, _ send: @escaping LiveSink) throws(QueryError) {
        switch query.output {
        case .rows, .keys: break
        case .count, .groups, .select:
            throw QueryError("a live query has rows or KEYS: COUNT, SELECT and GROUP are not possible")
        }
        if query.cursor != nil { throw QueryError("a live query takes no AFTER") }
        let (tests, values) = (query.condition?.testCount ?? 0, query.condition?.operandCount ?? 0)
        guard tests <= Self.testsMax, values <= Self.valuesMax else {
            throw QueryError("a live query has at most \(Self.testsMax) conditions and \(Self.valuesMax) values of IN")
        }
        ownBytes = 1_024 + 256 * (tests + values)
        guard query.rowsMax > 0, query.skip + query.rowsMax <= Self.rowsMax else {
            throw QueryError("a live query has 1 to \(Self.rowsMax) rows, with those of SKIP: use another LIMIT")
        }
        // Positions must not depend on the indexes.
        rows = LiveRows(query.order, skip: query.skip, limit: query.rowsMax)
        var run = query
        if run.order.parts.isEmpty { run.order = .byKey }
        (run.skip, run.limit) = (0, rows.capacity)
        self.query = run
        condition = query.condition?.evaluator
        refersToExpiry = query.paths.contains { $0.root == .expires }
        self.send = send
    }

    /// The approximate size of the query with its rows.
    var byteCount: Int { ownBytes + rows.byteCount }
    /// The last ``byteCount``, for any thread.
    let notedBytes = Atomic<Int>(0)
    var hasStopped: Bool { isStopped.load(ordering: .relaxed) }
    var hasTexts: Bool { query.output == .rows }

    /// Runs the query. May block.
    /// - Parameter scans: whether it may examine any number of entries.
    func run(
        in database: Database, _ limits: QueryLimits, scans: Bool, isCancelled: @escaping () -> Bool = { false }
    ) throws(QueryFailure) -> FoundRows {
        var query = query
        query.scans = query.scans || scans
        var run = QueryRun(query, in: database, nil, limits, isCancelled: isCancelled)
        let found = try run.positionedRows()
        let taken = found.rows.map { row in
            let isSorted = !rows.order.parts.isEmpty
            let position = isSorted ? row.position : QueryPosition(values: [], key: row.position.key)
            return LiveRows.Row(position: position, expires: row.expires, text: row.content.first ?? nil)
        }
        return (taken, found.isCut)
    }

    /// The rows of the result, in order.
    var visible: [LiveRow] { rows.visible.map { LiveRow(key: $0, text: rows.text($0)) } }
}
