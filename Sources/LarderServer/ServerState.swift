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
    let statistics = CommandStatistics()
    let errors = ErrorCounts()
    let slowLog = SlowLog()
    let latency = LatencyMonitor()
    let pause = ClientPause()
    let clientRegistry = ClientRegistry()
    let monitors = Monitors()
    let settings: Settings
    let saves: Saves
    let rates = Rates()
    /// 40 hexadecimal digits, different in each run.
    let runID: String
    /// What AUTH has to give; nil for none.
    let password: [UInt8]?
    /// Whether each command has to be looked at singly, for a pause, MONITOR or SLOWLOG.
    let hasAttention = Atomic<Bool>(false)
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
        password: [UInt8]? = nil,
        beforeColdSlice: (@Sendable () -> Void)? = nil, onStopRequest: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(LarderError) {
        self.engine = engine
        self.limits = limits
        self.socketPath = socketPath
        self.threadCount = threadCount
        self.beforeColdSlice = beforeColdSlice
        self.password = password
        settings = Settings(limits: limits)
        saves = Saves(now: engine.now())
        runID = String((0..<40).map { _ in "0123456789abcdef".randomElement() ?? "0" })
        pubsub = PubSub(pendingBytesMax: limits.undeliveredBytesMax)
        tracking = Tracking(directory: directory, keysMax: limits.trackedKeysMax)
        notifier = Notifier(
            engine: engine, pubsub: pubsub, tracking: tracking, deadlinesMax: limits.watchedDeadlinesMax)
        stopHandler = onStopRequest
        standardDatabase = try engine.database(DatabaseName.standard)
        scanCursors = ScanCursors(most: limits.scanCursorsMax)
        startedAt = engine.monotonic()
    }

    /// What CLIENT LIST shows as the address of every connection.
    var clientAddress: String { "\(socketPath):0" }

    package func newClientID() -> Int64 {
        Int64(nextClient.wrappingAdd(1, ordering: .relaxed).oldValue)
    }

    /// Whether loops are so far behind that what makes work for them should wait.
    var isCongested: Bool { engine.pipeline.isCongested || pubsub.isCongested }

    /// Says anew whether commands have to be looked at singly. To be called when something of it changed.
    func noteAttention() {
        let threshold = slowLog.threshold.load(ordering: .relaxed)
        // What is quick takes less than a millisecond.
        let logsAll = threshold >= 0 && threshold < 1000
        hasAttention.store(
            logsAll || !monitors.isEmpty || pause.isOn(engine.monotonic()), ordering: .relaxed)
    }

    func resetStatistics() {
        statistics.reset()
        errors.reset()
        clientsSeen.store(0, ordering: .relaxed)
        clientsRefused.store(0, ordering: .relaxed)
        rates.resetPeaks()
    }

    /// Has everything saved by a thread that may block; see ``Saves``. Set once, before the first connection.
    private let inBackground = BackgroundRunner()

    func runInBackground(by runner: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        inBackground.set(runner)
    }

    /// - Returns: false when that is under way.
    func startSaving() -> Bool {
        guard saves.begin() else { return false }
        inBackground.run { [self] in
            do throws(LarderError) { try saves.save(engine) } catch { errors.count(CommandError(error).bytes) }
            saves.end()
        }
        return true
    }

    func requestStop(_ reason: String) { stopHandler(reason) }
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

/// Runs work on a thread that may block, once somebody said how; at once before.
///
/// Thread-safe. The proof for `@unchecked Sendable`: guarded by the lock.
final class BackgroundRunner: @unchecked Sendable {
    private let lock = Lock()
    private var runner: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    func set(_ runner: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        lock.withLock { self.runner = runner }
    }

    func run(_ work: @escaping @Sendable () -> Void) {
        if let runner = lock.withLock({ runner }) { runner(work) } else { work() }
    }
}
