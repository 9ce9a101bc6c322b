import LarderEngine
import LarderOutboxes
import LarderPlatform
import Synchronization

/// Has what waits in an outbox delivered, on a thread of its own: in the order of the writes, some at a time, and a key never
/// twice at a time.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what stands below "guarded" is read and written with the lock held, and
/// what stands below "confined" is used by whoever runs a round, one at a time.
final class OutboxDeliverer: @unchecked Sendable {
    enum End: Sendable {
        case delivered
        case refused(String)
        case failed(String)
        /// There is nobody who can read it.
        case undecodable(String)
        /// The outbox is being closed.
        case cancelled
    }

    typealias Handler = @Sendable (LarderOutboxes.Outbox.Parcel) async -> End

    /// What the running handler delivers, and for whom: who waits for that in there would wait for himself.
    struct Delivering: Sendable {
        fileprivate let deliverer: ObjectIdentifier
        fileprivate let key: [UInt8]
    }
    @TaskLocal static var delivering: Delivering?

    /// Whether this is called within the handler.
    var isInHandler: Bool { Self.delivering?.deliverer == ObjectIdentifier(self) }
    /// Whether this is called within the handler that delivers a write of `key`.
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
    private var restsUntil: Int64 = 0
    private var failuresInRow = 0
    private var rollbacks: UInt64

    /// How many bytes of values are under way at a time.
    private static let bytesMax = 16 << 20
    /// After so many failures without a success between them it is the receiver who fails, and not a write: everything rests,
    /// and then one write is tried.
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

    /// How many of the keys that wait have writes that nobody can read.
    var undecodableCount: Int {
        let keys = lock.withLock { undecodable }
        return keys.count { $0.withUnsafeBytes { outbox.index.isWaiting($0) } }
    }

    func start() {
        lock.withLock {
            thread = WorkThread(name: "larder-outbox") { [self] in
                while !isStopping {
                    let pause = round()
                    outbox.index.wait(milliseconds: pause, isResting: restsUntil > engine.monotonic())
                }
            }
        }
    }

    var isStopping: Bool { mustStop.load(ordering: .acquiring) }

    /// Cancels what is under way, and does not wait for its end.
    func beginStop() {
        mustStop.store(true, ordering: .releasing)
        outbox.index.wake()
        for task in lock.withLock({ running }) { task.cancel() }
    }

    /// Cancels what is under way, and waits for its end. What waits stays. Idempotent.
    func stop() {
        beginStop()
        let thread = lock.withLock {
            defer { self.thread = nil }
            return self.thread
        }
        thread?.join()
        // A round that somebody else runs ends before the next outbox of the database begins.
        let isFirst = rounds.withLock {
            defer { isOver = true }
            return !isOver
        }
        if isFirst { OpenOutboxes.shared.remove(outbox.database) }
        endWaits()
    }

    /// Nobody waits for a delivery that does not come any more.
    func endWaits() { outbox.index.tellWaiters(now: .max) }

    /// Delivers the next ones, and waits for their ends.
    /// - Returns: in how many milliseconds there is more to do, unless something new comes.
    func round() -> Int64 {
        rounds.withLock {
            let now = engine.monotonic()
            defer { outbox.index.tellWaiters(now: nil) }
            if restsUntil > now { return restsUntil - now }
            do throws(LarderError) {
                if engine.rollbackCount != rollbacks {
                    // What was applied may be gone again, and what was removed may be there again.
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
                restsUntil = engine.monotonic() + RetryBackoff.rest(after: failuresInRow)
            }
            let after = engine.monotonic()
            let next = max(restsUntil, outbox.index.nextEvent)
            return next <= after ? 0 : next - after
        }
    }

    private func deliver(_ turns: [OutboxIndex.Turn]) throws(LarderError) {
        if turns.isEmpty { return }
        let parcels = try outbox.collect(turns, bytesMax: Self.bytesMax) { turn in
            note("the entry of a key is none of this outbox's writes, and stays until it is purged")
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
                // The receiver was not asked, and is not to blame.
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
            restsUntil = engine.monotonic() + rest
        }
        try outbox.settle(settled)
    }

    private func ends(of parcels: [LarderOutboxes.Outbox.Parcel]) -> [End] {
        let answers = OutboxAnswers<End>(parcels.count)
        let tasks = parcels.enumerated().map { position, parcel in
            Task { [handler, delivering = Delivering(deliverer: ObjectIdentifier(self), key: parcel.turn.key)] in
                answers.set(position, await Self.$delivering.withValue(delivering) { await handler(parcel) })
            }
        }
        lock.withLock { running = tasks }
        // Who stops cancels what is listed before; this cancels what was listed too late for that.
        if isStopping { for task in tasks { task.cancel() } }
        defer { lock.withLock { running = [] } }
        return answers.wait()
    }

    private func note(_ text: String) { lock.withLock { failure = text } }
}

/// Which databases have an outbox that is open: one deliverer each.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the set is read and written with the lock held.
final class OpenOutboxes: @unchecked Sendable {
    static let shared = OpenOutboxes()

    private let lock = Lock()
    private var open: Set<ObjectIdentifier> = []

    func add(_ database: Database) -> Bool { lock.withLock { open.insert(ObjectIdentifier(database)).inserted } }
    func remove(_ database: Database) { lock.withLock { _ = open.remove(ObjectIdentifier(database)) } }
}
