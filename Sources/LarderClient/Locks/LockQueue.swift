import LarderFetching
import LarderPlatform
import LarderRESP
import LarderWire
import Synchronization

/// Waits for a lock and takes it. A caller waits first for earlier tasks of this process, then for its turn in the
/// daemon's queue, then for the holder.
///
/// The daemon's queue uses FETCH of a key that never has a value. The head of the queue is the caller that got the
/// lease of that key. The head keeps the lease until it has the lock, and the other callers wait for the lease. Only
/// the head watches the lock's entry: it waits until the entry expires or the daemon reports its removal. The lease
/// ends with its connection, so a killed waiter does not block others. The lease also ends after 30 seconds, so the
/// queue may have several heads. This is safe, because only the lock's entry decides which caller gets the lock. A
/// value type.
struct LockQueue: Sendable {
    /// The longest wait of one FETCH, in milliseconds: one day.
    private static let waitMost: Int64 = 86_400_000

    let core: ClientCore
    let store: DatabaseStore
    let name: LockName
    /// The random value of the lock's entry, which identifies the holder.
    let value: [UInt8]
    /// How long the lock is valid, in milliseconds.
    let milliseconds: Int64
    /// When the caller stops waiting for the lock, in milliseconds of ``clock``; nil for no limit.
    let deadline: Int64?
    let clock: LockClock

    /// What a waiting caller has at the daemon.
    private struct Place: Sendable {
        /// The token of the lease; 0 without a lease.
        var token: UInt64 = 0
        /// The separate connection that owns the lease; nil if the shared connection for fetching owns it.
        var link: Link?
        /// Whether the daemon may have executed a request for the lock whose reply is missing.
        var mayHoldLock = false
    }

    /// Returns the time until the deadline, in milliseconds; nil for no limit.
    func left() -> Int64? { deadline.map { max(0, $0 - clock.now()) } }

    private var tooLate: LarderClientError {
        name.error(
            .locked,
            "the lock was not free within the time limit: it has another holder, or another value is stored under its name"
        )
    }

    // MARK: The queue

    /// Waits for the lock and takes it.
    func enter() async throws(LarderClientError) -> LockHandle {
        switch await store.lockQueues.take(name.key, limit: left().map { Int(clamping: max(1, $0)) } ?? 0) {
        case .given: break
        case .timeout: throw tooLate
        case .cancelled: throw cancellation
        case .closed: throw closed
        }
        var unavailableSince: Int64?
        var place = Place()
        while true {
            do throws(LarderClientError) {
                (place.token, place.link) = try await queueUp()
                let lockHandle = try await acquire(&place)
                // Leave the queue in the background, because the body need not wait for this.
                leave(place)
                return lockHandle
            } catch {
                guard isDaemonUnavailable(error), shouldKeepWaiting(&unavailableSince) else {
                    leave(place)
                    throw error.about(name.database)
                }
                _ = await Self.unlessCancelled(Task { [place] in await giveUp(place) })
                place = Place(mayHoldLock: place.mayHoldLock)
                guard (try? await clock.sleep(Self.pauseMilliseconds)) != nil else {
                    leave(place)
                    throw cancellation
                }
            }
        }
    }

    /// Returns whether an error means that the daemon is not running, or exited before it answered. The request can
    /// then be repeated. If the daemon has already executed it, the lock's entry has this caller's value, so the caller
    /// gets the lock again.
    private func isDaemonUnavailable(_ error: LarderClientError) -> Bool {
        error.code == .noDaemon || error.code == .closed && !store.links[0].isClosed
    }

    /// The pause between two checks whether the daemon is running again.
    private static let pauseMilliseconds: Int64 = 50

    /// Returns whether to keep waiting for a daemon that is not running. A caller waits for the daemon no longer than
    /// the duration of a lock: a holder could have blocked the caller for the same time. The first call sets
    /// `unavailableSince` to the current time.
    private func shouldKeepWaiting(_ unavailableSince: inout Int64?) -> Bool {
        let now = clock.now()
        let since = unavailableSince ?? now
        unavailableSince = since
        return now - since < milliseconds && left() != 0
    }

    private var closed: LarderClientError {
        LarderClientError(.closed, "the client was closed", operation: "lock", socketPath: core.socketPath)
    }

    private var cancellation: LarderClientError {
        name.error(.cancelled, "the task was cancelled while it waited for the lock")
    }

