import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// FETCH and RELEASE. If a value is missing or due for a refresh, one client gets a lease, which is the right to
/// compute the value. Other clients get the existing value, or wait.
extension CommandTable {
    static let fetchingCommands: Handlers = [
        .fetch: FetchingCommands.fetch,
        .release: FetchingCommands.release,
    ]
}

enum FetchingCommands {
    // MARK: FETCH

    @Sendable static func fetch(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        let options = try FetchWords(session.parser.currentArguments())
        guard try session.snapshot() == nil else {
            throw CommandError("ERR a snapshot is open, and FETCH reads current entries: SNAPSHOT CLOSE first")
        }
        if call.readsOrigin { return try fetchBehindOrigin(&call, options) }
        let clock = session.clock.monotonic()
        var request: FetchRequest
        var waiting = session.waits.fetching.waiting
        if let waiting {
            // Clear the flag before checking, so that no wake-up after the check is lost.
            waiting.isWoken.clear()
            request = waiting.request
        } else {
            let holder = session.waits.fetching.holder(most: session.server.limits.leasesMax)
            request = FetchRequest(key: try call.key(1), holder: holder, askedAt: call.now)
            request.maxAge = options.maxAge
            request.leaseMilliseconds = options.lease
            if options.wait > 0, let wakeUp = session.waits.wakeUp {
                let isWoken = WaitingFetch.Flag()
                request.waiter = LeaseWaiter(request.holder, leaseMilliseconds: options.lease) {
                    isWoken.set()
                    wakeUp()
                }
                waiting = WaitingFetch(request, call.database, until: clock + options.wait, isWoken)
            }
        }
        request.mayWait = waiting.map { clock < $0.until && !session.isStopping } ?? false
        var end = try call.answerFetch(request, ifNot: options.version)
        if case .wait = end, waiting == nil, call.trackAbsent(request.key) {
            // The value may have been stored just before the key was tracked: check again.
            end = try call.answerFetch(request, ifNot: options.version)
        }
        switch end {
        case .queued(let leaseEnds):
            session.waits.fetching.waiting = waiting
            // The command may have been woken although another waiting command got the lease: wait again.
            return .waits(until: min(waiting?.until ?? clock, leaseEnds))
        case .wait(let left): reply(call.session, "wait", left: left)
        case .answered: break
        }
        session.waits.fetching.waiting = nil
        return .done
    }

    /// The result of an attempt to reply to FETCH.
    enum FetchEnd {
        /// The reply is written.
        case answered
        /// Another client has the lease, for at most this many milliseconds. The command does not wait for the lease.
        /// No reply is written.
        case wait(Int64)
        /// Another client has the lease, and the command waits for it: at most until this time of the monotonic clock,
        /// in milliseconds, when the lease ends. No reply is written.
        case queued(Int64)
    }

    /// Writes a reply without a value.
    fileprivate static func reply(_ session: Session, _ state: String, token: UInt64? = nil, left: Int64) {
        session.replies.array(count: 6)
        session.replies.bulk(state)
        session.replies.null()
        if let token { session.replies.bulk("\(token)") } else { session.replies.null() }
        session.replies.null()
        session.replies.integer(-1)
        session.replies.integer(max(0, left))
    }

    /// Handles FETCH in a database with an origin. The daemon itself reads the value, so no client gets a lease.
    private static func fetchBehindOrigin(
        _ call: inout Call, _ options: FetchWords
    ) throws(CommandError) -> Outcome {
        let (session, key, now) = (call.session, try call.key(1), call.now)
        let rules = call.rules
        func reply(_ state: ServedState, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer) {
            session.replyMemory.pointee.fetched(
                state, token: nil, payload, unless: options.version, storedAt: header.storedAt,
                deadline: rules.deadline(header), now: now)
        }
        do throws(CommandError) {
            if try !call.readBehindOrigin(key, servesStale: false, { reply(.fresh, $0, $1) }) {
                Self.reply(session, "absent", left: 0)
            }
        } catch {
            let isLate = session.origin.servesStale
            guard call.missing == nil || isLate, !call.isCold, try call.readUnverified(key, { reply(.stale, $0, $1) })
            else {
                throw error
            }
            call.missing = nil
        }
        return .done
    }

