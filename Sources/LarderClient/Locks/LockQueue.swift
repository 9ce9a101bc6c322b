import LarderFetching
import LarderPlatform
import LarderRESP

/// Queues for a lock: first among the tasks of this process, then in the daemon's queue, then on the lock's entry.
///
/// The queue consists of the callers of FETCH for a key that never has a value. Its head holds the lease of that key,
/// and keeps the lease until it has the lock. Only the head watches the lock's entry, and waits for its expiry or for
/// the daemon to report its removal. The lease ends with the connection, so a killed waiter leaves no gap. It also ends
/// after half a minute, so there may be several heads; the lock's entry alone decides. A value.
struct LockQueue: Sendable {
    /// How long the daemon keeps a FETCH waiting.
    private static let waitMost: Int64 = 86_400_000

    let core: ClientCore
    let store: DatabaseStore
    let name: LockName
    /// The value of the lock's entry.
    let value: [UInt8]
    /// How long the lock is valid, in milliseconds.
    let milliseconds: Int64
    /// The latest time to get the lock; nil for no limit.
    let deadline: Int64?
    let clock: LockClock

    /// A place in the daemon's queue.
    struct Place: Sendable {
        /// 0 for none.
        var token: UInt64 = 0
        /// The connection that owns the lease, if it is not a shared one.
        var link: Link?
    }

    private var queue: [UInt8] { LockScripts.queue(name.key) }

    /// The remaining time, in milliseconds; nil for no limit.
    private func left() -> Int64? { deadline.map { max(0, $0 - clock.now()) } }

    private var tooLate: LarderClientError {
        name.error(
            .locked,
            "the lock was not free within the time limit: it has another holder, or another value is stored under its name"
        )
    }

    // MARK: The queue

    /// Waits for the lock.
    func enter() async throws(LarderClientError) -> LockHandle {
        switch await store.lockQueues.take(name.key, limit: left().map { Int(clamping: max(1, $0)) } ?? 0) {
        case .given: break
        case .timeout: throw tooLate
        case .cancelled: throw cancellation
        case .closed: throw closed
        }
        var goneSince: Int64?
        while true {
            var place = Place()
            do throws(LarderClientError) {
                place = try await queueUp()
                let grip = try await acquire()
                // Leave the queue in the background, because the body need not wait for this.
                Task { [place] in await leave(place) }
                return grip
            } catch {
                let place = place
                let isGone = isOfDaemonThatLeft(error) && mayComeBack(&goneSince)
                await Task { isGone ? await giveUp(place) : await leave(place) }.value
                guard isGone else { throw error.about(name.database) }
                guard (try? await clock.sleep(Self.pauseMilliseconds)) != nil else {
                    store.lockQueues.giveBack(name.key)
                    throw cancellation
                }
            }
        }
    }

    /// Whether the daemon is not running, or exited before it answered. The request can then be repeated: if it was
    /// executed, the lock's entry has this caller's value.
    private func isOfDaemonThatLeft(_ error: LarderClientError) -> Bool {
        error.code == .noDaemon || error.code == .closed && !store.links[0].isClosed
    }

    /// The interval of checks whether the daemon is running again.
    private static let pauseMilliseconds: Int64 = 50

    /// Whether to keep waiting for a daemon that is not running. Waits for at most the lock's time, because a holder
    /// may keep the lock for as long.
    private func mayComeBack(_ goneSince: inout Int64?) -> Bool {
        let now = clock.now()
        let since = goneSince ?? now
        goneSince = since
        return now - since < milliseconds && left() != 0
    }

    private var closed: LarderClientError {
        LarderClientError(.closed, "the client was closed", operation: "lock", socketPath: core.socketPath)
    }

    private var cancellation: LarderClientError {
        name.error(.cancelled, "the task was cancelled while it waited for the lock")
    }

