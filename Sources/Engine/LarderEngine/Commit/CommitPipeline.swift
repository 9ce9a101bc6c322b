import LarderPlatform
import Synchronization

/// The commits for which the reply to a command has to wait: those of the command's writes, and those of uncommitted
/// entries that the command has read. A ticket covers all commit units up to `sequence`.
package struct CommitTicket: Hashable, Comparable, Sendable {
    package let sequence: UInt64

    /// - Parameter sequence: the sequence of a ticket that was passed on as a number.
    @inlinable package init(sequence: UInt64) { self.sequence = sequence }

    /// Nothing to wait for.
    @inlinable package static var none: CommitTicket { CommitTicket(sequence: 0) }

    // Inlined, because other modules compare tickets for each command.
    @inlinable package static func == (left: CommitTicket, right: CommitTicket) -> Bool {
        left.sequence == right.sequence
    }

    @inlinable package static func != (left: CommitTicket, right: CommitTicket) -> Bool {
        left.sequence != right.sequence
    }

    @inlinable package static func < (left: CommitTicket, right: CommitTicket) -> Bool {
        left.sequence < right.sequence
    }
}

/// An observer that is notified when commits are decided. Its functions are called on the committing thread, must
/// return quickly and must not block.
package protocol CommitObserver: AnyObject, Sendable {
    /// Called when the units after the `sequence` of the previous call, up to this `sequence`, have been decided. They
    /// are committed if `failure` is nil, and have failed otherwise.
    func commitsDecided(upTo sequence: UInt64, failure: LarderError?)
    /// Called when writers that wait because of ``CommitPipeline/isCongested`` may continue, or would now get an error.
    func congestionMayBeOver()
}

extension CommitObserver {
    package func congestionMayBeOver() {}
}

