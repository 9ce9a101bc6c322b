import Synchronization
import Threading

/// Told when commits are decided. Called by whichever thread committed; must be short and must not block.
package protocol CommitObserver: AnyObject, Sendable {
    /// Every sequence up to `sequence` that was not decided before is now committed (`failure` is nil) or failed.
    func commitsDecided(upTo sequence: UInt64, failure: LarderError?)
}

/// Takes applied units in order and makes them durable in groups.
///
/// - Units are queued under the shard locks of what they change, so the order of sequences is the order of application.
/// - One thread at a time leads: it takes all that is queued and commits it as one group. A caller that waits becomes
///   the leader when there is none; for callers that do not wait, ``wake()`` starts the pipeline's own thread.
/// - When a commit fails, what of its group was durable already stays so; the rest fails, and every unit that is queued
///   with it, and the overlays go back to what is durable.
///
/// Thread-safe. The proof for `@unchecked Sendable`: all state below "guarded" is read and written with `lock` held.
/// Lock order: the table of databases, shard locks (databases by number, shards by index), `lock`.
package final class CommitPipeline: @unchecked Sendable {
    private let context: EngineContext
    private let sink: any CommitSink
    private let databases: DatabaseTable
    private let decided = Atomic<UInt64>(0)
    /// The highest sequence that ever failed: who waited for a later one need not look for its failure.
    private let lastFailed = Atomic<UInt64>(0)
    private let pendingBytes = Atomic<Int>(0)

    private let lock = Lock()
    private let work = Condition()
    private let progress = Condition()
    // Guarded by `lock`:
    private var queue: [CommitUnit] = []
    private var lastSequence: UInt64 = 0
    private var isLed = false
    private var waiting = 0
    private var isStopping = false
    private var hasIdleThread = false
    /// Whether the pipeline's own thread is to commit what is queued.
    private var isWoken = false
    private var failures = CommitFailures()
    private var observers: [any CommitObserver] = []
    private var thread: WorkThread?

    init(context: EngineContext, sink: any CommitSink, databases: DatabaseTable) {
        self.context = context
        self.sink = sink
        self.databases = databases
    }

    // MARK: Queueing

    /// Queues a unit. Called with the shard locks held of everything the unit changes.
    /// - Returns: the unit's sequence.
    func enqueue(_ unit: CommitUnit) -> UInt64 {
        var unit = unit
        pendingBytes.add(unit.byteCount)
        return lock.withLock {
            lastSequence += 1
            unit.sequence = lastSequence
            queue.append(unit)
            return lastSequence
        }
    }

    /// A ticket for everything that is applied by now.
    package var everythingApplied: CommitTicket { CommitTicket(sequence: lock.withLock { lastSequence }) }

    /// Whether so much waits to be committed that writers should wait too.
    package var isCongested: Bool { pendingBytes.load(ordering: .relaxed) > context.options.pendingBytesMax }

    /// Bytes that wait to be committed.
    package var pendingByteCount: Int { pendingBytes.load(ordering: .relaxed) }

    // MARK: Waiting

    /// Whether what the ticket stands for is decided. One atomic load.
    package func isDecided(_ ticket: CommitTicket) -> Bool {
        ticket.sequence <= decided.load(ordering: .acquiring)
    }

    /// Waits until what the ticket stands for is committed, committing it on this thread if nobody else does.
    /// - Throws: the error of the commit if it failed.
    package func wait(for ticket: CommitTicket) throws(LarderError) {
        try ForkGuard.check("commit")
        awaitDecision(ticket)
        if let failure = failure(of: ticket) { throw failure }
    }

    /// The error of the commit that a decided ticket stands for, if it failed. One atomic load while none failed.
    package func failure(of ticket: CommitTicket) -> LarderError? {
        // `decided` was read with acquiring order after `lastFailed` was written.
        guard ticket.sequence > 0, ticket.sequence <= lastFailed.load(ordering: .relaxed) else { return nil }
        return lock.withLock { failures.error(of: ticket.sequence) }
    }

    private func awaitDecision(_ ticket: CommitTicket) {
        if isDecided(ticket) { return }
        lock.lock()
        waiting += 1
        while !isDecided(ticket) {
            if isLed {
                progress.wait(lock)
            } else {
                lead(until: ticket.sequence)
            }
        }
        waiting -= 1
        lock.unlock()
    }

    /// Waits until everything applied before the call is committed.
    /// - Throws: the error of the unit applied last, if that one failed.
    package func settle() throws(LarderError) { try wait(for: everythingApplied) }

    /// Waits until everything applied before the call is decided: committed, or failed and taken back. For those who
    /// then look at what is durable, and whom the failure of others does not concern.
    func drain() { awaitDecision(everythingApplied) }

    /// Makes sure that what is queued gets committed soon, without waiting for it.
    package func wake() {
        lock.withLock {
            if !queue.isEmpty, !isLed { wakeThread() }
        }
    }

    /// Called with `lock` held.
    private func wakeThread() {
        guard hasIdleThread else { return }
        isWoken = true
        work.signal()
    }

    package func add(observer: any CommitObserver) { lock.withLock { observers.append(observer) } }

    package func remove(observer: any CommitObserver) {
        lock.withLock { observers.removeAll { $0 === observer } }
    }

    // MARK: Leading

    /// Commits groups until `sequence` is decided and then leaves the rest to others. Called and left with `lock` held.
    private func lead(until sequence: UInt64) {
        isLed = true
        while !queue.isEmpty, sequence > decided.load(ordering: .relaxed) {
            let group = queue
            queue = []
            lock.unlock()
            commit(group)
            lock.lock()
        }
        isLed = false
        if waiting > 0 { progress.broadcast() }
        if !queue.isEmpty { wakeThread() }
    }

    private func commit(_ group: [CommitUnit]) {
        var durable = 0
        do throws(LarderError) {
            try sink.commit(group[...], durable: &durable)
        } catch {
            succeed(group[..<durable])
            fail(group[durable...], error)
            return
        }
        succeed(group[...])
    }

    private func succeed(_ group: ArraySlice<CommitUnit>) {
        guard let last = group.last?.sequence else { return }
        var bytes = 0
        for unit in group {
            bytes += unit.byteCount
            switch unit.action {
            case .write(let database, _, let operations): database.forget(operations, sequence: unit.sequence)
            case .control(_, let committed): committed()
            }
        }
        context.statistics.commitGroups.add()
        context.statistics.commitUnits.add(group.count)
        pendingBytes.add(-bytes)
        decide(upTo: last, failure: nil)
    }

    private func decide(upTo sequence: UInt64, failure: LarderError?) {
        let observers = lock.withLock {
            decided.store(sequence, ordering: .releasing)
            if waiting > 0 { progress.broadcast() }
            return self.observers
        }
        for observer in observers { observer.commitsDecided(upTo: sequence, failure: failure) }
    }

    /// Fails `group` and everything queued behind it, and takes the overlays back to what is durable.
    private func fail(_ group: ArraySlice<CommitUnit>, _ cause: LarderError) {
        let error = LarderError(
            .commitFailed, "the write was not committed: \(cause.message)", operation: "commit",
            database: cause.database, underlying: cause)
        context.statistics.commitFailures.add()
        // The table stays locked, so that no database joins whose writes would be failed and not taken back.
        let (failed, last) = databases.withAll { all in
            for database in all { database.lockAll() }
            defer { for database in all.reversed() { database.unlockAll() } }
            let (failed, last) = lock.withLock {
                let failed = group + queue
                queue = []
                if let first = failed.first?.sequence {
                    failures.add(first...lastSequence, error)
                    lastFailed.store(lastSequence, ordering: .relaxed)
                }
                return (failed, lastSequence)
            }
            for database in all { database.revertToDurable() }
            return (failed, last)
        }
        pendingBytes.add(-failed.reduce(0) { $0 + $1.byteCount })
        context.report(.error, "commit failed, \(failed.count) writes were refused: \(cause)")
        decide(upTo: last, failure: error)
    }

    // MARK: The pipeline's own thread

    /// Starts the thread that commits for callers who do not wait.
    func start() {
        lock.withLock {
            hasIdleThread = true
            thread = WorkThread(name: "larder-commit") { [self] in run() }
        }
    }

    private func run() {
        lock.lock()
        while !isStopping {
            if isWoken, !queue.isEmpty, !isLed {
                isWoken = false
                lead(until: .max)
            } else {
                if queue.isEmpty { isWoken = false }
                work.wait(lock)
            }
        }
        lock.unlock()
    }

    /// Commits what is queued and ends the thread.
    func stop() {
        try? settle()
        let thread = lock.withLock {
            isStopping = true
            hasIdleThread = false
            work.broadcast()
            defer { self.thread = nil }
            return self.thread
        }
        thread?.join()
    }
}
