import LarderFetching
import LarderPlatform

/// One key that a blocking client fetches. Not thread-safe: belongs to one call.
final class BlockingFetch<Value: Codable> {
    /// A lease: the right to fetch the key. The token is 0 with Redis, which has no leases.
    typealias Lead = (call: BlockingFetch, token: UInt64, value: FoundValue<Value>?)

    /// The longest wait in one request, in milliseconds. It is shorter than the usual time limit of a client, so that
    /// the request does not time out.
    private static var sliceMilliseconds: Int64 { 1_000 }

    private let client: BlockingLarderClient
    private let key: [UInt8]
    private let options: CheckedFetch
    let name: FetchName
    /// The connection on which the call waits, and which then owns the call's lease.
    private var own: BlockingSession?

    init(_ client: BlockingLarderClient, _ key: [UInt8], _ options: FetchOptions) throws {
        self.client = client
        self.key = key
        name = FetchName(client, client.name, key)
        self.options = try CheckedFetch(options, name)
        if FetchContext.names.contains(name) { throw FetchError.recursion(name) }
    }

    func value(_ fetch: () throws -> Value?) throws -> Value? {
        switch options.source {
        case .ignoreCache: return try fetch()
        case .cacheOnly: return try youngEnough()
        case .cacheElseOrigin, .originElseCache, .originOnly: break
        }
        do {
            switch try ask(waits: true) {
            case .fresh(let value), .stale(let value): return value
            case .absent: return nil
            case .wait: throw FetchError.timeout(name, options.hard ?? 0)
            case .failed(let left): throw restError(left)
            case .lead(let token, let found?) where found.isFresh && found.isYoung && !options.refreshesAhead:
                release(token)
                return found.value
            case .lead(let token, let found): return try load((self, token, found), fetch)
            }
        } catch {
            // With `originElseCache` a value of any age is acceptable after the origin has failed.
            guard options.source == .originElseCache, let value = try? any() else { throw error }
            return value
        }
    }

    /// Fetches several keys with one call of `fetch`, which receives the keys that the daemon does not have. Returns
    /// the values of the keys that have one.
    static func values<Key: Hashable>(
        _ calls: [(key: Key, call: BlockingFetch)], _ fetch: ([Key]) throws -> [Key: Value]
    ) throws -> [Key: Value] {
        var found: [Key: Value] = [:]
        var leads: [(key: Key, lead: Lead)] = []
        var waits: [(key: Key, call: BlockingFetch)] = []
        defer { for (_, lead) in leads { lead.call.release(lead.token) } }
        var failure: (any Error)?
        for ((key, call), reply) in zip(calls, try askAll(calls.map(\.call))) {
            switch reply {
            case .failure(let error): failure = failure ?? error
            case .success(.failed(let left)): failure = failure ?? call.restError(left)
            case .success(.fresh(let value)), .success(.stale(let value)): found[key] = value
            case .success(.absent): break
            case .success(.lead(let token, let value)): leads.append((key, (call, token, value)))
            case .success(.wait): waits.append((key, call))
            }
        }
        if let failure { throw failure }
        if !leads.isEmpty {
            let asked = leads
            leads = []
            let fetched = try load(asked.map(\.lead)) { try fetch(asked.map(\.key)) }
            try end(asked.map { (lead: $0.lead, value: fetched[$0.key]) })
            for (key, _) in asked { found[key] = fetched[key] }
        }
        // Wait for the other callers' fetches last: these callers may be waiting for values that this call fetches
        // above.
        for (key, call) in waits { found[key] = try call.value { try fetch([key])[key] } }
        return found
    }

    private func load(_ lead: Lead, _ fetch: () throws -> Value?) throws -> Value? {
        let value: Value?
        do {
            value = try Self.load([lead], fetch)
        } catch {
            guard options.servesStale, let found = lead.value, found.isYoung else { throw error }
            return found.value
        }
        if value != nil {
            try Self.end([(lead, value)])
        } else {
            release(lead.token, .absent(milliseconds: max(1, options.absent)))
        }
        return value
    }

    /// Fetches the keys of some leases with one call of `fetch`. If it throws, releases the leases.
    private static func load<Result>(_ leads: [Lead], _ fetch: () throws -> Result) throws -> Result {
        do {
            return try FetchContext.$names.withValue(FetchContext.names + leads.map(\.call.name)) { try fetch() }
        } catch {
            for (call, token, _) in leads {
                let backOff = call.options.backOff
                let release = backOff > 0 ? FetchRelease.failed(milliseconds: backOff) : .open
                FlightTable.shared.note(error, call.name, release, now: MonotonicClock.milliseconds())
                call.release(token, release)
            }
            throw error
        }
    }

    /// Releases a lease. If the request does not reach the daemon, the lease expires.
    private func release(_ token: UInt64, _ release: FetchRelease = .open) {
        if token != 0 { _ = try? client.perform(.release(key, token: token, release)) }
    }

