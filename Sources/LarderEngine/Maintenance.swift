import Threading

/// The background work of a larder, on a thread of its own: retries after failed writes, the sync of every second,
/// sweeping, closing and removing what was purged, setting damage aside.
///
/// Thread-safe. The proof for `@unchecked Sendable`: `sweepers`, `lastSync` and `retryAt` are guarded by `roundLock`,
/// the rest of the state by `lock`.
final class Maintenance: @unchecked Sendable {
    private let context: EngineContext
    private let table: DatabaseTable
    private let damage: DamageReports
    private let roundLock = Lock()
    private var sweepers: [ObjectIdentifier: Sweeper] = [:]
    private var lastSync: Int64 = 0

    private let lock = Lock()
    private let wakeUp = Condition()
    private var isStopping = false
    private var isWoken = false
    private var thread: WorkThread?

    /// Rounds of sweeping that follow each other leave this much time to others, in milliseconds.
    private static let pauseWhileSweeping: Int64 = 5
    /// An fsync is due when the last is this long ago, in milliseconds: with rounds every 250 ms, at least one a second.
    private static let syncMilliseconds: Int64 = 700

    init(context: EngineContext, table: DatabaseTable, damage: DamageReports) {
        self.context = context
        self.table = table
        self.damage = damage
    }

    func start() {
        lock.withLock {
            thread = WorkThread(name: "larder-maintain") { [self] in run() }
        }
    }

    func stop() {
        let thread = lock.withLock {
            isStopping = true
            wakeUp.broadcast()
            defer { self.thread = nil }
            return self.thread
        }
        thread?.join()
    }

    func wake() {
        lock.withLock {
            isWoken = true
            wakeUp.signal()
        }
    }

    private func run() {
        lock.lock()
        while !isStopping {
            lock.unlock()
            let more = round()
            lock.lock()
            if isStopping { break }
            if !isWoken {
                wakeUp.wait(
                    lock, milliseconds: more ? Self.pauseWhileSweeping : context.options.maintenanceMilliseconds)
            }
            isWoken = false
        }
        lock.unlock()
    }

    /// One bounded round.
    /// - Returns: whether there is more to sweep now.
    func round() -> Bool {
        roundLock.withLock {
            setDamageAside()
            let databases = table.all
            recover(databases)
            syncIfDue(databases)
            let more = sweep(databases)
            context.graveyard.clear(report: context.report)
            return more
        }
    }

    private func setDamageAside() {
        for report in damage.take() {
            context.report(.error, "database '\(report.database.name)' is damaged: \(report.error.message)")
            guard context.options.onDamage == .setAside else { continue }
            do throws(LarderError) {
                try report.database.setAside(report.store)
            } catch {
                context.report(.error, "could not set database '\(report.database.name)' aside: \(error)")
            }
        }
    }

    private func recover(_ databases: [Database]) {
        for database in databases {
            guard let store = database.durableState.store, store.isSuspended else { continue }
            do throws(LarderError) {
                try database.prepare(forWriting: true)
                context.report(
                    .info, "database '\(database.name)' was reopened after a failed write and takes writes again")
            } catch {
                context.report(.debug, "database '\(database.name)' cannot be reopened yet: \(error)")
            }
        }
    }

    private func syncIfDue(_ databases: [Database]) {
        guard context.options.durability != .os else { return }
        let now = context.time.monotonic()
        guard now - lastSync >= Self.syncMilliseconds else { return }
        lastSync = now
        for database in databases {
            guard let store = database.durableState.store else { continue }
            do throws(LarderError) {
                try store.syncIfNeeded()
            } catch {
                context.report(
                    .error,
                    "fsync of database '\(database.name)' failed; writes of the last second may not survive "
                        + "a failure of the machine: \(error)")
            }
        }
    }

    private func sweep(_ databases: [Database]) -> Bool {
        var more = false
        var kept: [ObjectIdentifier: Sweeper] = [:]
        for database in databases {
            let id = ObjectIdentifier(database)
            var sweeper = sweepers[id] ?? Sweeper()
            do throws(LarderError) {
                if try sweeper.step(database) { more = true }
            } catch {
                context.report(.debug, "sweeping database '\(database.name)' stopped: \(error)")
            }
            kept[id] = sweeper
        }
        sweepers = kept
        return more
    }
}