    // MARK: RELEASE

    @Sendable static func release(_ call: inout Call) throws(CommandError) -> Outcome {
        let key = try call.key(1)
        let token = try call.token(2)
        let result: LeaseReleaseResult
        if call.count == 3 {
            result = try call.update([key], loading: false) { $0.release(0, token, .open) ? .done : .lost }
        } else if call.count == 4, call.isWord(3, "UNCHANGED") {
            result = try call.update([key], loading: true) { $0.releaseUnchanged(0, token) }
        } else if call.count == 5, call.isWord(3, "ABSENT") {
            let rest = try FetchWords.milliseconds(call.bytes(4), "ABSENT", from: 1)
            result = try call.update([key], loading: true, headersOnly: true) {
                $0.releaseAbsent(0, token, milliseconds: rest) ? .done : .lost
            }
        } else if call.count == 5, call.isWord(3, "FAILED") {
            let rest = try FetchWords.milliseconds(call.bytes(4), "FAILED", from: 1)
            result = try call.update([key], loading: false) {
                $0.release(0, token, .failed(milliseconds: rest)) ? .done : .lost
            }
        } else {
            throw .syntax
        }
        switch result {
        case .done: call.session.replies.simple("OK")
        case .lost: call.session.replies.null()
        case .nothingStored:
            throw CommandError("ERR UNCHANGED needs a stored value, and there is none; the lease was released")
        }
        return .done
    }
}

extension Call {
    /// Writes the reply to FETCH, unless the client has to wait.
    fileprivate mutating func answerFetch(
        _ request: FetchRequest, ifNot version: UInt64?
    ) throws(CommandError) -> FetchingCommands.FetchEnd {
        let session = session
        let now = now
        var ticket = CommitTicket.none
        var end = FetchingCommands.FetchEnd.answered
        var seen: (RecordHeader, FreshnessRules)?
        let isAnswered = try CommandError.wrap(
            database.fetch(request, now: now, access, below: Limits.loopBytesMax, ticket: &ticket) { answer, payload in
                if case .fresh = answer.state, let header = answer.header { seen = (header, answer.rules) }
                end = Self.write(answer, payload, version, now, session)
            })
        if !isAnswered { throw cold() }
        depends(on: ticket)
        if let (header, rules) = seen, session.tracking.tracksReads { note(request.key, header, rules) }
        return end
    }

    private static func write(
        _ answer: FetchAnswer, _ payload: UnsafeRawBufferPointer?, _ known: UInt64?, _ now: Int64, _ session: Session
    ) -> FetchingCommands.FetchEnd {
        let state: ServedState
        var token: UInt64?
        switch answer.state {
        case .queued(let until): return .queued(until)
        case .wait(let until): return .wait(until - session.clock.monotonic())
        case .absent(let left):
            FetchingCommands.reply(session, "absent", left: left)
            return .answered
        case .failed(let left):
            FetchingCommands.reply(session, "failed", left: left)
            return .answered
        case .fresh: state = .fresh
        case .stale: state = .stale
        case .lead(let granted):
            state = .lead
            token = granted
        }
        guard let payload, let header = answer.header else {
            // If there is no value, the client always has the lease to compute it.
            FetchingCommands.reply(session, "lead", token: token, left: 0)
            return .answered
        }
        let deadline = answer.rules.deadline(header)
        session.replyMemory.pointee.fetched(
            state, token: token, payload, unless: known, storedAt: header.storedAt, deadline: deadline, now: now)
        return .answered
    }

    /// Tracks a key without an entry for a client with CLIENT TRACKING. The client is then notified when the value is
    /// stored, or the lease is released.
    /// - Returns: false if the client does not track keys that it reads.
    fileprivate func trackAbsent(_ key: Key) -> Bool {
        guard let tracking = session.tracking.client, !tracking.isBroadcast else { return false }
        server.tracking.willRead(Array(key.bytes), tracking)
        return true
    }
}
