import LarderEngine
import LarderRESP

/// Executes FETCH. If a value is missing or due for a refresh, one client gets a lease, which is the right to compute
/// the value. Other clients get the old value, or wait.
extension Call {
    mutating func fetch(_ options: FetchWords) throws(CommandError) -> Outcome {
        let session = session
        guard try session.snapshot() == nil else {
            throw CommandError("ERR a snapshot is open, and FETCH reads current entries: SNAPSHOT CLOSE first")
        }
        let clock = session.clock.monotonic()
        var request: FetchRequest
        var waiting = session.waits.fetching.waiting
        if let waiting {
            // Clear the news before reading the entry, so that a wake-up during or after the read is not lost.
            waiting.news.clear()
            request = waiting.request
        } else {
            let holder = session.waits.fetching.holder(most: session.server.limits.leasesMax)
            request = FetchRequest(key: try key(1), holder: holder, askedAt: now)
            request.maxAge = options.maxAge
            request.leaseMilliseconds = options.lease
            if options.wait > 0, let wakeUp = session.waits.wakeUp {
                let news = Awaited<Bool>(wakeUp: wakeUp)
                request.waiter = LeaseWaiter(request.holder, leaseMilliseconds: options.lease) { news.set(true) }
                waiting = Fetching.Waiting(
                    request: request, database: database, until: clock + options.wait, news: news)
            }
        }
        request.mayWait = waiting.map { clock < $0.until && !session.isStopping } ?? false
        var end = try answerFetch(request, ifNot: options.version)
        if case .wait = end, waiting == nil, trackAbsent(request.key) {
            // The value may have been stored before the key was tracked. So look for the value a second time.
            end = try answerFetch(request, ifNot: options.version)
        }
        switch end {
        case .queued(let leaseEnds):
            session.waits.fetching.waiting = waiting
            // When the command is woken, another waiting command may already have the lease. The command then waits
            // again.
            return .waits(until: min(waiting?.until ?? clock, leaseEnds))
        case .wait(let left): Self.reply(session, "wait", left: left)
        case .answered: break
        }
        session.waits.fetching.waiting = nil
        return .done
    }

    /// The result of an attempt to reply to FETCH.
    private enum FetchEnd {
        /// The reply is written.
        case answered
        /// Another client has the lease, for at most this many milliseconds. The command does not wait for it. No reply
        /// is written yet.
        case wait(Int64)
        /// Another client has the lease, and the command waits for it. The lease ends at this time of the monotonic
        /// clock (in milliseconds) at the latest. No reply is written yet.
        case queued(Int64)
    }

    /// Writes a reply without a value.
    private static func reply(_ session: Session, _ state: String, token: UInt64? = nil, left: Int64) {
        session.replies.array(count: 6)
        session.replies.bulk(state)
        session.replies.null()
        if let token { session.replies.bulk("\(token)") } else { session.replies.null() }
        session.replies.null()
        session.replies.integer(-1)
        session.replies.integer(max(0, left))
    }

    /// Handles FETCH in a database with an origin. The daemon itself reads the value, so no client gets a lease.
    mutating func fetchBehindOrigin(_ options: FetchWords) throws(CommandError) -> Outcome {
        let (session, key, now) = (session, try key(1), now)
        let rules = rules
        func reply(_ state: ServedState, _ header: RecordHeader, _ payload: UnsafeRawBufferPointer) {
            session.replyMemory.pointee.fetched(
                state, token: nil, payload, unless: options.version, storedAt: header.storedAt,
                deadline: rules.deadline(header), now: now)
        }
        do throws(CommandError) {
            if try !readBehindOrigin(key, servesStale: false, { reply(.fresh, $0, $1) }) {
                Self.reply(session, "absent", left: 0)
            }
        } catch {
            let isLate = session.origin.servesStale
            guard missing == nil || isLate, !isCold, try readUnverified(key, { reply(.stale, $0, $1) })
            else { throw error }
            missing = nil
        }
        return .done
    }

    /// Writes the reply to FETCH, unless the client has to wait.
    private mutating func answerFetch(
        _ request: FetchRequest, ifNot version: UInt64?
    ) throws(CommandError) -> FetchEnd {
        let session = session
        let now = now
        var ticket = CommitTicket.none
        var end = FetchEnd.answered
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
    ) -> FetchEnd {
        let state: ServedState
        var token: UInt64?
        switch answer.state {
        case .queued(let until): return .queued(until)
        case .wait(let until): return .wait(until - session.clock.monotonic())
        case .absent(let left):
            reply(session, "absent", left: left)
            return .answered
        case .failed(let left):
            reply(session, "failed", left: left)
            return .answered
        case .fresh: state = .fresh
        case .stale: state = .stale
        case .lead(let granted):
            state = .lead
            token = granted
        }
        guard let payload, let header = answer.header else {
            // If there is no value, the client always has the lease to compute it.
            reply(session, "lead", token: token, left: 0)
            return .answered
        }
        let deadline = answer.rules.deadline(header)
        session.replyMemory.pointee.fetched(
            state, token: token, payload, unless: known, storedAt: header.storedAt, deadline: deadline, now: now)
        return .answered
    }

    /// Tracks a key without an entry for a client with CLIENT TRACKING. The daemon then notifies the client when the
    /// value is stored, or the lease is released.
    /// - Returns: false if the client does not track keys that it reads.
    private func trackAbsent(_ key: Key) -> Bool {
        guard let tracking = session.tracking.client, !tracking.isBroadcast else { return false }
        server.tracking.willRead(Array(key.bytes), tracking)
        return true
    }
}