    private func queueUp() async throws(LarderClientError) -> Place {
        // This task is not cancelled, so that a cancelled caller receives its place in the queue, if it got one, and
        // can release it.
        let asked = await Task { () async -> Result<FetchAnswer, LarderClientError> in
            do throws(LarderClientError) {
                return .success(try await store.fetch(.fetch(queue, maxAge: nil, lease: nil)))
            } catch {
                return .failure(error)
            }
        }.value
        let answer = try asked.get()
        // If FETCH did not have to wait, the caller may try: only the lock's entry decides, whatever the state of the
        // queue's key.
        guard answer.state == .wait else { return Place(token: answer.token) }
        let link = store.waitingLinks.begin(waiting: left())
        do throws(LarderClientError) {
            while true {
                let wait = min(left() ?? Self.waitMost, Self.waitMost)
                guard wait > 0 else { throw tooLate }
                let request = Request.fetch(queue, maxAge: nil, wait: wait, lease: nil)
                let answer = try await store.perform(request, link)
                if answer.state != .wait { return Place(token: answer.token, link: link) }
            }
        } catch {
            // The place ends with the connection.
            store.waitingLinks.end(link)
            throw error
        }
    }

    /// Passes the place to the next waiter.
    func leave(_ place: Place) async {
        await giveUp(place)
        store.lockQueues.giveBack(name.key)
    }

    /// Passes the place to the next process; the place among the tasks of this process stays.
    private func giveUp(_ place: Place) async {
        if place.token != 0 {
            // If this request does not reach the daemon, the lease ends with its connection or after its duration.
            _ = try? await store.perform(.release(queue, token: place.token, .open), store.links[0])
        }
        if let link = place.link { store.waitingLinks.end(link) }
    }

    // MARK: The lock

    private func acquire() async throws(LarderClientError) -> LockHandle {
        let call = try call(
            LockScripts.acquire, [name.key, LockScripts.fence(name.key)], ["\(milliseconds)"], mayRepeat: true)
        var listener: LockListener?
        defer { if let listener { core.changesHub.remove(listener) } }
        while true {
            let attempt = try await attempt(call)
            if case .held(let grip) = attempt { return grip }
            guard let listener else {
                // From now on the daemon reports each release. Try once more, because an earlier release may have been
                // missed.
                let new = LockListener(name)
                listener = new
                try await core.changesHub.add(new, new.topics)
                continue
            }
            guard case .busy(let rest) = attempt else { continue }
            // An entry without a deadline may get one, or be removed: both are reported.
            let wait = min(rest < 0 ? Self.waitMost : max(1, rest), left() ?? Self.waitMost)
            guard wait > 0 else { throw tooLate }
            if listener.isFinished.load(ordering: .acquiring) { throw closed }
            await listener.wakeUp.wait(milliseconds: wait)
            if Task.isCancelled { throw cancellation }
        }
    }

    private enum Attempt {
        case held(LockHandle)
        /// Another holder has the lock, for this many milliseconds; -1 if it has no deadline.
        case busy(Int64)
    }

    private func attempt(_ call: ScriptCall) async throws(LarderClientError) -> Attempt {
        let sentAt = clock.now()
        let reply: RESPValue
        do throws(LarderClientError) {
            reply = try await store.run(call, isOrdered: true)
        } catch {
            // The request may have been executed, so release the lock.
            _ = await Task { await release() }.value
            throw error.code == .cancelled ? cancellation : error
        }
        guard let parts = reply.elements, parts.count == 2, let rest = parts[1].int else {
            throw .unexpectedReply(to: "lock", "a token and a time", key: name.printable)
        }
        if parts[0].isNull { return .busy(rest) }
        guard let token = parts[0].string.flatMap({ UInt64($0) }) else {
            throw .unexpectedReply(to: "lock", "a token and a time", key: name.printable)
        }
        return .held(
            LockHandle(name, token: token, milliseconds: milliseconds, end: sentAt + milliseconds, clock: clock))
    }

    /// - Returns: whether the lock still belonged to this holder; nil without an answer from the daemon.
    func release() async -> Bool? {
        guard let call = try? call(LockScripts.release, [name.key], []) else { return nil }
        return await answer(call)
    }

    /// - Returns: whether the lock still belongs to this holder; nil without an answer from the daemon.
    func renew() async -> Bool? {
        guard let call = try? call(LockScripts.renew, [name.key], ["\(milliseconds)"], mayRepeat: true) else {
            return nil
        }
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
