import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import LarderRESP
import Synchronization

/// Delivers the queued writes in an outbox to the origin, on its own thread. Writes are delivered in batches, in the
/// order of their numbers. Each key has at most one running delivery.
///
/// `@unchecked Sendable`: everything below "Confined" is used only by `round`, whose calls never overlap.
final class OutboxDelivery: @unchecked Sendable {
    private typealias Turn = OutboxIndex.Turn

    /// A write that is being delivered.
    private struct Parcel {
        let turn: Turn
        let entry: OutboxEntry
        var doubt: OutboxIndex.Doubt
    }

    private enum End {
        case done
        /// The write was not applied, because the origin has a newer value.
        case superseded
        case failed(OriginError)
    }

    private let tier: OriginTier
    private let outbox: Outbox
    private let engine: Engine
    private let lines: LimitedLines
    private let stopping = Lock()
    private var thread: WorkThread?
    private let mustStop = Atomic<Bool>(false)
    // Confined to `round`:
    private var nextAttemptAt: Int64 = 0
    private var failures = 0
    private var rollbacks: UInt64

    /// The maximum number of keys that one round delivers. `bytesMax` is the maximum size of their values, in bytes.
    private static let parcelsMax = 256
    private static let bytesMax = 16 << 20
    /// The minimum interval between equal log lines, in milliseconds.
    private static let quietMilliseconds: Int64 = 10_000

    init(_ tier: OriginTier, _ outbox: Outbox, _ engine: Engine, _ log: Log) {
        (self.tier, self.outbox, self.engine) = (tier, outbox, engine)
        lines = LimitedLines(
            log, each: Self.quietMilliseconds, burst: 1, clock: { engine.monotonic() }, rest: { _ in "" })
        rollbacks = engine.rollbackCount
    }

    func start() {
        stopping.withLock {
            mustStop.store(false, ordering: .releasing)
            thread = WorkThread(name: "larder-outbox") { [self] in
                while !mustStop.load(ordering: .acquiring) {
                    let pause = round()
                    outbox.index.wait(milliseconds: pause, isResting: nextAttemptAt > engine.monotonic())
                }
            }
        }
    }

    /// Stops after the running round has ended. Undelivered writes stay in the outbox. Idempotent.
    func stop() {
        stopping.withLock {
            mustStop.store(true, ordering: .releasing)
            outbox.index.wake()
            thread?.join()
            thread = nil
        }
    }

    /// Delivers the next batch, and waits for the results.
    /// - Returns: the time in milliseconds until the next round must run, if no write is queued before that.
    func round() -> Int64 {
        let now = engine.monotonic()
        defer { outbox.index.notifyWaiters(now: engine.monotonic()) }
        if outbox.index.takeRecovery() {
            nextAttemptAt = min(nextAttemptAt, now + Int64.random(in: 0...RetryBackoff.shortest))
            // Forget the previous failures, so that the next delay is the shortest. The next attempt may still fail,
            // because the connection for deliveries has its own back-off.
            failures = 0
        }
        if nextAttemptAt > now { return max(1, min(nextAttemptAt, outbox.index.nextWaiter) - now) }
        do throws(LarderError) {
            if engine.rollbackCount != rollbacks {
                // A rollback of the engine may have changed which writes are in the outbox: load it again.
                rollbacks = engine.rollbackCount
                try outbox.load()
            }
            defer { outbox.index.endTurns() }
            let turns = outbox.index.take(Self.parcelsMax, now: now)
            if !turns.isEmpty {
                do throws(LarderError) {
                    try bring(collect(turns))
                } catch {
                    outbox.index.putBack(turns)
                    throw error
                }
            }
        } catch {
            report("cannot use the outbox: \(error)")
            rest()
        }
        let after = engine.monotonic()
        let next = min(max(nextAttemptAt, outbox.index.nextEvent), outbox.index.nextWaiter)
        return next <= after ? 0 : next - after
    }

    // MARK: One round

