import LarderEngine
import LarderOutboxes
import LarderPlatform
import Synchronization

/// Delivers the pending writes of an outbox on a thread of its own. Starts them in the order of the writes, several at
/// a time, but never two with the same key.
///
/// Thread-safe.
final class OutboxDeliverer: Sendable {
    enum End: Sendable {
        case delivered
        case refused(String)
        case failed(String)
        /// The value cannot be decoded, and the program has no `undecodable` function.
        case undecodable(String)
        /// The outbox is being closed.
        case cancelled
    }

    typealias Handler = @Sendable (LarderOutboxes.Outbox.Parcel) async -> End

    /// The write that the current task delivers in the handler. It lets a call detect that the handler itself makes the
    /// call. Such a call must not wait for this write, because the wait would never end.
    @TaskLocal private static var delivering: (deliverer: ObjectIdentifier, key: [UInt8])?

    /// Whether the caller runs in the handler.
    var isInHandler: Bool { Self.delivering?.deliverer == ObjectIdentifier(self) }
    /// Whether the caller runs in the handler, while it delivers a write of `key`.
    func isDelivering(_ key: [UInt8]) -> Bool { isInHandler && Self.delivering?.key == key }

    let outbox: LarderOutboxes.Outbox
    let engine: Engine
    private let handler: Handler
    private let concurrency: Int
    /// Keeps the larder open.
    private let lease: EngineLease
    private let mustStop = Atomic<Bool>(false)
    /// Whether deliveries must be cancelled.
    private let mustCancel = Atomic<Bool>(false)
    private let state = Locked(State())
    /// Set when the thread has ended.
    private let threadEnd = EndSignal()
    private let changes = Locked(Changes())
    /// Set when the outbox is over and no call changes the pending writes any more.
    private let areChangesOver = Latch()
    /// Held during a round, so that only one thread at a time runs one.
    private let rounds: Locked<Rounds>
    /// The databases with an open outbox. A database has only one outbox at a time.
    private static let open = Locked<Set<ObjectIdentifier>>([])

    private struct State {
        var thread: WorkThread?
        var hasThread = false
        var running: [Task<Void, Never>] = []
        var failure: String?
        var undecodable: Set<[UInt8]> = []
    }

    /// The running calls that change the pending writes.
    private struct Changes {
        var count = 0
        var isOver = false
    }

    private struct Rounds {
        var isOver = false
        var nextAttemptAt: Int64 = 0
        var failuresInRow = 0
        var rollbacks: UInt64
    }

    /// Claims the database of an outbox.
    /// - Returns: false if an outbox of the database is open.
    static func claim(_ database: Database) -> Bool {
        let id = ObjectIdentifier(database)
        return open.withLock { $0.insert(id).inserted }
    }
    static func release(_ database: Database) {
        let id = ObjectIdentifier(database)
        open.withLock { _ = $0.remove(id) }
    }

    /// The maximum total size of concurrently delivered values, in bytes.
    private static let bytesMax = 16 << 20
    /// After this many failures in a row the receiver is assumed to be down: the outbox backs off, and then tries one
    /// write.
    private static let failuresBeforeRest = 8

    init(_ outbox: LarderOutboxes.Outbox, _ lease: EngineLease, concurrency: Int, _ handler: @escaping Handler) {
        self.outbox = outbox
        self.lease = lease
        engine = lease.engine
        self.concurrency = concurrency
        self.handler = handler
        rounds = Locked(Rounds(rollbacks: engine.rollbackCount))
    }

    var lastFailure: String? { state.withLock { $0.failure } }

    /// The number of pending keys whose writes cannot be decoded.
    var undecodableCount: Int {
        let keys = state.withLock { $0.undecodable }
        return keys.count { $0.withUnsafeBytes { outbox.index.isWaiting($0) } }
    }

    func start() {
        let thread = WorkThread(name: "larder-outbox") { [self] in
            defer { threadEnd.set() }
            while !isStopping {
                let pause = round()
                let isResting = rounds.withLock { $0.nextAttemptAt } > engine.monotonic()
                outbox.index.wait(milliseconds: pause, isResting: isResting)
            }
        }
        state.withLock { ($0.thread, $0.hasThread) = (thread, true) }
    }

    var isStopping: Bool { mustStop.load(ordering: .acquiring) }

    /// Starts no further deliveries, cancels running ones unless `cancelling` is false, and ends all waits for
    /// deliveries, because a running delivery may itself wait for another key. Does not wait for running deliveries.
    func beginStop(cancelling: Bool = true) {
        if cancelling { mustCancel.store(true, ordering: .releasing) }
        mustStop.store(true, ordering: .releasing)
        outbox.index.wake()
        endWaits()
        if cancelling { for task in state.withLock({ $0.running }) { task.cancel() } }
    }

    /// Runs a call that changes the pending writes. The next outbox of the database begins after it, and sees them.
    /// - Returns: nil if the outbox is closed.
    func change<Result>(_ body: () throws(LarderError) -> Result) throws(LarderError) -> Result? {
        let mayBegin = changes.withLock { changes in
            if !changes.isOver { changes.count += 1 }
            return !changes.isOver
        }
        guard mayBegin else { return nil }
        defer {
            let isLast = changes.withLock { changes in
                changes.count -= 1
                return changes.isOver && changes.count == 0
            }
            if isLast { areChangesOver.set() }
        }
        return isStopping ? nil : try body()
    }