    /// Waits for the result of a task, which is not cancelled with the caller.
    /// - Returns: nil if the caller was cancelled.
    private static func unlessCancelled<Result: Sendable>(_ work: Task<Result, Never>) async -> Result? {
        let isOver = WakeUp()
        Task {
            _ = await work.value
            isOver.signal()
        }
        await isOver.wait(milliseconds: waitMost)
        return Task.isCancelled ? nil : await work.value
    }

    private func queueUp() async throws(LarderClientError) -> (token: UInt64, link: Link?) {
        // Send the request in a task that is not cancelled with the caller. If the daemon grants a lease to a cancelled
        // caller, the task then receives its token and can release it.
        let request = Task { () async -> Result<FetchAnswer, LarderClientError> in
            do throws(LarderClientError) {
                return .success(
                    try await store.perform(.fetch(name.queue, maxAge: nil, lease: nil), on: store.fetchLink))
            } catch {
                return .failure(error)
            }
        }
        guard let asked = await Self.unlessCancelled(request) else {
            Task { if let answer = try? await request.value.get() { await giveUp(Place(token: answer.token)) } }
            throw cancellation
        }
        let answer = try asked.get()
        // After any answer but `wait`, the caller tries to take the lock. Several callers may try at the same time,
        // because only the lock's entry decides which of them succeeds.
        guard answer.state == .wait else { return (answer.token, nil) }
        let link = store.ownConnections.begin(waiting: left())
        do throws(LarderClientError) {
            while true {
                let wait = min(left() ?? Self.waitMost, Self.waitMost)
                guard wait > 0 else { throw tooLate }
                let request = Request.fetch(name.queue, maxAge: nil, wait: wait, lease: nil)
                let answer = try await store.perform(request, on: link)
                if answer.state != .wait { return (answer.token, link) }
            }
        } catch {
            // Closing the connection also gives up the place in the daemon's queue.
            store.ownConnections.end(link)
            throw error
        }
    }

    /// Gives up the place in the daemon's queue, and lets the next task of this process continue. Does so in the
    /// background, because a daemon that does not answer must not delay the caller.
    private func leave(_ place: Place) {
        Task {
            if place.mayHoldLock { _ = await release() }
            await giveUp(place)
            store.lockQueues.giveBack(name.key)
        }
    }

    /// Gives up the place in the daemon's queue. Other tasks of this process still wait for this task.
    private func giveUp(_ place: Place) async {
        if place.token != 0 {
            // If this request does not reach the daemon, the lease ends with its connection or after its duration.
            _ = try? await store.perform(.release(name.queue, token: place.token, .open), on: store.links[0])
        }
        if let link = place.link { store.ownConnections.end(link) }
    }

    // MARK: The lock

    private func acquire(_ place: inout Place) async throws(LarderClientError) -> LockHandle {
        let call = try call(
            .acquireLock, [name.key, name.fence], ["\(milliseconds)"], mayRepeat: true)
        var listener: LockListener?
        defer { if let listener { core.changesHub.remove(listener) } }
        while true {
            place.mayHoldLock = true
            let attempt = try await attempt(call)
            place.mayHoldLock = false
            if let lockHandle = attempt.lockHandle { return lockHandle }
            guard let listener else {
                // Subscribe to changes of the entry, so that the daemon reports each release. Then try once more,
                // because the lock may have been released before the subscription.
                let new = LockListener(name)
                listener = new
                try await core.changesHub.add(new, new.topics)
                continue
            }
            // If the entry has no deadline, wait until the daemon reports that the entry was changed or removed.
            let wait = min(attempt.rest < 0 ? Self.waitMost : max(1, attempt.rest), left() ?? Self.waitMost)
            guard wait > 0 else { throw tooLate }
            if listener.isFinished.load(ordering: .acquiring) { throw closed }
            await listener.wakeUp.wait(milliseconds: wait)
            if Task.isCancelled { throw cancellation }
        }
    }

