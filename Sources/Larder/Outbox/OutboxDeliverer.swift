import LarderEngine
import LarderOutboxes
import LarderPlatform
import Synchronization

/// Delivers the pending writes of an outbox on a thread of its own. Starts them in the order of the writes, several at
/// a time, but never two with the same key.
///
/// Thread-safe. `@unchecked Sendable`: the properties below "Guarded" are guarded by `lock`; those below "Confined" are
/// used only by the thread that runs a round.
final class OutboxDeliverer: @unchecked Sendable {
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
    struct Delivering: Sendable {
        fileprivate let deliverer: ObjectIdentifier
        fileprivate let key: [UInt8]
    }
    @TaskLocal static var delivering: Delivering?

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
    private let lock = Lock()
    // Guarded:
    private var thread: WorkThread?
    private var running: [Task<Void, Never>] = []
    private var failure: String?
    private var undecodable: Set<[UInt8]> = []
    // Confined:
    private let rounds = Lock()
    private var isOver = false
    private var nextAttemptAt: Int64 = 0
    private var failuresInRow = 0
    private var rollbacks: UInt64

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
        rollbacks = engine.rollbackCount
    }

    var lastFailure: String? { lock.withLock { failure } }

    /// The number of pending keys whose writes cannot be decoded.
    var undecodableCount: Int {
        let keys = lock.withLock { undecodable }
        return keys.count { $0.withUnsafeBytes { outbox.index.isWaiting($0) } }
    }

    func start() {
        lock.withLock {
            thread = WorkThread(name: "larder-outbox") { [self] in
                while !isStopping {
                    let pause = round()
                    outbox.index.wait(milliseconds: pause, isResting: nextAttemptAt > engine.monotonic())
                }
            }
        }
    }

    var isStopping: Bool { mustStop.load(ordering: .acquiring) }

    /// Cancels running deliveries without waiting for them.
    func beginStop() {
        mustStop.store(true, ordering: .releasing)
        outbox.index.wake()
        for task in lock.withLock({ running }) { task.cancel() }
    }

    /// Cancels running deliveries, and waits until they have ended. Pending writes stay. Idempotent.
    func stop() {
        beginStop()
        let thread = lock.withLock {
            defer { self.thread = nil }
            return self.thread
        }
        thread?.join()
        // Wait for a round that another thread runs, so that it ends before the next outbox of the database starts.
        let isFirst = rounds.withLock {
            defer { isOver = true }
            return !isOver
        }
        if isFirst { OpenOutboxes.shared.remove(outbox.database) }
        endWaits()
    }

    /// Ends all waits for deliveries that will not happen.
    func endWaits() { outbox.index.notifyWaiters(now: .max) }

    /// Delivers the next writes, and waits until the deliveries have ended.
    /// - Returns: the time until the next delivery is due, in milliseconds, if no new write arrives.
    func round() -> Int64 {
        rounds.withLock {
            let now = engine.monotonic()
            defer { outbox.index.notifyWaiters(now: nil) }
            if nextAttemptAt > now { return nextAttemptAt - now }
            do throws(LarderError) {
                if engine.rollbackCount != rollbacks {
                    // A rollback may have undone applied writes and restored removed writes, so load the pending writes
                    // again.
                    rollbacks = engine.rollbackCount
                    try outbox.load()
                }
                defer { outbox.index.endTurns() }
                let turns = outbox.index.take(
                    failuresInRow >= Self.failuresBeforeRest ? 1 : concurrency, now: now)
                do throws(LarderError) {
                    try deliver(turns)
                } catch {
                    outbox.index.putBack(turns)
                    throw error
                }
            } catch {
                note("the outbox cannot be used: \(error)")
                failuresInRow += 1
                nextAttemptAt = engine.monotonic() + RetryBackoff.rest(after: failuresInRow)
            }
            let after = engine.monotonic()
            let next = max(nextAttemptAt, outbox.index.nextEvent)
            return next <= after ? 0 : next - after
        }
    }

    private func deliver(_ turns: [OutboxIndex.Turn]) throws(LarderError) {
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
            lock.withLock {
                if isUndecodable {
                    undecodable.insert(parcel.turn.key)
                } else {
                    undecodable.remove(parcel.turn.key)
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
        failuresInRow = successes > 0 ? 0 : failuresInRow + failures
        if failuresInRow >= Self.failuresBeforeRest {
            let rest = RetryBackoff.rest(after: failuresInRow - Self.failuresBeforeRest)
            nextAttemptAt = engine.monotonic() + rest
        }
        try outbox.settle(settled)
    }

    private func ends(of parcels: [LarderOutboxes.Outbox.Parcel]) -> [End] {
        let answers = BlockingResults<End>(parcels.count)
        let tasks = parcels.enumerated().map { position, parcel in
            Task { [handler, delivering = Delivering(deliverer: ObjectIdentifier(self), key: parcel.turn.key)] in
                answers.set(position, await Self.$delivering.withValue(delivering) { await handler(parcel) })
            }
        }
        lock.withLock { running = tasks }
        // `beginStop` cancels only the tasks that are in `running` at that time. If it ran before these tasks were
        // added, cancel them here.
        if isStopping { for task in tasks { task.cancel() } }
        defer { lock.withLock { running = [] } }
        return answers.wait()
    }

    private func note(_ text: String) { lock.withLock { failure = text } }
}

/// The set of databases with an open outbox. It ensures that a database has only one outbox at a time.
///
/// Thread-safe. `@unchecked Sendable`: the set is guarded by `lock`.
final class OpenOutboxes: @unchecked Sendable {
    static let shared = OpenOutboxes()

    private let lock = Lock()
    private var open: Set<ObjectIdentifier> = []

    func add(_ database: Database) -> Bool { lock.withLock { open.insert(ObjectIdentifier(database)).inserted } }
    func remove(_ database: Database) { lock.withLock { _ = open.remove(ObjectIdentifier(database)) } }
}
