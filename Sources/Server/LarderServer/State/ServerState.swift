import LarderEngine
import LarderOriginClients
import LarderPlatform
import LarderQuerying
import Synchronization

/// The state that all connections of a server share. Thread-safe.
package final class ServerState: Sendable {
    package let engine: Engine
    /// The engine's pipeline. Stored here, because reading it from the engine would count references for every write.
    let pipeline: CommitPipeline
    package let limits: Limits
    package let standardDatabase: Database
    let scanCursors: ScanCursors
    let socketPath: String
    let socketAccess: SocketAccess
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
    let saves: LongWork
    let backups = LongWork("backup")
    let checks = LongWork("check")
    /// A random text of 40 hexadecimal digits, which identifies this run of the daemon.
    let runID: String
    /// Commands that no user may run.
    let disabledCommands: CommandSet
    let access: AccessControl
    /// The path of the configuration file; empty if there is none.
    let configurationPath: String
    /// The number of connections that the limit of open descriptors allows, to clients and to origins: see
    /// ``DescriptorBudget``.
    private let connectionsMax: Int
    /// Whether each command needs additional checks, because of CLIENT PAUSE, MONITOR, a low threshold of SLOWLOG, or
    /// the replay of the journal.
    let hasAttention = Atomic<Bool>(false)
    package let clients = Atomic<Int>(0)
    let clientsSeen = Atomic<Int>(0)
    let clientsRefused = Atomic<Int>(0)
    /// The number of clients that were disconnected because of ``Settings/outputBytesMax``.
    let clientsEvicted = Atomic<Int>(0)
    /// The size of the unread output of all clients, in bytes, at the last ticks of the event loops.
    let unreadOutput = Atomic<Int>(0)
    /// The number of connections whose next command waits for the end of CLIENT PAUSE, or for the replay of the journal.
    let clientsPaused = Atomic<Int>(0)
    /// The number of commands that were dropped because their clients had disconnected.
    let commandsDropped = Atomic<Int>(0)
    let counts = EntryCounts()
    let pubsub: PubSub
    let scripts: ScriptCache
    let functions: FunctionLibraries
    let origins: OriginTable
    let log: Log
    let scriptLines: LimitedLines
    /// Limits the log lines about closed connections, because a client may connect again and again.
    let closedLines: LimitedLines
    /// Limits the log lines about purges of whole databases.
    let purgeLines: LimitedLines
    let tracking: Tracking
    /// Sends keyspace notifications, and sends invalidations to clients that use CLIENT TRACKING.
    package let notifier: Notifier
    private let changePublisher: ChangePublisher
    let live: LiveQueries
    private let nextClient = Atomic<Int>(1)
    private let stopHandler: @Sendable (String) -> Void
    /// Called before a session runs on a thread that may block. Tests use it to make that thread wait.
    let beforeColdSlice: (@Sendable () -> Void)?
    /// Called with the command's name before deferred work, on the thread of that work. Tests use it to make that
    /// thread wait.
    let beforeWork: (@Sendable (String) -> Void)?

    package init(
        engine: Engine, limits: Limits = Limits(), socketPath: String = "",
        socketAccess: SocketAccess = SocketAccess(), threadCount: Int = 1,
        password: [UInt8]? = nil, passwordPath: String = "", configurationPath: String = "",
        disabledCommands: CommandSet = CommandSet(), rules: AccessRules = AccessRules(),
        connectionsMax: Int = .max, log: Log = .none, origins: @escaping OriginFactory = OriginTable.redis,
        beforeColdSlice: (@Sendable () -> Void)? = nil, beforeWork: (@Sendable (String) -> Void)? = nil,
        onStopRequest: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(LarderError) {
        self.engine = engine
        pipeline = engine.pipeline
        self.limits = limits
        self.socketPath = socketPath
        self.socketAccess = socketAccess
        self.disabledCommands = disabledCommands
        self.threadCount = threadCount
        self.beforeColdSlice = beforeColdSlice
        self.beforeWork = beforeWork
        self.configurationPath = configurationPath
        self.connectionsMax = connectionsMax
        self.log = log
        let clock: @Sendable () -> Int64 = { [clock = engine.clock] in clock.monotonic() }
        access = AccessControl(rules, log: log, clock: clock)
        scriptLines = .ofScripts(log, clock: clock)
        closedLines = LimitedLines(log, clock: clock, rest: { LineRate.rest($0, "clients disconnected") })
        purgeLines = LimitedLines(log, clock: clock, rest: { LineRate.rest($0, "purges") })
        scripts = ScriptCache(
            evaluatedMax: Limits.evaluatedScriptsMax, bytesMax: limits.scriptsBytesMax,
            memoryMax: limits.scriptMemoryMax)
        functions = FunctionLibraries(
            ledger: engine.ledger, directory: engine.directory, bytesMax: limits.scriptsBytesMax, scripts: scripts,
            now: engine.now(),
            log: log, lines: scriptLines)
        settings = Settings(limits: limits, password: password, passwordPath: passwordPath)
        slowLog.threshold.store(limits.slowMicroseconds, ordering: .relaxed)
        slowLog.changeLength(limits.slowCommandsMax)
        latency.threshold.store(limits.latencyMilliseconds, ordering: .relaxed)
        saves = LongWork("save", last: engine.now() / 1000)
        runID = String((0..<40).map { _ in "0123456789abcdef".randomElement() ?? "0" })
        pubsub = PubSub(pendingBytesMax: limits.undeliveredBytesMax)
        tracking = Tracking(keysMax: limits.trackedKeysMax) { [clientRegistry] in clientRegistry.queue($0) }
        notifier = Notifier(
            engine: engine, pubsub: pubsub, tracking: tracking, deadlineBytesMax: limits.deadlineBytesMax)
        changePublisher = ChangePublisher(engine: engine, pubsub: pubsub)
        live = LiveQueries(engine, QueryLimits(limits)) { try? engine.database($0.name) }
        stopHandler = onStopRequest
        let background = inBackground
        self.origins = OriginTable(
            larder: runID, limits: limits.origin, keysMax: limits.originKeysMax,
            OriginTier.Surroundings(
                engine: engine, log: log,
                notify: { [changes = engine.changes] in changes.publishOutdated($1, of: $0) },
                background: { background.run($0) }), make: origins)
        standardDatabase = try engine.database(DatabaseName.standard)
        scanCursors = ScanCursors(most: limits.scanCursorsMax)
        startedAt = engine.monotonic()
        noteAttention()
    }

    /// The password for AUTH; nil for none.
    var password: [UInt8]? { settings.password }

    /// The number of clients for which there are descriptors.
    var clientsPossible: Int { max(1, connectionsMax - origins.descriptorCount.read()) }

    /// The maximum number of open connections.
    var clientsMax: Int { min(settings.clientsMax.read(), clientsPossible) }

    /// The address that CLIENT LIST shows for every connection.
    var clientAddress: String { "\(socketPath):0" }

    package func newClientID() -> Int64 { Int64(nextClient.wrappingAdd(1, ordering: .relaxed).oldValue) }

    /// Purges entries of a database. If the database is an outbox, also updates the index of its queued writes. May
    /// block.
    func purge(_ database: Database, _ selection: PurgeSelection) throws(LarderError) -> PurgeReport {
        let report = try database.purge(selection)
        try origins.outboxPurged(database.name)
        return report
    }

    /// Whether there are too many uncommitted writes or undelivered messages, so that writers and publishers must wait.
    var isCongested: Bool { pipeline.isCongested || pubsub.isCongested }

    /// Whether the journal has been replayed, and the origins are set up.
    var isReplayed: Bool { engine.isReplayed && !origins.isLoading.load(ordering: .acquiring) }

    /// Updates ``hasAttention``. Call it after a change of CLIENT PAUSE, of MONITOR, or of the threshold of SLOWLOG, and
    /// at the end of the replay.
    func noteAttention() {
        let threshold = slowLog.threshold.load(ordering: .relaxed)
        // Commands in memory take less than 1 ms, so they need not be timed for a higher threshold.
        let logsAll = threshold >= 0 && threshold < 1000
        hasAttention.store(
            logsAll || !monitors.isEmpty || pause.isOn(engine.monotonic()) || !isReplayed, ordering: .relaxed)
    }

    /// Sets ``SlowLog/threshold``, in microseconds.
    func changeSlowThreshold(_ microseconds: Int64) {
        slowLog.threshold.store(microseconds, ordering: .relaxed)
        noteAttention()
    }

    /// Resets the counters that CONFIG RESETSTAT resets in Redis.
    func resetStatistics() {
        statistics.reset()
        engine.statistics.resetReads()
        errors.reset()
        access.resetCounts()
        clientsSeen.store(0, ordering: .relaxed)
        clientsRefused.store(0, ordering: .relaxed)
        clientsEvicted.store(0, ordering: .relaxed)
        engine.resetResidentPeak()
    }

    /// Runs work such as a save on a thread that may block. Set up once, before the first connection.
    private let inBackground = BackgroundRunner()

    func runInBackground(by runner: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        inBackground.set(runner)
    }

    /// Starts a save on a thread that may block.
    /// - Returns: false if a save is running already.
    func startSaving() -> Bool {
        guard saves.begin() else { return false }
        inBackground.run { [self] in
            do throws(LarderError) { try save() } catch { errors.count(CommandError(error).bytes) }
            saves.finish()
        }
        return true
    }

    /// Writes all committed entries to the databases, and syncs the files. May block. If several saves in a row fail,
    /// only the first failure is logged.
    func save() throws(LarderError) {
        let changes = changes
        do throws(LarderError) {
            try engine.save()
        } catch {
            if !saves.note(end: nil) { log.error("a save failed: \(error)") }
            throw error
        }
        _ = saves.note(end: engine.now() / 1000)
        changesAtSave.store(changes, ordering: .relaxed)
    }

    /// The number of stores and removals so far.
    private var changes: Int { engine.statistics.writes.read() + engine.statistics.removals.read() }
    /// The value of ``changes`` before the last successful save began.
    private let changesAtSave = Atomic<Int>(0)

    /// The number of stores and removals since the last save, or since the start if there was none.
    var changesSinceSave: Int { max(0, changes - changesAtSave.read()) }

    /// Disconnects the clients with the most unread output while all clients have more than the limit together. Called
    /// on every tick of the first event loop.
    ///
    /// As in Redis, a client that has sent `CLIENT NO-EVICT ON` stays connected.
    func limitOutput() {
        let most = settings.outputBytesMax.read()
        guard most > 0, unreadOutput.read() > most else { return }
        // Clients that are being disconnected still have their output, but not for long.
        let clients = clientRegistry.all.filter { !$0.isKilled.load(ordering: .relaxed) }
            .map { (record: $0, bytes: $0.outputBytes.read()) }
            .sorted { $0.bytes > $1.bytes }
        var sum = clients.reduce(0) { $0 + $1.bytes }
        for (record, bytes) in clients where !record.isNoEvict.load(ordering: .relaxed) {
            guard sum > most, bytes > 0 else { return }
            record.close(
                "\(bytes) bytes of output were unread, and \(sum) of all clients, for which the limit is \(most) "
                    + "(--max-output)")
            clientsEvicted.add(1)
            sum -= bytes
        }
    }

    func requestStop(_ reason: String) { stopHandler(reason) }
}

/// Runs work on a thread that may block. Until `set` has been called, the work runs on the caller's thread.
/// Thread-safe.
final class BackgroundRunner: Sendable {
    private struct Runner {
        var run: @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() }
    }

    private let runner = Locked(Runner())

    func set(_ runner: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        self.runner.withLock { $0.run = runner }
    }

    func run(_ work: @escaping @Sendable () -> Void) { runner.withLock { $0 }.run(work) }
}