    /// Tries once to take the lock.
    /// - Returns: nil if another holder has the lock, and when its entry expires, in milliseconds; -1 for an entry
    ///   without a deadline.
    private func attempt(_ call: ScriptCall) async throws(LarderClientError) -> (lockHandle: LockHandle?, rest: Int64) {
        let sentAt = clock.now()
        let reply: RESPValue
        do throws(LarderClientError) {
            reply = try await store.run(call, isOrdered: true)
        } catch {
            throw error.code == .cancelled ? cancellation : error
        }
        guard let parts = reply.elements, parts.count == 2, let rest = parts[1].int else {
            throw .unexpectedReply(to: "lock", "a token and a time", key: name.printable)
        }
        if parts[0].isNull { return (nil, rest) }
        guard let token = parts[0].string.flatMap({ UInt64($0) }) else {
            throw .unexpectedReply(to: "lock", "a token and a time", key: name.printable)
        }
        let end = sentAt + milliseconds
        return (LockHandle(name, token: token, milliseconds: milliseconds, end: end, clock: clock), 0)
    }

    /// Releases the lock if it still belongs to this holder.
    /// - Returns: whether the lock still belonged to this holder; nil without an answer from the daemon.
    func release() async -> Bool? {
        guard let call = try? call(.releaseLock, [name.key], []) else { return nil }
        return await answer(call)
    }

    /// If the lock still belongs to this holder, extends it by its duration from now.
    /// - Returns: whether the lock still belongs to this holder; nil without an answer from the daemon.
    func renew() async -> Bool? {
        guard let call = try? call(.renewLock, [name.key], ["\(milliseconds)"], mayRepeat: true) else { return nil }
        return await answer(call)
    }

    private func answer(_ call: ScriptCall) async -> Bool? {
        do throws(LarderClientError) {
            return try await store.run(call, isOrdered: true) == .integer(1)
        } catch {
            return nil
        }
    }

    private func call(
        _ script: Script, _ keys: [[UInt8]], _ words: [String], mayRepeat: Bool = false
    ) throws(LarderClientError) -> ScriptCall {
        let arguments: [any ScriptArgument] = [value] + words
        return try ScriptCall(
            script, keys: keys, arguments: arguments, readOnly: false, mayRepeat: mayRepeat)
    }
}

/// Wakes a waiter when the daemon reports a change of the lock's entry.
///
/// Thread-safe, because all its properties are.
final class LockListener: TopicListener {
    let wakeUp = WakeUp()
    /// Whether the client was closed or the subscription has failed. There are no further wake-ups then.
    let isFinished = Atomic<Bool>(false)
    let topics: [Topic]

    init(_ name: LockName) {
        let channels = ChangeChannels(name.database)
        topics = [.channel(channels.all), .channel(channels.of(name.key))]
    }

    func take(_ message: TopicMessage) { wakeUp.signal() }
    func connectionWasLost() { wakeUp.signal() }
    func isRestored() { wakeUp.signal() }
    func finish(_ error: LarderClientError?) {
        isFinished.store(true, ordering: .releasing)
        wakeUp.signal()
    }
}

// Scripts that the daemon runs for locks, each atomically. A lock is an entry under the lock's name, with a random
// value and a deadline, as in other Redis clients. A second entry stores the last fencing token.
extension Script {
    /// Takes the lock. KEYS: the lock, the last token. ARGV: the holder's random value, the duration in milliseconds.
    /// Returns the token and 0; or, if another holder has the lock, nil and the remaining time in milliseconds, -1
    /// without a deadline.
    ///
    /// The token is the time of the daemon's clock in microseconds, or the last token plus 1 if that is greater.
    /// Because of the clock, tokens increase even if the last token was purged, or lost in a power failure. A holder
    /// that runs the script again gets a new token.
    fileprivate static let acquireLock = Script(
        """
        local held = redis.call('get', KEYS[1])
        if held and held ~= ARGV[1] then return {false, redis.call('pttl', KEYS[1])} end
        local time = redis.call('time')
        local token = time[1] * 1000000 + time[2]
        local last = tonumber(redis.call('get', KEYS[2]) or 0)
        if last and last >= token then token = last + 1 end
        token = string.format('%.0f', token)
        redis.call('set', KEYS[2], token, 'px', 604800000)
        redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
        return {token, 0}
        """)

    /// Renews the lock. KEYS: the lock. ARGV: the holder's random value, the duration in milliseconds. Returns whether
    /// the lock still belongs to the caller.
    fileprivate static let renewLock = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
        return 0
        """)

    /// Releases the lock. KEYS: the lock. ARGV: the holder's random value. Returns whether the lock still belonged to
    /// the caller.
    fileprivate static let releaseLock = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
        return 0
        """)
}
