import LarderPlatform

/// The background work of a larder. The sync thread syncs the journal. It does nothing that may take long, because the
/// durability mode "every second" promises a sync each second. The maintenance thread does work that may take long: it
/// retries failed writes, passes on reports of damage, removes expired entries, and removes purged files. The
/// ``Compactor``, ``Salvager``, ``Checkpointer``, ``Evictor`` and ``IndexWork`` have their own threads.
///
/// With ``EngineOptions/startsThreadsOnDemand``, a larder starts only the maintenance thread, and the sync thread if
/// its durability requires background syncs. The other threads start when there is work for them.
///
/// Thread-safe.
final class Maintenance: Sendable {
    /// What a round of work needs to know about earlier rounds.
    private struct Progress {
        var sweepers: [ObjectIdentifier: Sweeper] = [:]
        var unopened = UnopenedDatabases()
    }

    private let context: EngineContext
    private let table: DatabaseTable
    private let damage: DamageReports
    private let journal: CommitJournal
    private let checkpointer: Checkpointer
    private let evictor: Evictor
    private let observation: Observation
    private let workLoop = BackgroundLoop()
    private let syncLoop = BackgroundLoop()
    private let compactor: Compactor
    private let salvager: Salvager
    private let indexWork: IndexWork
    private let progress = Locked(Progress())
    private let lastSync = Locked<Int64?>(nil)
    private let lastMeasurement = Locked<Int64>(.min / 2)
    private let nextTrim = Locked<Int64>(.min / 2)

    /// The pause between two rounds while there are more expired entries to remove, in milliseconds. Other work can run
    /// during the pause.
    private static let pauseWhileSweeping: Int64 = 5
    /// The time in milliseconds from the start of one fsync until the next is due. With a round every 250 ms, there is
    /// at least one fsync a second.
    private static let syncMilliseconds: Int64 = 700

    /// The least time in milliseconds between two returns of freed memory to the system. These take some milliseconds, but
    /// longer in a program with much other memory: then the pause is longer too.
    private static let trimPauses: (least: Int64, multiple: Int64) = (2_000, 500)

    init(
        context: EngineContext, table: DatabaseTable, damage: DamageReports, journal: CommitJournal,
        checkpointer: Checkpointer, evictor: Evictor, observation: Observation
    ) {
        self.context = context
        self.table = table
        self.damage = damage
        self.journal = journal
        self.checkpointer = checkpointer
        self.evictor = evictor
        self.observation = observation
        compactor = Compactor(context: context)
        salvager = Salvager(context: context, table: table)
        indexWork = IndexWork(context) { table.all }
    }

    /// Starts the sync thread, unless the maintenance thread syncs.
    func startSyncing() {
        guard promisesSyncs else { return }
        syncLoop.start("larder-sync") { [self] in
            syncIfDue()
            return context.options.maintenanceMilliseconds
        }
    }

    /// Whether the durability requires syncs in the background.
    private var promisesSyncs: Bool { context.options.durability != .os || !context.options.startsThreadsOnDemand }

    /// Starts the other threads.
    func start() {
        let onDemand = context.options.startsThreadsOnDemand
        compactor.start(onDemand: onDemand)
        salvager.start(onDemand: onDemand)
        checkpointer.start(onDemand: onDemand)
        evictor.start(onDemand: onDemand)
        indexWork.start()
        let pause = context.options.maintenanceMilliseconds
        workLoop.start("larder-maintain") { [self] in
            if !promisesSyncs { syncIfDue() }
            checkpointer.startIfOld()
            evictor.measureWithoutThread()
            measureMemory()
            return work() ? min(pause, Self.pauseWhileSweeping) : pause
        }
    }

    func stop() {
        salvager.stop()
        syncLoop.stop()
        workLoop.stop()
        indexWork.stop()
        evictor.stop()
        checkpointer.stop()
        compactor.stop()
    }

    func wake() { workLoop.wake() }

    /// Runs one round of all work on the caller's thread. The amount of work is limited.
    /// - Returns: whether there are more expired entries to remove now.
    func round() -> Bool {
        syncIfDue()
        // If there are no background threads, do their work here.
        let isAlone = !context.options.backgroundMaintenance
        if isAlone { checkpointer.checkpointIfDirty() }
        let more = work()
        if isAlone {
            while evictor.round() {}
            while compactor.step() {}
            while indexWork.round() {}
        }
        return more
    }

    private func work() -> Bool {
        progress.withLock { progress in
            passOnDamageReports()
            let databases = table.all
            for database in databases { database.durableState.store?.suspendIfGone() }
            recover(databases)
            writeMissingPointers(databases)
            retryOpening(databases)
            let isExpiryHeld = context.expiryHold.isPaused
            let more = isExpiryHeld ? false : sweep(databases, &progress)
            progress.unopened.look(databases, lastUnit: journal.lastAppended, isBusy: more, context)
            for database in databases { database.leases.dropEnded() }
            if !isExpiryHeld { observation.notifyExpired(table.find) }
            context.disposalQueue.clear { context.report($0, $1) }
            indexWork.lookForDropped(databases)
            trimMemory()
            return more
        }
    }

    /// Measures the memory of the process, if the memory limit includes it.
    private func measureMemory() {
        guard context.options.memoryIncludesProcess, context.memory.isOn else { return }
        let now = context.time.monotonic()
        let isDue = lastMeasurement.withLock { last in
            if now - last < MemoryBudget.measurementMilliseconds { return false }
            last = now
            return true
        }
        guard isDue, let memory = ProcessMemory.measure() else { return }
        context.memory.residentPeak.max(memory.residentBytes, ordering: .relaxed)
        context.memory.note(residentBytes: memory.ownBytes)
    }

