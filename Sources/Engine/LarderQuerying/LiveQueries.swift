import LarderEngine
import LarderPlatform
import LarderQueries
import Synchronization

/// The live queries of a larder: their readers get the differences of the results as entries change.
///
/// - Without live queries, this object does not subscribe to the stream of changes, and costs nothing.
/// - The thread that commits a change only notes its key, if its database has live queries. The thread `larder-live`
///   reads each changed entry once, and updates the results. It exists while there are live queries.
/// - A query is registered before its first run, and takes the changes since then with the rows of the run. So it misses
///   none.
/// - Readers get the rows as they were at instants between two commits: see ``LiveDatabase``.
/// - An expiry is reported at its time: the thread knows the deadlines of all rows.
///
/// Thread-safe. `@unchecked Sendable`: `lock` guards the properties below "Guarded"; the last properties are used by the
/// thread. The lock is a leaf, and is held for a short time only.
package final class LiveQueries: ChangeSubscriber, @unchecked Sendable {
    /// A database with live queries.
    private final class Watched {
        let database: Database
        var noted = NotedChanges()
        /// The changes up to this commit unit were examined, although some were not published yet.
        var examined: UInt64 = 0
        /// The queries whose first run has begun, and whose rows were not taken yet.
        var starting: [LiveQuery] = []
        /// The number of the other queries.
        var count = 0

        init(_ database: Database) { self.database = database }
    }

    private enum Request {
        case start(LiveQuery, ObjectIdentifier)
        case resume(LiveQuery)
        case stop(LiveQuery)
    }

    private struct Open {
        weak var queries: LiveQueries?
    }

    private static let open = Locked<[ObjectIdentifier: Open]>([:])

    private let engine: Engine
    private let limits: QueryLimits
    private let successor: @Sendable (Database) -> Database?
    private let lock = Lock()
    private let isNeeded = Condition()
    private let queryCount = Atomic<Int>(0)
    /// The approximate size of all queries with their rows.
    private let rowBytes = Atomic<Int>(0)
    // Guarded:
    private var watched: [ObjectIdentifier: Watched] = [:]
    private var requests: [Request] = []
    private var hasWork = false
    private var isWaiting = false
    private var isRunning = false
    // For the thread:
    private var databases: [ObjectIdentifier: LiveDatabase] = [:]
    private var rollbackCount: UInt64 = 0

    /// The maximum number of live queries.
    package static let queriesMax = 10_000
    /// The longest wait of the thread: it also looks for rollbacks, and for steps of the clock.
    private static let waitMilliseconds: Int64 = 250
    /// The pause of the thread after its work, so that it takes several changes at once.
    private static let pauseNanoseconds: UInt64 = 400_000

    static let tooManyRows = QueryFailure.refused(
        "the rows of all live queries take too much memory: use narrower conditions, LIMIT or KEYS")

    /// - Parameters:
    ///   - limits: the limits for running a query.
    ///   - successor: returns the database that replaces a deleted one; nil ends the database's queries.
    package init(
        _ engine: Engine, _ limits: QueryLimits, successor: @escaping @Sendable (Database) -> Database? = { _ in nil }
    ) {
        (self.engine, self.limits, self.successor) = (engine, limits, successor)
        rollbackCount = engine.rollbackCount
    }

    /// Returns the live queries of a larder that this program has opened.
    package static func of(_ engine: Engine) -> LiveQueries {
        open.withLock { open in
            // The engine of live queries exists, so its identity is not that of another one.
            open = open.filter { $0.value.queries != nil }
            if let present = open[ObjectIdentifier(engine)]?.queries { return present }
            let new = LiveQueries(engine, QueryLimits(isOfLibrary: true))
            open[ObjectIdentifier(engine)] = Open(queries: new)
            return new
        }
    }

    /// The number of live queries.
    package var count: Int { queryCount.load(ordering: .relaxed) }

    // MARK: For readers

    /// Runs a query, and collects the changes of its result from then on. May block.
    /// - Returns: a handle, which ends the query when it is released, and the rows. The sink gets the differences after
    ///   ``LiveQueryHandle/start()``.
    package func begin(
        _ query: Query, in database: Database, isCancelled: @escaping () -> Bool = { false }, _ sink: @escaping LiveSink
    ) throws(QueryFailure) -> (handle: LiveQueryHandle, rows: [LiveRow]) {
        let live: LiveQuery
        do throws(QueryError) { live = try LiveQuery(query, sink) } catch { throw .refused(error.text) }
        guard queryCount.wrappingAdd(1, ordering: .relaxed).newValue <= Self.queriesMax else {
            queryCount.subtract(1, ordering: .relaxed)
            throw .refused("there are already \(Self.queriesMax) live queries")
        }
        live.rollbackCount = engine.rollbackCount
        lock.withLock { watch(database).starting.append(live) }
        let handle = LiveQueryHandle(self, live, ObjectIdentifier(database))
        let found = try live.run(in: database, limits, scans: false, isCancelled: isCancelled)
        live.rows.replace(found.rows, isCut: found.isCut)
        try settle(live, in: database)
        // Rows of queries that begin at the same time are counted when they are taken.
        guard rowBytes.load(ordering: .relaxed) + live.byteCount <= limits.liveBytesMax else { throw Self.tooManyRows }
        return (handle, live.visible)
    }

    /// Applies the changes since a query's first run began.
    private func settle(_ live: LiveQuery, in database: Database) throws(QueryFailure) {
        let alone = LiveDatabase(database, limits)
        alone.add(live)
        // Changes that are not noted yet may be in the rows.
        var touched = [live]
        do throws(LarderError) {
            try alone.settle(
                { [lock] _, areWanted in lock.withLock { Self.take(&live.missed, areWanted) } },
                now: engine.clock.unnoticed(), &touched)
        } catch {
            throw .engine(error)
        }
        if let failure = live.failure { throw failure }
        (live.events, live.needsReset) = ([], false)
    }

    private static func take(_ noted: inout NotedChanges, _ areWanted: (NotedChanges) -> Bool) -> NotedChanges? {
        guard areWanted(noted) else { return nil }
        defer { noted = NotedChanges(reserving: noted.keys.count) }
        return noted
    }

    fileprivate func start(_ query: LiveQuery, _ database: ObjectIdentifier) { request(.start(query, database)) }
    fileprivate func resume(_ query: LiveQuery) { request(.resume(query)) }
    fileprivate func stop(_ query: LiveQuery) {
        queryCount.subtract(1, ordering: .relaxed)
        query.isStopped.store(true, ordering: .relaxed)
        request(.stop(query))
    }

    private func request(_ request: Request) {
        lock.withLock {
            requests.append(request)
            if !isRunning {
                isRunning = true
                WorkThread(name: "larder-live") { [self] in run() }.detach()
            }
            wake()
        }
    }

    // MARK: Called with `lock` held

    private func watch(_ database: Database) -> Watched {
        let id = ObjectIdentifier(database)
        if let present = watched[id] { return present }
        let new = Watched(database)
        watched[id] = new
        engine.changes.subscribe(self)
        return new
    }

    private func unwatch(_ id: ObjectIdentifier) {
        guard let one = watched[id], one.count == 0, one.starting.isEmpty else { return }
        watched[id] = nil
        if watched.isEmpty { engine.changes.unsubscribe(self) }
    }

    private func wake() {
        hasWork = true
        if isWaiting { isNeeded.signal() }
        isWaiting = false
    }

    // MARK: Changes

    package func take(_ changes: [EntryChange]) {
        lock.withLock {
            var isNoted = false
            for change in changes {
                guard let one = watched[ObjectIdentifier(change.database)] else { continue }
                for query in one.starting { query.missed.note(change) }
                if one.count > 0, change.sequence == 0 || change.sequence > one.examined {
                    one.noted.note(change)
                    isNoted = true
                }
            }
            if isNoted { wake() }
        }
    }

    // MARK: The thread

    private func run() {
        while wait() {
            work()
            WorkThread.sleep(nanoseconds: Self.pauseNanoseconds)
        }
    }

    /// Waits for work, the next deadline, or some time.
    /// - Returns: false, without waiting, if there are no live queries.
    private func wait() -> Bool {
        let now = engine.clock.unnoticed()
        let deadline = databases.values.lazy.compactMap(\.nextDeadline).min() ?? .max
        let left = deadline <= now ? 0 : min(deadline - now, Self.waitMilliseconds)
        return lock.withLock {
            if requests.isEmpty, databases.isEmpty {
                isRunning = false
                return false
            }
            if !hasWork, left > 0 {
                isWaiting = true
                isNeeded.wait(lock, milliseconds: left)
                isWaiting = false
            }
            hasWork = false
            return true
        }
    }

    private func work() {
        let rollbacks = engine.rollbackCount
        if rollbacks != rollbackCount { for database in databases.values { database.markUnknown() } }
        rollbackCount = rollbacks
        let taken = lock.withLock {
            defer { requests = [] }
            for case .start(let query, let id) in requests { takeStarted(query, id) }
            return requests
        }
        for request in taken { handle(request) }
        let now = engine.clock.unnoticed()
        for (id, database) in databases { apply(to: database, id, now: now) }
        endLargest()
        rowBytes.store(usedBytes, ordering: .relaxed)
    }

    private var usedBytes: Int { databases.values.reduce(0) { $0 + $1.rowBytes } }

    /// Ends queries of the database with the most rows until all rows have at most ``QueryLimits/liveBytesMax``.
    private func endLargest() {
        let excess = usedBytes - limits.liveBytesMax
        guard excess > 0, let (id, database) = databases.max(by: { $0.value.rowBytes < $1.value.rowBytes }) else {
            return
        }
        let before = database.count
        database.endLargest(most: max(0, database.rowBytes - excess))
        release(before - database.count, id)
    }

    /// Lets a query take part in the changes of its database. Called with `lock` held.
    private func takeStarted(_ query: LiveQuery, _ id: ObjectIdentifier) {
        guard let one = watched[id], let index = one.starting.firstIndex(where: { $0 === query }) else { return }
        one.starting.remove(at: index)
        one.count += 1
        // The query may lack changes that the others have.
        one.examined = 0
        one.noted.merge(query.missed)
        if query.missed.isUnknown { query.isUnknown = true }
        query.missed = NotedChanges()
    }

    private func handle(_ request: Request) {
        switch request {
        case .start(let query, let id):
            guard let database = lock.withLock({ watched[id]?.database }) else { return }
            if query.hasEnded { return release(1, id) }
            // Its rows may be those of a commit that has failed since.
            if query.rollbackCount != rollbackCount { query.isUnknown = true }
            query.isStarted = true
            live(database).add(query)
        case .resume(let query): databases.values.first { $0.has(query) }?.resume(query)
        case .stop(let query):
            if let (id, database) = databases.first(where: { $0.value.has(query) }) {
                database.remove(query)
                release(1, id)
            } else {
                query.hasEnded = true
                lock.withLock {
                    for (id, one) in watched {
                        one.starting.removeAll { $0 === query }
                        unwatch(id)
                    }
                }
            }
        }
    }

    private func live(_ database: Database) -> LiveDatabase {
        let id = ObjectIdentifier(database)
        let live = databases[id] ?? LiveDatabase(database, limits)
        databases[id] = live
        return live
    }

    /// Forgets queries that were removed from a database, and the database if it has no others.
    private func release(_ count: Int, _ id: ObjectIdentifier) {
        if databases[id]?.count ?? 0 == 0 { databases[id] = nil }
        lock.withLock {
            watched[id]?.count -= count
            unwatch(id)
        }
    }

    private func apply(to database: LiveDatabase, _ id: ObjectIdentifier, now: Int64) {
        let before = database.count
        var failure: LarderError?
        do throws(LarderError) {
            try database.apply({ [self] in take(id, $0, $1) }, now: now)
        } catch {
            failure = error
        }
        if database.isDeleted {
            let next = successor(database.database)
            // The larder is about to forget the deleted database.
            if next === database.database { return }
            if let next { move(database, to: next) } else { failure = database.database.deletedError("query") }
        }
        if let failure { for query in database.queries { database.end(query, .engine(failure)) } }
        let left = before - database.count
        if left > 0 { release(left, id) }
    }

    private func take(
        _ id: ObjectIdentifier, _ examined: UInt64, _ areWanted: (NotedChanges) -> Bool
    ) -> NotedChanges? {
        lock.withLock {
            let one = watched[id]
            var none = NotedChanges()
            guard let one else { return Self.take(&none, areWanted) }
            guard let noted = Self.take(&one.noted, areWanted) else { return nil }
            one.examined = max(one.examined, examined)
            return noted
        }
    }

    /// Continues the queries of a deleted database in another one.
    private func move(_ database: LiveDatabase, to next: Database) {
        let queries = database.queries
        lock.withLock {
            watch(next).count += queries.count
            wake()
        }
        let live = live(next)
        for query in queries {
            database.remove(query)
            (query.hasEnded, query.isUnknown) = (false, true)
            live.add(query)
        }
    }
}

/// Keeps a live query going until it is stopped or released. Thread-safe.
package final class LiveQueryHandle: Sendable {
    private let queries: LiveQueries
    private let query: LiveQuery
    private let database: ObjectIdentifier
    private let hasStopped = Atomic<Bool>(false)

    fileprivate init(_ queries: LiveQueries, _ query: LiveQuery, _ database: ObjectIdentifier) {
        (self.queries, self.query, self.database) = (queries, query, database)
    }

    deinit { stop() }

    /// The approximate size of the query with its rows, in bytes.
    package var byteCount: Int { query.notedBytes.load(ordering: .relaxed) }

    /// Begins to pass the differences to the sink. Call it once, after the reader has got the rows.
    package func start() { queries.start(query, database) }

    /// Lets the sink get the whole result, after it has refused events.
    package func resume() { queries.resume(query) }

    /// Ends the query. The sink may still be called for a short time. Idempotent.
    package func stop() {
        if !hasStopped.exchange(true, ordering: .relaxed) { queries.stop(query) }
    }
}
