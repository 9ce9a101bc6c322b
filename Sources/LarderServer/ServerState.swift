import LarderEngine
import Synchronization
import Threading

/// What all connections of a server share. Thread-safe.
package final class ServerState: Sendable {
    package let engine: Engine
    package let limits: Limits
    package let standardDatabase: Database
    let scanCursors: ScanCursors
    let socketPath: String
    let threadCount: Int
    let startedAt: Int64
    let openSnapshots = Atomic<Int>(0)
    let commands = CommandCounts()
    package let clients = Atomic<Int>(0)
    let clientsSeen = Atomic<Int>(0)
    let clientsRefused = Atomic<Int>(0)
    let counts = EntryCounts()
    let pubsub: PubSub
    let directory = ConnectionDirectory()
    let tracking: Tracking
    /// Keyspace notifications and what clients that track are told.
    package let notifier: Notifier
    private let nextClient = Atomic<Int>(1)
    private let stopHandler: @Sendable (String) -> Void
    /// Called on the thread that may block, before it runs a session. For tests, which make it wait.
    let beforeColdSlice: (@Sendable () -> Void)?

    package init(
        engine: Engine, limits: Limits = Limits(), socketPath: String = "", threadCount: Int = 1,
        beforeColdSlice: (@Sendable () -> Void)? = nil, onStopRequest: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(LarderError) {
        self.engine = engine
        self.limits = limits
        self.socketPath = socketPath
        self.threadCount = threadCount
        self.beforeColdSlice = beforeColdSlice
        pubsub = PubSub(pendingBytesMax: limits.undeliveredBytesMax)
        tracking = Tracking(directory: directory, keysMax: limits.trackedKeysMax)
        notifier = Notifier(
            engine: engine, pubsub: pubsub, tracking: tracking, deadlinesMax: limits.watchedDeadlinesMax)
        stopHandler = onStopRequest
        standardDatabase = try engine.database(DatabaseName.standard)
        scanCursors = ScanCursors(most: limits.scanCursorsMax)
        startedAt = engine.monotonic()
    }

    package func newClientID() -> Int64 {
        Int64(nextClient.wrappingAdd(1, ordering: .relaxed).oldValue)
    }

    /// Whether loops are so far behind that what makes work for them should wait.
    var isCongested: Bool { engine.pipeline.isCongested || pubsub.isCongested }

    func requestStop(_ reason: String) { stopHandler(reason) }
}

/// How many commands were run: a counter for each loop, so that loops do not take it from each other, summed when somebody
/// asks.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the list is read and written with the lock held.
final class CommandCounts: @unchecked Sendable {
    /// Thread-safe. Alone on its cache lines.
    final class Counter: Sendable {
        private let front = (0, 0, 0, 0, 0, 0, 0, 0)
        let value = Atomic<Int>(0)
        private let back = (0, 0, 0, 0, 0, 0, 0, 0)
    }

    private let lock = Lock()
    private var counters: [Counter] = []

    func newCounter() -> Counter {
        let counter = Counter()
        lock.withLock { counters.append(counter) }
        return counter
    }

    var total: Int { lock.withLock { counters.reduce(0) { $0 + $1.value.read() } } }
}

/// How many entries databases had when they were last counted, for INFO, which must not read millions of entries each
/// time somebody asks.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the table is read and written with the lock held.
final class EntryCounts: @unchecked Sendable {
    /// A count that took longer than this is not repeated for INFO within ``staleMilliseconds``.
    private static let cheapMilliseconds: Int64 = 20
    private static let staleMilliseconds: Int64 = 60_000

    private struct Count {
        var entries: Int
        var at: Int64
        var cost: Int64
    }

    private let lock = Lock()
    private var counts: [String: Count] = [:]

    /// The number of entries: exact where counting is cheap, else as of at most a minute ago.
    func entries(of database: Database, monotonic: () -> Int64) -> Int {
        let start = monotonic()
        if let known = lock.withLock({ counts[database.name] }), known.cost > Self.cheapMilliseconds,
            start - known.at < Self.staleMilliseconds
        {
            return known.entries
        }
        guard let entries = try? database.count(includingExpired: true) else { return 0 }
        let end = monotonic()
        lock.withLock { counts[database.name] = Count(entries: entries, at: end, cost: end - start) }
        return entries
    }
}