    private func collect(_ turns: [Turn]) throws(LarderError) -> [Parcel] {
        let parcels = try outbox.collect(turns, bytesMax: Self.bytesMax) { turn in
            outbox.counts.refused.add()
            report("an entry of the outbox was not written by this daemon, and is ignored: PURGE removes it")
            outbox.index.rest(turn, until: engine.monotonic() + RetryBackoff.longest)
        }
        return parcels.map { Parcel(turn: $0.turn, entry: $0.entry, doubt: $0.turn.doubt) }
    }

    private func bring(_ all: [Parcel]) throws(LarderError) {
        if all.isEmpty { return }
        var failed: [(Parcel, OriginError)] = []
        let parcels = look(all, &failed)
        outbox.counts.retried.add(parcels.count { $0.turn.failures > 0 })
        let answers = BlockingResults<End>(parcels.count)
        for (position, parcel) in parcels.enumerated() {
            send(parcel) { answers.set(position, $0) }
        }
        let ends = answers.wait()
        var settled: [Outbox.Settled] = []
        for (parcel, end) in zip(parcels, ends) {
            switch end {
            case .done: outbox.counts.delivered.add()
            case .superseded:
                outbox.counts.superseded.add()
                report("dropped a queued write: its last attempt had no reply, and the origin has a newer value")
            case .failed(let error):
                failed.append((parcel, error))
                continue
            }
            settled.append(Outbox.Settled(turn: parcel.turn, number: parcel.entry.number))
            // If `settle` fails, the write is delivered again. `doubt` then protects a newer value of the origin.
            outbox.index.note(parcel.turn, parcel.doubt)
        }
        do throws(LarderError) {
            try outbox.settle(settled)
        } catch {
            handle(failed, ofAll: all.count)
            throw error
        }
        handle(failed, ofAll: all.count)
    }

    /// Reads the origin's current value of each key whose write is delivered for the first time. If a repeated delivery
    /// finds another value, that value may be newer than the write, and is not overwritten.
    /// - Parameter failed: receives the writes whose values could not be read. They are not sent in this round.
    private func look(_ parcels: [Parcel], _ failed: inout [(Parcel, OriginError)]) -> [Parcel] {
        let first = parcels.indices.filter { parcels[$0].doubt == .none }
        let answers = BlockingResults<Result<RESPValue, OriginError>>(first.count)
        for (position, index) in first.enumerated() {
            let key = parcels[index].turn.key
            tier.origin.perform(OutboxScripts.looking(at: key), key: key) { answers.set(position, $0) }
        }
        var parcels: [Parcel?] = parcels
        for (index, answer) in zip(first, answers.wait()) {
            switch answer {
            case .success(let found): parcels[index]?.doubt = .mayBeThere(over: found.string)
            // The origin does not let this user run scripts, so the current value stays unknown.
            case .failure(let error) where Self.isRefusal(error): parcels[index]?.doubt = .mayBeThere(over: nil)
            case .failure(let error):
                if let parcel = parcels[index] { failed.append((parcel, error)) }
                parcels[index] = nil
            }
        }
        return parcels.compactMap(\.self)
    }

    private func send(_ parcel: Parcel, then: @escaping @Sendable (End) -> Void) {
        let (key, entry, now) = (parcel.turn.key, parcel.entry, engine.now())
        @Sendable func end(_ result: Result<some Any, OriginError>) -> End {
            switch result {
            case .success: .done
            case .failure(let error): .failed(error)
            }
        }
        if case .mayBeThere(let before?) = parcel.turn.doubt {
            tier.repeatWrite(OutboxScripts.repeating(key, entry, over: before, now: now), key) { result in
                if case .success(.integer(0)) = result { then(.superseded) } else { then(end(result)) }
            }
        } else if let value = entry.value, !entry.isOver(now: now) {
            // Send the remaining lifetime, not the deadline, because the origin's clock may differ.
            let lifetime = entry.until.map { OriginWrite.Lifetime.milliseconds($0 - now) } ?? .unlimited
            let write = OriginWrite(key: key, value: value, lifetime: lifetime)
            let (index, number) = (outbox.index, parcel.turn.number)
            tier.deliver(write, isLast: { index.number(key) == number }, then: { then(end($0)) })
        } else {
            tier.deliver(removalOf: key) { then(end($0)) }
        }
    }

    // MARK: Failures

