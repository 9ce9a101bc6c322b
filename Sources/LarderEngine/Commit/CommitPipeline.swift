import Platform
import Synchronization

/// Told when commits are decided. Called by whichever thread committed; must be short and must not block.
package protocol CommitObserver: AnyObject, Sendable {
    /// Every sequence up to `sequence` that was not decided before is now committed (`failure` is nil) or failed.
    func commitsDecided(upTo sequence: UInt64, failure: LarderError?)
    /// There may be room again for writers that waited because of ``CommitPipeline/isCongested``, or they would be refused now.
    func congestionMayBeOver()
}

extension CommitObserver {
    package func congestionMayBeOver() {}
}

/// What a pipeline commits for: where its units are applied.
protocol CommitOwner: AnyObject, Sendable {
    /// Tells what was noted of units that are committed. By whichever thread committed; must not block.
    func committed(_ notes: any CommitNotes)

    /// Rolls what is applied back to what is durable.
    /// - Parameter failing: to be called once, while nobody can apply anything: notes which units fail, and says which is the
    ///   last.
    func rollBack(_ failing: () -> UInt64)
}

/// Takes applied units in order and makes them durable in groups.
///
/// - Units are queued under the shard locks of what they change, so the order of sequences is the order of application.
/// - One thread at a time leads: it takes all that is queued and commits it, all writes that came together as one frame of
///   the journal. A caller that waits becomes the leader when there is none; for callers that do not wait, ``wake()``
///   starts the pipeline's own thread, and ``commitNow()`` commits on the caller's if that is quick.
/// - When a commit fails, what was durable already stays so; the rest fails, and every unit that is queued with it, and
///   what is applied goes back to what is durable.
///
/// Thread-safe. The proof for `@unchecked Sendable`: all state below "guarded" is read and written with `lock` held.
/// Lock order: the table of databases, shard locks (databases by number, shards by index), `lock`.
package final class CommitPipeline: @unchecked Sendable {
    private let context: LarderContext
    private let journal: CommitJournal
    private let owner: any CommitOwner
    private let decided = Atomic<UInt64>(0)
    /// The highest sequence that ever failed: who waited for a later one need not look for its failure.
    private let lastFailed = Atomic<UInt64>(0)
    private let pendingBytes = Atomic<Int>(0)

    private let lock = Lock()
    private let work = Condition()
    private let progress = Condition()
    // Guarded by `lock`:
    private var queue = CommitQueue()
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

    init(context: LarderContext, journal: CommitJournal, owner: any CommitOwner) {
        self.context = context
        self.journal = journal
        self.owner = owner
    }

    /// Goes on behind what the journal has. Before anything is queued.
    func begin(behind sequence: UInt64) {
        lock.withLock { lastSequence = max(lastSequence, sequence) }
        decided.store(sequence, ordering: .releasing)
    }

    /// Goes on behind a sequence that this process did not know of. May block.
    func goOn(behind sequence: UInt64) {
        context.sequences.goOn(behind: sequence)
        // As a unit that does nothing, so that whoever waits for all that is applied has something that is decided.
        lock.withLock {
            guard sequence > lastSequence, sequence < Sequences.end - Sequences.unitsStep else { return }
            lastSequence = sequence
            queue.add(control: .control(sequence: sequence, perform: {}, committed: { _ in }))
            if !isLed { wakeThread() }
        }
    }

    // MARK: Queueing

    /// Queues the writes of a unit. Called with the shard locks held of everything the unit changes, before they are
    /// applied.
    /// - Parameters:
    ///   - alone: whether the unit shares its frame with no others.
    ///   - write: puts the operations into the batch. Must not block.
    /// - Returns: the unit's sequence.
    func enqueue(_ durability: Durability, alone: Bool = false, _ write: (JournalBatch, UInt64) -> Void) -> UInt64 {
        lock.lock()
        lastSequence += 1
        let sequence = lastSequence
        let batch = alone ? queue.batchAlone(durability) : queue.batch(durability)
        let before = batch.payloadByteCount
        write(batch, sequence)
        if alone { queue.end() }
        let bytes = batch.payloadByteCount - before
        lock.unlock()
        pendingBytes.add(bytes)
        return sequence
    }

    /// Writes the payload of a long record to the disk ahead of its commit, beside everything else. May take long.
    func stage(_ payload: UnsafeRawBufferPointer, bytesBefore: Int, isSynced: Bool) throws(LarderError)
        -> StagedFrame
    {
        try journal.stage(payload, bytesBefore: bytesBefore, isSynced: isSynced)
    }

    /// Queues a change of a whole database. Called with all its shard locks held.
    /// - Returns: the unit's sequence.
    func enqueue(
        perform: @escaping () throws(LarderError) -> Void, committed: @escaping (UInt64) -> Void
    ) -> UInt64 {
        lock.withLock {
            lastSequence += 1
            queue.add(control: .control(sequence: lastSequence, perform: perform, committed: committed))
            return lastSequence
        }
    }

    /// A ticket for everything that is applied by now.
    package var everythingApplied: CommitTicket { CommitTicket(sequence: lock.withLock { lastSequence }) }

    /// The last unit that is committed or failed.
    var lastDecided: UInt64 { decided.load(ordering: .acquiring) }

    /// Whether so much waits to be committed, or to be written to LevelDB, that writers should wait too.
    package var isCongested: Bool {
        pendingBytes.load(ordering: .relaxed) > context.options.pendingBytesMax
            || journal.trigger.isFull && journal.trigger.refusal("write") == nil
    }

    /// The error that writes are refused with, instead of waiting for room that nobody makes; nil while all is well.
    func refusal(_ operation: String) -> LarderError? { journal.trigger.refusal(operation) }

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

    /// Whether nothing was committed since a commit failed.
    package var hasJustFailed: Bool {
        let failed = lastFailed.load(ordering: .relaxed)
        return failed > 0 && decided.load(ordering: .acquiring) <= failed
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

    /// Waits until everything applied before the call is decided: committed, or failed and rolled back. For those who
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

    /// Commits what is queued on this thread, if that is quick and nobody else does it: one write to a file. Otherwise as
    /// ``wake()``. For event loops, at the end of a turn.
    package func commitNow() {
        lock.lock()
        if queue.isEmpty || isLed {
            lock.unlock()
            return
        }
        if queue.hasSlowWork || journal.isBusy {
            wakeThread()
        } else {
            lead(until: lastSequence)
        }
        lock.unlock()
    }

    /// Tells observers that a checkpoint came to an end.
    func tellOfCheckpoint() {
        for observer in lock.withLock({ observers }) { observer.congestionMayBeOver() }
    }

    /// How many threads wait for a decision. For tests.
    var waiterCount: Int { lock.withLock { waiting } }

    package func add(observer: any CommitObserver) { lock.withLock { observers.append(observer) } }

    package func remove(observer: any CommitObserver) {
        lock.withLock { observers.removeAll { $0 === observer } }
    }

    /// Tries again to roll a failed commit back, where that could not be done yet. May block; must not be called with a shard
    /// lock held.
    /// - Throws: when it still cannot be done.
    func rollBackWhatFailed(_ operation: String) throws(LarderError) {
        guard journal.owesRollback else { return }
        // As a unit that fails as long as it is owed, and has it tried again by that.
        lock.withLock {
            lastSequence += 1
            queue.add(control: .control(sequence: lastSequence, perform: {}, committed: { _ in }))
        }
        drain()
        try journal.requireRolledBack(operation)
    }

    // MARK: Leading

    /// Commits what is queued until `sequence` is decided and then leaves the rest to others. Called and left with `lock`
    /// held.
    private func lead(until sequence: UInt64) {
        isLed = true
        while !queue.isEmpty, sequence > decided.load(ordering: .relaxed) {
            let group = queue.take()
            lock.unlock()
            commit(group)
            lock.lock()
            queue.recycle(group)
        }
        isLed = false
        if waiting > 0 { progress.broadcast() }
        if !queue.isEmpty { wakeThread() }
    }

    private func commit(_ group: [CommitQueue.Item]) {
        for item in group {
            do throws(LarderError) {
                try journal.requireRolledBack("commit")
                switch item {
                case .writes(let batch, _, let level): try journal.append(batch, level)
                case .control(_, let perform, _):
                    try context.options.beforeCommit?()
                    try perform()
                }
            } catch {
                fail(error)
                return
            }
            succeed(item)
        }
    }

    private func succeed(_ item: CommitQueue.Item) {
        switch item {
        case .writes(let batch, let units, _):
            context.statistics.commitUnits.add(units)
            if let notes = batch.notes { owner.committed(notes) }
            pendingBytes.add(-batch.payloadByteCount)
        case .control(let sequence, _, let committed):
            context.statistics.commitUnits.add()
            committed(sequence)
        }
        context.statistics.commitGroups.add()
        decide(upTo: item.lastSequence, failure: nil)
    }

    private func decide(upTo sequence: UInt64, failure: LarderError?) {
        let observers = lock.withLock {
            decided.store(sequence, ordering: .releasing)
            if waiting > 0 { progress.broadcast() }
            return self.observers
        }
        for observer in observers { observer.commitsDecided(upTo: sequence, failure: failure) }
    }

    /// Fails what is left of a group and everything queued behind it, and rolls what is applied back to what is durable.
    private func fail(_ cause: LarderError) {
        let error = LarderError(
            .commitFailed, "the write was not committed: \(cause.message)", operation: "commit",
            database: cause.database, underlying: cause)
        // What is refused as long as an earlier failure is not rolled back was said when that came.
        let isNews = !journal.owesRollback
        if isNews { context.statistics.commitFailures.add() }
        var failed: ClosedRange<UInt64> = 0...0
        owner.rollBack {
            failed = lock.withLock {
                queue.recycle(queue.take())
                let failed = decided.load(ordering: .relaxed) + 1...lastSequence
                failures.add(failed, error)
                lastFailed.store(lastSequence, ordering: .relaxed)
                return failed
            }
            pendingBytes.store(0, ordering: .relaxed)
            return failed.upperBound
        }
        context.report(isNews ? .error : .debug, "commit failed, \(failed.count) writes were refused: \(cause)")
        decide(upTo: failed.upperBound, failure: error)
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