    /// Like ``stop(cancelling:)``, without blocking a thread while deliveries run: they may need such threads.
    func stopForTask(cancelling: Bool = true) async {
        beginStop(cancelling: cancelling)
        if state.withLock({ $0.hasThread }) {
            // A task of its own, because a cancellation must not end the wait.
            await Task { [threadEnd] in await threadEnd.wait() }.value
        }
        await BlockingWork.run { self.stop(cancelling: cancelling) }
    }

    /// Starts no further deliveries, cancels running ones unless `cancelling` is false, and waits until they have
    /// ended. Pending writes stay. Idempotent.
    func stop(cancelling: Bool = true) {
        beginStop(cancelling: cancelling)
        let thread = state.withLock { $0.thread.take() }
        thread?.join()
        // Wait for a round that another thread runs, so that it ends before the next outbox of the database starts.
        // Another call of this function may have taken the thread, and still be waiting for it.
        let isFirst = rounds.withLock { rounds in
            defer { rounds.isOver = true }
            return !rounds.isOver
        }
        let isChanging = changes.withLock { changes in
            changes.isOver = true
            return changes.count > 0
        }
        if isChanging { areChangesOver.wait() }
        if isFirst { Self.release(outbox.database) }
    }

    /// Ends all waits for deliveries that will not happen.
    func endWaits() { outbox.index.notifyWaiters(now: .max) }

    /// Delivers the next writes, and waits until the deliveries have ended.
    /// - Returns: the time until the next delivery is due, in milliseconds, if no new write arrives.
    func round() -> Int64 {
        rounds.withLock { rounds in
            if rounds.isOver { return RetryBackoff.longest }
            let now = engine.monotonic()
            defer { outbox.index.notifyWaiters(now: nil) }
            if rounds.nextAttemptAt > now { return rounds.nextAttemptAt - now }
            do throws(LarderError) {
                if engine.rollbackCount != rounds.rollbacks {
                    // A rollback may have undone applied writes and restored removed writes, so load the pending writes
                    // again.
                    rounds.rollbacks = engine.rollbackCount
                    try outbox.load()
                }
                defer { outbox.index.endTurns() }
                let turns = outbox.index.take(
                    rounds.failuresInRow >= Self.failuresBeforeRest ? 1 : concurrency, now: now)
                do throws(LarderError) {
                    try deliver(turns, &rounds)
                } catch {
                    outbox.index.putBack(turns)
                    throw error
                }
            } catch {
                note("the outbox cannot be used: \(error)")
                rounds.failuresInRow += 1
                rounds.nextAttemptAt = engine.monotonic() + RetryBackoff.rest(after: rounds.failuresInRow)
            }
            let after = engine.monotonic()
            let next = max(rounds.nextAttemptAt, outbox.index.nextEvent)
            return next <= after ? 0 : next - after
        }
    }

    private func deliver(_ turns: [OutboxIndex.Turn], _ rounds: inout Rounds) throws(LarderError) {
        if turns.isEmpty { return }
        let parcels = try outbox.collect(turns, bytesMax: Self.bytesMax) { turn in
            note("an entry was not written by this outbox, and is ignored until it is purged")
            outbox.index.rest(turn, until: engine.monotonic() + RetryBackoff.longest)
        }
        outbox.counts.retried.add(parcels.count { $0.turn.failures > 0 })
        var settled: [LarderOutboxes.Outbox.Settled] = []
        var (successes, failures) = (0, 0)
        for (parcel, end) in zip(parcels, ends(of: parcels)) {
            let isUndecodable = if case .undecodable = end { true } else { false }
            state.withLock { state in
                if isUndecodable {
                    state.undecodable.insert(parcel.turn.key)
                } else {
                    state.undecodable.remove(parcel.turn.key)
                }
            }
            switch end {
            case .delivered:
                outbox.counts.delivered.add()
                successes += 1
            case .refused(let reason):
                outbox.counts.refused.add()
                note(reason)
                successes += 1
            case .failed(let reason):
                note(reason)
                failures += 1
                let rest = RetryBackoff.rest(after: parcel.turn.failures)
                outbox.index.rest(parcel.turn, until: engine.monotonic() + rest)
                continue
            case .undecodable(let reason):
                // The receiver was not called, so this does not count as its failure.
                note(reason)
                outbox.index.rest(parcel.turn, until: engine.monotonic() + RetryBackoff.longest)
                continue
            case .cancelled:
                outbox.index.putBack([parcel.turn])
                continue
            }
            settled.append(.init(turn: parcel.turn, number: parcel.entry.number))
        }
        rounds.failuresInRow = successes > 0 ? 0 : rounds.failuresInRow + failures
        if rounds.failuresInRow >= Self.failuresBeforeRest {
            let rest = RetryBackoff.rest(after: rounds.failuresInRow - Self.failuresBeforeRest)
            rounds.nextAttemptAt = engine.monotonic() + rest
        }
        try outbox.settle(settled)
    }

    private func ends(of parcels: [LarderOutboxes.Outbox.Parcel]) -> [End] {
        let answers = BlockingResults<End>(parcels.count)
        let tasks = parcels.enumerated().map { position, parcel in
            Task { [handler, id = ObjectIdentifier(self)] in
                answers.set(position, await Self.$delivering.withValue((id, parcel.turn.key)) { await handler(parcel) })
            }
        }
        state.withLock { $0.running = tasks }
        // `beginStop` cancels only the tasks that are in `running` at that time. If it ran before these tasks were
        // added, cancel them here.
        if mustCancel.load(ordering: .acquiring) { for task in tasks { task.cancel() } }
        defer { state.withLock { $0.running = [] } }
        return answers.wait()
    }

    private func note(_ text: String) { state.withLock { $0.failure = text } }
}