    private func restError(_ left: Int64) -> any Error {
        FlightTable.shared.restError(name, left, now: MonotonicClock.milliseconds())
    }

    // MARK: The daemon

    /// Reads the key from the daemon, or requests a lease for it.
    /// - Parameter waits: whether to wait for another caller's fetch, up to the hard timeout.
    private func ask(waits: Bool) throws -> FetchReply<Value> {
        guard try client.server().isLarder else { return try askRedis() }
        let began = MonotonicClock.milliseconds()
        if let reply = try ask(waits: waits, options.maxAge, since: began) ?? ask(waits: waits, 0, since: began) {
            return reply
        }
        return try any().map { .stale($0) } ?? .absent
    }

    /// Requests the key with FETCH, and waits for another caller's fetch if `waits` is true.
    /// - Returns: nil if the stored value cannot be decoded; the caller must then ask for a newer value.
    private func ask(waits: Bool, _ maxAge: Int64?, since began: Int64) throws -> FetchReply<Value>? {
        var limit = AgeLimit(maxAge)
        var asked = maxAge
        var answer = try client.perform(.fetch(key, maxAge: asked, lease: options.lease))
        while answer.state == .wait, waits {
            limit.answered()
            let left = options.hardLeft(since: began) ?? .max
            guard left > 0 else { return .wait }
            let session = try own ?? client.session.another()
            own = session
            let most = session.timeoutMilliseconds == 0 ? .max : max(1, Int64(session.timeoutMilliseconds) / 2)
            asked = limit.now
            let request = Request.fetch(
                key, maxAge: asked, wait: min(left, most, Self.sliceMilliseconds), lease: options.lease)
            answer = try request.result(of: try session.perform([request.words], operation: "FETCH")[0])
        }
        return try reply(answer, asked)
    }

    /// Looks up several keys, in one round trip and without waiting.
    /// - Returns: the replies, up to and including the first error.
    private static func askAll(_ calls: [BlockingFetch]) throws -> [Result<FetchReply<Value>, any Error>] {
        guard let client = calls.first?.client else { return [] }
        guard try client.server().isLarder else { return calls.map { call in Result { try call.askRedis() } } }
        let requests = calls.map { Request.fetch($0.key, maxAge: $0.options.maxAge, lease: $0.options.lease) }
        return zip(calls, try client.performAll(requests)).map { call, answer in
            Result { try call.reply(try answer.get(), call.options.maxAge) ?? call.ask(waits: false) }
        }
    }

    private func reply(_ answer: FetchAnswer, _ asked: Int64?) throws -> FetchReply<Value>? {
        if answer.state == .lead {
            // Ignore a stored value that cannot be read: this caller has the lease, and fetches a new value.
            return answer.reply(try? client.decodable(Value.self, answer.value, key), asked)
        }
        return answer.reply(try client.decodable(Value.self, answer.value, key), asked)
    }

    private func askRedis() throws -> FetchReply<Value> {
        FetchAnswer.redisReply(try client.decodable(Value.self, try client.bytes(forKey: key), key), options.maxAge)
    }

    /// Returns the daemon's value, fresh or stale, of any age.
    private func any() throws -> Value? {
        let answer = try client.perform(.fetch(key, maxAge: nil, lease: options.lease))
        if answer.state == .lead { _ = try client.perform(.release(key, token: answer.token, .open)) }
        return try client.decoded(Value.self, answer.value, key)
    }

    private func youngEnough() throws -> Value? {
        guard let maxAge = options.maxAge else { return try client.value(Value.self, forKey: key) }
        guard let info = try client.info(forKey: key), info.ageMilliseconds <= maxAge else { return nil }
        return try client.value(Value.self, forKey: key)
    }

    /// Stores the fetched values of several leases, or their absence, in one round trip. If a value cannot be stored,
    /// releases its lease.
    private static func end(_ ends: [(lead: Lead, value: Value?)]) throws {
        guard let client = ends.first?.lead.call.client else { return }
        let server = try client.server()
        var failure: LarderClientError?
        var sent: [(lead: Lead, request: Request<Bool>)] = []
        func fail(_ lead: Lead, _ error: LarderClientError) {
            failure = failure ?? error.about(client.name)
            lead.call.release(lead.token)
        }
        for (lead, value) in ends {
            let (call, token) = (lead.call, lead.token)
            do throws(LarderClientError) {
                let request = try Request.end(token, call.key, value, client.codec, call.options, for: server)
                if let request { sent.append((lead, request)) }
            } catch {
                fail(lead, error)
            }
        }
        for (lead, result) in zip(sent.map(\.lead), try client.performAll(sent.map(\.request))) {
            if case .failure(let error) = result { fail(lead, error) }
        }
        if let failure { throw failure }
    }
}