/// The state of CLIENT PAUSE. Until a given time, either all commands wait, or only writes.
///
/// Thread-safe. While a pause changes, a reader may see one old and one new value, because each is atomic by itself.
final class ClientPause: Sendable {
    /// The end of the pause, in milliseconds of the monotonic clock.
    private let until = Atomic<Int64>(0)
    private let isForAll = Atomic<Bool>(false)

    /// Starts a pause, or changes the running one. As in Redis, a running pause is never shortened. If it holds all
    /// commands, it continues to do so.
    /// - Returns: the end of the pause.
    func begin(until end: Int64, all: Bool, now: Int64) -> Int64 {
        let isUnderWay = isOn(now)
        let wasForAll = isForAll.load(ordering: .relaxed)
        isForAll.store(all || isUnderWay && wasForAll, ordering: .relaxed)
        let end = isUnderWay ? max(end, until.load(ordering: .relaxed)) : end
        until.store(end, ordering: .relaxed)
        return end
    }

    func end() { until.store(0, ordering: .relaxed) }

    func isOn(_ now: Int64) -> Bool { now < until.load(ordering: .relaxed) }

    /// Whether a command must wait for the end of the pause.
    func holds(isWrite: Bool, now: Int64) -> Bool { isOn(now) && (isWrite || isForAll.load(ordering: .relaxed)) }
}