    /// Returns the memory that checkpoints have freed to the system: their buffers, and what new entries take until
    /// they are in LevelDB.
    private func trimMemory() {
        let now = context.time.monotonic()
        nextTrim.withLock { next in
            guard now >= next, context.hasFreedMemory.exchange(false, ordering: .relaxed) else { return }
            ProcessMemory.trim()
            let end = context.time.monotonic()
            next = end + max(Self.trimPauses.least, Self.trimPauses.multiple * (end - now))
        }
    }

    private func passOnDamageReports() {
        for report in damage.take() {
            if report.store != nil {
                context.reportDamage(
                    "database '\(report.databaseName)' is damaged: \(report.error.message)",
                    database: report.databaseName)
            }
            if context.options.onDamage == .salvage { salvager.request(report) }
        }
        if !context.options.backgroundMaintenance { _ = salvager.round() }
    }

    /// Tries again to open databases that could not be opened because of an I/O error, which may be temporary.
    private func retryOpening(_ databases: [Database]) {
        for database in databases {
            guard case .failed(let error) = database.durableState.presence, error.code == .io else { continue }
            do throws(LarderError) {
                try database.prepare(forWriting: false)
            } catch {
                context.report(
                    .debug, "database '\(database.name)' cannot be opened yet: \(error)", database: database.name)
            }
        }
    }

    private func recover(_ databases: [Database]) {
        for database in databases {
            guard let store = database.durableState.store, store.isSuspended, !store.isFrozen else { continue }
            do throws(LarderError) {
                try database.prepare(forWriting: true)
            } catch {
                context.report(
                    .debug, "database '\(database.name)' cannot be reopened yet: \(error)", database: database.name)
            }
        }
    }

    private func writeMissingPointers(_ databases: [Database]) {
        for database in databases {
            do throws(LarderError) {
                try database.recordFilesInPointer()
            } catch {
                context.report(
                    .debug, "POINTER of database '\(database.name)' is not written yet: \(error)",
                    database: database.name)
            }
        }
    }

    private func syncIfDue() {
        journal.checkFiles()
        journal.reserveSequencesIfNeeded()
        context.timeKeeper.note()
        let now = context.time.monotonic()
        let isDue = lastSync.withLock { lastSync in
            if let lastSync, now - lastSync < Self.syncMilliseconds { return false }
            lastSync = now
            return true
        }
        guard isDue else { return }
        do throws(LarderError) {
            try journal.syncIfNeeded()
        } catch {
            context.report(
                .error,
                "fsync of the journal failed; writes of the last second may not survive a machine failure: \(error)"
            )
        }
        context.timeKeeper.sync()
    }

    private func sweep(_ databases: [Database], _ progress: inout Progress) -> Bool {
        var more = false
        var kept: [ObjectIdentifier: Sweeper] = [:]
        for database in databases {
            let id = ObjectIdentifier(database)
            var sweeper = progress.sweepers[id] ?? Sweeper()
            sweeper.databases = databases.count
            do throws(LarderError) {
                if try sweeper.step(database) {
                    more = true
                } else if let store = sweeper.takeCompactable(database) {
                    compactor.request(store)
                }
            } catch {
                context.report(
                    .debug, "sweeping database '\(database.name)' stopped: \(error)", database: database.name)
            }
            kept[id] = sweeper
        }
        progress.sweepers = kept
        return more
    }
}

/// Opens databases that have not been used since the start, so that the sweep can remove their expired entries. Opens
/// at most one per round, and only while the larder is idle, so as not to delay readers and writers.
///
/// Examines each database once. If its files are too small to matter, it stays closed.
///
/// Used only by the maintenance thread.
struct UnopenedDatabases {
    /// The databases that have been examined.
    private var seen: Set<ObjectIdentifier> = []
    /// The larder's last commit unit at the last call, and the time of its last change, in monotonic milliseconds.
    private var lastUnit: UInt64 = 0
    private var unchangedSince: Int64?

    /// The maximum number of databases whose files are measured per round.
    private static let databasesPerRound = 16

    /// - Parameters:
    ///   - lastUnit: the last commit unit of the larder.
    ///   - isBusy: whether the sweep has more expired entries to remove now.
    mutating func look(_ databases: [Database], lastUnit: UInt64, isBusy: Bool, _ context: EngineContext) {
        let monotonic = context.time.monotonic()
        if unchangedSince == nil || lastUnit != self.lastUnit {
            (self.lastUnit, unchangedSince) = (lastUnit, monotonic)
        }
        guard let since = unchangedSince, monotonic - since >= Sweeper.restMilliseconds, !isBusy else { return }
        let closed = databases.filter { $0.durableState.isClosed && !seen.contains(ObjectIdentifier($0)) }
        for database in closed.prefix(Self.databasesPerRound) {
            seen.insert(ObjectIdentifier(database))
            let least = 2 * Sweeper.leastBytes(sharedBy: databases.count, context)
            guard FileSystem.size(database.files.directory) >= least else { continue }
            do throws(LarderError) {
                // If this returns false, another thread is opening the database.
                guard try database.prepareUnlessBusy() else { continue }
                context.report(.debug, "database '\(database.name)' was opened to be swept", database: database.name)
            } catch {
                context.report(
                    .debug, "database '\(database.name)' was not opened to be swept: \(error)", database: database.name)
            }
            return
        }
    }
}