/// Takes applied commit units (atomic sets of changes) in order, and makes them durable in groups.
///
/// - A unit is queued while the locks of all shards that it changes are held. So units are applied in the order of
///   their sequences.
/// - One thread at a time leads: it takes everything in the queue and commits it, all writes together as one frame of
///   the journal. A waiting caller becomes the leader if there is none. A caller that does not wait calls ``wake()``,
///   which starts the pipeline's own thread, or ``commitNow()``, which commits on the caller's thread if that is quick.
/// - If a commit fails, earlier commits stay durable. The rest of the group and every queued unit fail, and the applied
///   state is reset to the durable one.
///
/// Thread-safe. `@unchecked Sendable`: the properties that are marked so are guarded by `lock`. Lock order: the table
/// of databases, shard locks (databases by number, shards by index), `lock`.
package final class CommitPipeline: @unchecked Sendable {
    private let context: LarderContext
    private let journal: CommitJournal
    // Copies: reading these from the other objects would cost reference counting for every write.
    private let trigger: CheckpointTrigger
    private let pendingBytesMax: Int
    private let changes: ChangeStream
    private let changeLog: ChangeLog
    private let rollBack: @Sendable (_ failing: () -> UInt64) -> Void
    private let decided = Atomic<UInt64>(0)
    /// The highest sequence number that ever failed. Units with higher numbers have not failed.
    private let lastFailed = Atomic<UInt64>(0)
    private let pendingBytes = Atomic<Int>(0)

    private let lock = Lock()
    private let work = Condition()
    private let progress = Condition()
    // Guarded by `lock`:
    private var queue = CommitQueue()
    /// The items that the leader commits.
    private var led: [CommitQueue.Item] = []
    private var lastSequence: UInt64 = 0
    private var isLed = false
    /// The error of a commit that failed on a thread that must not block. Used by the thread that leads.
    private var unhandled: LarderError?
    private var waiting = 0
    private var isStopping = false
    private var hasIdleThread = false
    /// Whether the pipeline's own thread must commit the queue.
    private var isWoken = false
    private var failures = CommitFailures()
    /// Why the last long value could not be staged, and the last decided unit at that time.
    private var stagingFailure: (error: LarderError, decided: UInt64)?
    private var stagingLines = LineRate(milliseconds: 60_000)
    private var observers: [any CommitObserver] = []
    private var thread: WorkThread?

    /// - Parameter rollBack: rolls the applied state back to the durable one. It calls `failing` once, while nothing
    ///   can be applied. `failing` records which units fail, and returns the last one.
    init(
        context: LarderContext, journal: CommitJournal, changes: ChangeStream, changeLog: ChangeLog,
        rollBack: @escaping @Sendable (_ failing: () -> UInt64) -> Void
    ) {
        self.context = context
        self.journal = journal
        trigger = journal.trigger
        pendingBytesMax = context.options.pendingBytesMax
        (self.changes, self.changeLog, self.rollBack) = (changes, changeLog, rollBack)
    }

    /// Sets the sequence number after which new units are numbered: the last number in the journal. The recovery may
    /// have queued and decided units with higher numbers before.
    func begin(behind sequence: UInt64) {
        lock.withLock {
            lastSequence = max(lastSequence, sequence)
            decided.store(max(decided.load(ordering: .relaxed), sequence), ordering: .releasing)
        }
    }

    /// Like ``begin(behind:)``, for a higher number that is found only when units are already queued. May block.
    func resume(behind sequence: UInt64) {
        context.sequences.resume(behind: sequence)
        // Queue an empty unit with this sequence, so that ``everythingApplied`` names a unit that will be decided.
        lock.withLock {
            guard sequence > lastSequence, sequence < Sequences.end - Sequences.unitsStep else { return }
            lastSequence = sequence
            queue.add(control: .control(sequence: sequence, perform: {}, committed: { _ in }))
            if !isLed { wakeThread() }
        }
    }

    // MARK: Queueing

    /// Queues the writes of a unit. Called before they are applied, with the locks of all its shards held.
    /// - Parameters:
    ///   - alone: whether the unit has a frame of its own.
    ///   - write: adds the operations to the batch. Must not block.
    /// - Returns: the unit's sequence.
    @inline(__always)
    func enqueue(_ durability: Durability, alone: Bool = false, _ write: (JournalBatch, UInt64) -> Void) -> UInt64 {
        lock.lock()
        lastSequence += 1
        let sequence = lastSequence
        let batch = alone ? queue.batchAlone(durability) : queue.batch(durability)
        let bytes = batch._withUnsafeGuaranteedRef { batch in
            let before = batch.payloadByteCount
            write(batch, sequence)
            return batch.payloadByteCount - before
        }
        if alone { queue.end() }
        lock.unlock()
        pendingBytes.add(bytes)
        return sequence
    }

    /// Writes the payload of a long record to the disk before its commit, concurrently with everything else. May take
    /// long.
    func stage(_ payload: UnsafeRawBufferPointer, bytesBefore: Int, isSynced: Bool) throws(LarderError)
        -> StagedFrame
    {
        do throws(LarderError) {
            return try journal.stage(payload, bytesBefore: bytesBefore, isSynced: isSynced)
        } catch {
            context.statistics.commitFailures.add()
            let skipped = lock.withLock {
                stagingFailure = (error, lastDecided)
                return stagingLines.line(at: context.time.monotonic())
            }
            if let skipped {
                context.report(
                    .error, "a long value was refused: \(error.message)" + LineRate.rest(skipped, "of these failures"))
            }
            throw error
        }
    }

    /// - Throws: if the larder's files were removed, moved or replaced by another program.
    func requireInPlace(_ operation: String) throws(LarderError) { try journal.requireInPlace(operation) }

    /// Queues a change of a whole database: `perform` makes it durable, then `committed` is called with its sequence
    /// number. Called with all shard locks of the database held.
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

    /// Queues a change of a whole database that becomes durable together with operations in the journal. The change and
    /// the operations are one unit with a frame of its own, which is synced. Called with the locks of all shards of the
    /// database, and of the operations' keys, held.
    /// - Returns: the unit's sequence.
    func enqueue(
        committed: @escaping (UInt64) -> Void, _ write: (JournalBatch, UInt64) -> Void
    ) -> UInt64 {
        enqueue(.always, alone: true) { batch, sequence in
            batch.committed = committed
            write(batch, sequence)
        }
    }

    /// A ticket for all units that have been applied so far.
    package var everythingApplied: CommitTicket { CommitTicket(sequence: lock.withLock { lastSequence }) }

    /// Returns the applied changes of a database's entries that are not published yet, and possibly some that are.
    /// Called with all shard locks of the database held.
    /// - Returns: nil if there are more than `most` of all databases, or if a whole database is changed.
    func unpublishedChanges(of database: any DatabaseIdentity, most: Int) -> [EntryChange]? {
        lock.withLock {
            var found: [EntryChange] = []
            var left = most
            for item in led + queue.all {
                guard let changes = item.changes, changes.count <= left else { return nil }
                left -= changes.count
                found += changes.lazy.filter { $0.database === database && !$0.isUnseen }
            }
            return found
        }
    }

    /// The last unit that is committed or failed.
    var lastDecided: UInt64 { decided.load(ordering: .acquiring) }

    /// Whether so many bytes wait for a commit, or to be written to LevelDB, that writers should wait.
    package var isCongested: Bool {
        pendingBytes.load(ordering: .relaxed) > pendingBytesMax
            || trigger.mustWait() && journal.refusal("write") == nil
    }

    /// Returns the error for writes if the journal's files were removed or replaced, or if the journal is full and
    /// checkpoints fail; nil if writes are accepted.
    func refusal(_ operation: String) -> LarderError? { journal.refusal(operation) }

    /// The number of bytes that wait for a commit.
    package var pendingByteCount: Int { pendingBytes.load(ordering: .relaxed) }

    // MARK: Waiting

    /// Whether the ticket's units are decided: committed or failed. One atomic load.
    package func isDecided(_ ticket: CommitTicket) -> Bool {
        ticket.sequence <= decided.load(ordering: .acquiring)
    }

    /// Waits until the ticket's units are committed. Commits them on this thread if no other thread does.
    /// - Throws: the error of the commit if it failed.
    package func wait(for ticket: CommitTicket) throws(LarderError) {
        try ForkGuard.check("commit")
        awaitDecision(ticket)
        if let failure = failure(of: ticket) { throw failure }
    }

    /// Why the last write failed; nil if it succeeded. Not nil while a rollback is pending, because every commit fails
    /// until the rollback is done.
    var lastFailure: LarderError? {
        let last = lastDecided
        return failure(of: CommitTicket(sequence: last))
            ?? lock.withLock { stagingFailure.flatMap { $0.decided == last ? $0.error : nil } }
    }

    /// Returns the error of a decided ticket if its commit failed; otherwise nil. One atomic load if no commit ever
    /// failed.
    package func failure(of ticket: CommitTicket) -> LarderError? {
        // A relaxed load suffices: `lastFailed` is written before `decided`, which was loaded with acquiring order.
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

    /// Waits until all units that were applied before this call are committed.
    /// - Throws: the error of the last applied unit, if that unit failed.
    package func waitForAllCommits() throws(LarderError) { try wait(for: everythingApplied) }

    /// Waits until all units applied before this call are decided, and syncs the committed ones, even if their
    /// durability does not require it.
    func sync() throws(LarderError) {
        drain()
        try journal.sync()
    }

    /// Waits until all units applied before this call are decided: committed, or failed and rolled back. For callers
    /// that then read the durable state and are not affected by other units' failures.
    func drain() { awaitDecision(everythingApplied) }

    /// Ensures that the queue is committed soon, without waiting for it.
    package func wake() {
        lock.withLock {
            if !queue.isEmpty, !isLed { wakeThread() }
        }
    }

    /// Called with `lock` held.
    private func wakeThread() {
        guard hasIdleThread else { return }
        isWoken = true
        if thread == nil { startThread() } else { work.signal() }
    }

    /// Commits the queue on this thread if that takes a single write to a file; otherwise wakes the pipeline's thread.
    /// Does nothing while another thread commits. For event loops, at the end of an iteration.
    package func commitNow() {
        lock.lock()
        if queue.isEmpty || isLed {
            lock.unlock()
            return
        }
        if queue.hasSlowWork || journal.isBusy {
            wakeThread()
        } else {
            // Block to free space only if the pipeline has no thread of its own for that.
            lead(until: lastSequence, mayBlock: !hasIdleThread)
        }
        lock.unlock()
    }

    /// Notifies observers that a checkpoint ended.
    func reportCheckpoint() {
        for observer in lock.withLock({ observers }) { observer.congestionMayBeOver() }
    }

    /// The number of threads that wait for a decision. For tests.
    var waiterCount: Int { lock.withLock { waiting } }

    package func add(observer: any CommitObserver) { lock.withLock { observers.append(observer) } }

    package func remove(observer: any CommitObserver) {
        lock.withLock { observers.removeAll { $0 === observer } }
    }

    /// Retries the rollback of a failed commit that could not be rolled back yet. May block; must not be called with a
    /// shard lock held.
    /// - Throws: if it still cannot be rolled back.
    func rollBackWhatFailed(_ operation: String) throws(LarderError) {
        guard journal.isRollbackPending else { return }
        // Queue an empty unit: it fails until the rollback is done, and each failed commit retries the rollback.
        lock.withLock {
            lastSequence += 1
            queue.add(control: .control(sequence: lastSequence, perform: {}, committed: { _ in }))
        }
        drain()
        try journal.requireRolledBack(operation)
    }

    // MARK: Leading

    /// Commits the queue until `sequence` is decided, and leaves later units to other threads. Called with `lock` held,
    /// and returns with it held.
    /// - Parameter mayBlock: whether this thread may block to free space on a full file system. If not, batches that
    ///   need space stay in the queue.
    private func lead(until sequence: UInt64, mayBlock: Bool = true) {
        isLed = true
        while !queue.isEmpty, sequence > decided.load(ordering: .relaxed) {
            let group = queue.take()
            led = group
            lock.unlock()
            let count = commit(group, mayBlock)
            lock.lock()
            led = []
            queue.recycle(group[..<count])
            guard count == group.count else {
                queue.putBack(group[count...])
                break
            }
        }
        isLed = false
        if waiting > 0 { progress.broadcast() }
        if !queue.isEmpty { wakeThread() }
    }

    /// Commits items of the queue in order.
    /// - Returns: the number of decided items. The others need free disk space, or have failed, and this thread must not
    ///   block.
    private func commit(_ group: [CommitQueue.Item], _ mayBlock: Bool) -> Int {
        if let error = unhandled {
            guard mayBlock else { return 0 }
            unhandled = nil
            fail(error)
            return group.count
        }
        for (index, item) in group.enumerated() {
            do throws(LarderError) {
                try journal.requireRolledBack("commit")
                switch item {
                case .writes(let batch, _, let level):
                    if !batch.isPrepared {
                        if batch.committed != nil { changeLog.changing() }
                        if !batch.changes.isEmpty, let prepared = changeLog.prepare(batch.changes) {
                            lock.withLock { batch.changes = prepared }
                        }
                    }
                    batch.isPrepared = true
                    guard try journal.append(batch, level, mayBlock: mayBlock) else { return index }
                case .control(_, let perform, _):
                    try context.options.beforeCommit?()
                    changeLog.changing()
                    // The change accesses files by their paths, and another program may have replaced these files.
                    try journal.requireInPlace("commit")
                    try perform()
                }
            } catch {
                // A rollback may wait for other threads, and reads the journal.
                guard mayBlock else {
                    unhandled = error
                    return index
                }
                fail(error)
                break
            }
            succeed(item)
        }
        return group.count
    }

    private func succeed(_ item: CommitQueue.Item) {
        switch item {
        case .writes(let batch, let units, _):
            context.statistics.commitUnits.add(units)
            if !batch.changes.isEmpty { changes.publish(batch.changes) }
            if let committed = batch.committed {
                committed(batch.lastSequence)
                changeLog.changed()
            }
            pendingBytes.add(-batch.payloadByteCount)
        case .control(let sequence, _, let committed):
            context.statistics.commitUnits.add()
            committed(sequence)
            changeLog.changed()
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

    /// Fails the rest of a group and everything queued after it, and rolls the applied state back to the durable one.
    private func fail(_ cause: LarderError) {
        let error = LarderError(
            .commitFailed, "the write was not committed: \(cause.message)", operation: "commit",
            database: cause.database, underlying: cause)
        // While an earlier rollback is pending, units fail because of it. Do not report these failures as errors: the
        // cause of that rollback was reported before.
        let isNews = !journal.isRollbackPending
        if isNews { context.statistics.commitFailures.add() }
        var failed: ClosedRange<UInt64> = 0...0
        changeLog.abandon()
        rollBack {
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
        let refused = counted(failed.count, "write was", "writes were")
        context.report(isNews ? .error : .debug, "commit failed, \(refused) refused: \(cause)")
        decide(upTo: failed.upperBound, failure: error)
    }

    // MARK: The pipeline's own thread

    /// Starts the pipeline's thread, which commits for callers that do not wait.
    /// - Parameter onDemand: whether the thread starts only when there is work for it.
    func start(onDemand: Bool) {
        lock.withLock {
            hasIdleThread = true
            if !onDemand { startThread() }
        }
    }

    /// Called with `lock` held.
    private func startThread() { thread = WorkThread(name: "larder-commit") { [self] in run() } }

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

    /// Commits the queue and ends the thread.
    func stop() {
        try? waitForAllCommits()
        let thread = lock.withLock {
            isStopping = true
            hasIdleThread = false
            work.broadcast()
            return self.thread.take()
        }
        thread?.join()
    }
}

/// The commit units that failed, so that their writers can get the error later. Not thread-safe: its owner guards it.
struct CommitFailures {
    /// The maximum number of ranges that are kept; the oldest are dropped. A range contains commit units that failed
    /// together.
    static let rangesMax = 256

    private var ranges: [(range: ClosedRange<UInt64>, error: LarderError)] = []
    /// The last unit that may have failed in a range that was dropped.
    private var forgottenUpTo: UInt64 = 0

    mutating func add(_ range: ClosedRange<UInt64>, _ error: LarderError) {
        ranges.append((range, error))
        guard ranges.count > Self.rangesMax else { return }
        forgottenUpTo = ranges.removeFirst().range.upperBound
    }

    /// Returns the error of a decided unit (committed or failed); nil if it was committed. If the unit's range may have
    /// been dropped, returns an error even if the unit was committed. Reporting a false failure is allowed;
    /// acknowledging a lost write is not.
    func error(of sequence: UInt64) -> LarderError? {
        if let match = ranges.last(where: { $0.range.contains(sequence) }) { return match.error }
        guard sequence <= forgottenUpTo else { return nil }
        return LarderError(
            .commitFailed, "it is unknown whether this commit failed, because too many failed since then",
            operation: "commit")
    }
}