    private func handle(_ failed: [(Parcel, OriginError)], ofAll count: Int) {
        guard !failed.isEmpty else {
            failures = 0
            return
        }
        var unreached: [Turn] = []
        var reason: OriginError?
        let isPartly = failed.count < count || tier.origin.status().servers.contains(where: \.isUp)
        for (parcel, error) in failed {
            // If the write may have been executed, its next attempt must check for newer values.
            if error.isUncertain { outbox.index.note(parcel.turn, parcel.doubt) }
            if Self.isRefusal(error) {
                outbox.counts.refused.add()
                report("the origin refused a write, which will be retried: \(error)")
                if case .mayBeThere = parcel.turn.doubt, case .refused = error {
                    // The origin runs no scripts, so newer values cannot be detected.
                    outbox.index.note(parcel.turn, .mayBeThere(over: nil))
                }
                outbox.index.rest(
                    parcel.turn, until: engine.monotonic() + RetryBackoff.rest(after: parcel.turn.failures))
            } else if isPartly, tier.origin.status().servers.count > 1 {
                outbox.index.rest(
                    parcel.turn, until: engine.monotonic() + RetryBackoff.rest(after: parcel.turn.failures))
            } else {
                unreached.append(parcel.turn)
                reason = error
            }
        }
        guard let reason else {
            failures = 0
            return
        }
        report("queued writes are waiting for the origin: \(reason)")
        outbox.index.putBack(unreached, failed: true)
        rest()
    }

    /// Whether the error concerns only this write. Other errors concern the whole server.
    private static func isRefusal(_ error: OriginError) -> Bool {
        switch error {
        case .tooLarge: true
        case .refused(let reply): !serverErrors.contains { reply.hasPrefix($0) }
        default: false
        }
    }

    private static let serverErrors = """
        LOADING READONLY MASTERDOWN CLUSTERDOWN TRYAGAIN NOAUTH WRONGPASS MISCONF BUSY NOREPLICAS OOM ORIGIN
        """.split(separator: " ")

    private func rest() {
        nextAttemptAt = engine.monotonic() + RetryBackoff.rest(after: failures)
        failures += 1
    }

    private func report(_ text: String) {
        lines.add(.warning, "database '\(tier.database.name)': \(text)", kind: String(text.prefix { $0 != ":" }))
    }
}

/// Lua scripts that the origin runs, so that a repeated delivery does not overwrite a newer value. They work on Redis,
/// Valkey and compatible servers.
enum OutboxScripts {
    /// Sets `d` to the SHA-1 of the key's string, in hexadecimal; to '' without a value, to 'other' for another type.
    private static let look = """
        local v = redis.pcall('GET', KEYS[1])
        local d = ''
        if type(v) == 'table' then d = 'other' elseif v then d = redis.sha1hex(v) end

        """

    /// Applies the write if the origin's value is the same as before the first attempt (`ARGV[1]` is the old `d`).
    private static let apply = """
        if d == ARGV[1] then
          if ARGV[2] == '' then redis.call('DEL', KEYS[1])
          elseif ARGV[3] == '0' then redis.call('SET', KEYS[1], ARGV[4])
          else redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[3]) end
          return 1
        end
        if ARGV[2] == '' then return v and 0 or 1 end
        return v == ARGV[4] and 1 or 0
        """

    /// Returns the command that reads the SHA-1 of a key's value.
    static func looking(at key: [UInt8]) -> [[UInt8]] {
        [Array("EVAL".utf8), Array((look + "return d").utf8), [0x31], key]
    }

    /// Returns the command that applies a write unless the origin has a newer value. The command replies with 1 if this
    /// or an earlier attempt has applied the write, otherwise with 0.
    /// - Parameter before: the reply to ``looking(at:)`` before the first attempt.
    static func repeating(_ key: [UInt8], _ entry: OutboxEntry, over before: String, now: Int64) -> [[UInt8]] {
        let value = entry.isOver(now: now) ? nil : entry.value
        return [
            Array("EVAL".utf8), Array((look + apply).utf8), [0x31], key, Array(before.utf8),
            Array((value == nil ? "" : "set").utf8), Array(String(entry.until.map { max(1, $0 - now) } ?? 0).utf8),
            value ?? [],
        ]
    }
}
