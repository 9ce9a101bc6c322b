import LarderPlatform
import Synchronization

/// The background work of a larder, on three threads. The first one syncs. It must not wait for other work, because
/// every-second durability is a promise. The second one does work that may take long: retries after failed writes,
/// setting damage aside, sweeping, and closing and removing purged files. The third, that of the ``Compactor``, does
/// the longest work.
///
/// With ``EngineOptions/startsThreadsOnDemand`` a larder starts with the second thread, and with the first one if its
/// durability requires background syncs. The others start when there is work for them.
///
/// Thread-safe. `@unchecked Sendable`: `sweepers` and `unopened` are guarded by `roundLock`, `lastSync` by `syncLock`;
/// the rest is constant and itself thread-safe.
final class Maintenance: @unchecked Sendable {
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
    private let roundLock = Lock()
    private var sweepers: [ObjectIdentifier: Sweeper] = [:]
    private var unopened = UnopenedDatabases()
    private let syncLock = Lock()
    private var lastSync: Int64?
    /// Until this instant of the monotonic clock expired entries are neither removed nor reported.
    let expiryHeldUntil = Atomic<Int64>(0)

    /// The pause between two rounds of sweeping, in milliseconds, in which other work can run.
    private static let pauseWhileSweeping: Int64 = 5
    /// The time in milliseconds since the start of the last fsync after which the next is due. With rounds every 250
    /// ms, there is at least one fsync a second.
    private static let syncMilliseconds: Int64 = 700

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
    }

    func start() {
        let onDemand = context.options.startsThreadsOnDemand
        compactor.start(onDemand: onDemand)
        salvager.start(onDemand: onDemand)
        checkpointer.start(onDemand: onDemand)
        evictor.start(onDemand: onDemand)
        let pause = context.options.maintenanceMilliseconds
        let promisesSyncs = context.options.durability != .os || !onDemand
        workLoop.start("larder-maintain") { [self] in
            if !promisesSyncs { syncIfDue() }
            checkpointer.startIfOld()
            evictor.lookWithoutThread()
            return work() ? min(pause, Self.pauseWhileSweeping) : pause
        }
        guard promisesSyncs else { return }
        syncLoop.start("larder-sync") { [self] in
            syncIfDue()
            return pause
        }
    }

    func stop() {
        salvager.stop()
        syncLoop.stop()
        workLoop.stop()
        evictor.stop()
        checkpointer.stop()
        compactor.stop()
    }

    func wake() { workLoop.wake() }

    /// Runs one bounded round of all work, on the caller's thread.
    /// - Returns: whether there is more to sweep now.
    func round() -> Bool {
        syncIfDue()
        // The background threads do this if they run.
        let isAlone = !context.options.backgroundMaintenance
        if isAlone { checkpointer.checkpointIfDirty() }
        let more = work()
        if isAlone {
            while evictor.round() {}
            while compactor.step() {}
        }
        return more
    }

    var isExpiryHeld: Bool { context.time.monotonic() < expiryHeldUntil.load(ordering: .relaxed) }

    private func work() -> Bool {
        roundLock.withLock {
            handDamageOn()
            let databases = table.all
            for database in databases { database.durableState.store?.suspendIfGone() }
            recover(databases)
            settle(databases)
            retryOpening(databases)
            let isExpiryHeld = isExpiryHeld
            let more = isExpiryHeld ? false : sweep(databases)
            unopened.look(databases, lastUnit: journal.lastAppended, isBusy: more, context)
            for database in databases { database.dropEndedLeases() }
            if !isExpiryHeld { observation.notifyExpired() }
            context.disposalQueue.clear(report: context.report)
            return more
        }
    }

    private func handDamageOn() {
        for report in damage.take() {
            if report.store != nil {
                context.report(.error, "database '\(report.databaseName)' is damaged: \(report.error.message)")
            }
            if context.options.onDamage == .salvage { salvager.request(report) }
        }
        if !context.options.backgroundMaintenance { _ = salvager.round() }
    }

    /// Opens databases whose opening failed for a reason that may be temporary.
    private func retryOpening(_ databases: [Database]) {
        for database in databases {
            guard case .failed(let error) = database.durableState.presence, error.code == .io else { continue }
            do throws(LarderError) {
                try database.prepare(forWriting: false)
            } catch {
                context.report(.debug, "database '\(database.name)' cannot be opened yet: \(error)")
            }
        }
    }

    private func recover(_ databases: [Database]) {
        for database in databases {
            guard let store = database.durableState.store, store.isSuspended, !store.isFrozen else { continue }
            do throws(LarderError) {
                try database.prepare(forWriting: true)
                context.report(
                    .info, "database '\(database.name)' was reopened after a failed write and accepts writes again")
            } catch {
                context.report(.debug, "database '\(database.name)' cannot be reopened yet: \(error)")
            }
        }
    }

    private func settle(_ databases: [Database]) {
        for database in databases {
            do throws(LarderError) {
                try database.settlePointer()
            } catch {
                context.report(.debug, "POINTER of database '\(database.name)' is not written yet: \(error)")
            }
        }
    }

    private func syncIfDue() {
        journal.look()
        journal.reserveSequencesIfNeeded()
        context.timeKeeper.note()
        let now = context.time.monotonic()
        let isDue = syncLock.withLock {
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

    private func sweep(_ databases: [Database]) -> Bool {
        var more = false
        var kept: [ObjectIdentifier: Sweeper] = [:]
        for database in databases {
            let id = ObjectIdentifier(database)
            var sweeper = sweepers[id] ?? Sweeper()
            sweeper.databases = databases.count
            do throws(LarderError) {
                if try sweeper.step(database) {
                    more = true
                } else if let store = sweeper.takeCompactable(database) {
                    compactor.request(store)
                }
            } catch {
                context.report(.debug, "sweeping database '\(database.name)' stopped: \(error)")
            }
            kept[id] = sweeper
        }
        sweepers = kept
        return more
    }
}
