import LarderFetching
import LarderPlatform

/// One key that a blocking client fetches. Not thread-safe: belongs to one call.
final class BlockingFetch<Value: Codable> {
    /// A lease: the right to fetch the key.
    struct Lead {
        let call: BlockingFetch
        let token: UInt64
        /// The value that the daemon returned with the lease.
        let value: Value?
        let isFresh: Bool
        let isYoung: Bool

        /// Releases the lease. If the request does not reach the daemon, the lease expires.
        func release(_ release: FetchRelease = .open) {
            guard token != 0 else { return }
            _ = try? call.client.perform(.release(call.key, token: token, release))
        }

        /// Releases the lease after `fetch` has thrown an error.
        func fail(_ error: any Error) {
            let release = call.options.backOff > 0 ? FetchRelease.failed(milliseconds: call.options.backOff) : .open
            FlightTable.shared.note(error, call.name, release, now: MonotonicClock.milliseconds())
            self.release(release)
        }
    }

    enum Answer {
        case answer(Value?)
        case lead(Lead)
        case wait
    }

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
            case .answer(let value): return value
            case .wait: throw FetchError.timeout(name, options.hard ?? 0)
            case .lead(let lead):
                if lead.isFresh, lead.isYoung, !options.refreshesAhead {
                    lead.release()
                    return lead.value
                }
                return try load(lead, fetch)
            }
        } catch {
            // With `originElseCache` a value of any age is acceptable after the origin has failed.
            guard options.source == .originElseCache, let value = try? any() else { throw error }
            return value
        }
    }

    private func load(_ lead: Lead, _ fetch: () throws -> Value?) throws -> Value? {
        let value: Value?
        do {
            value = try Self.load([lead], fetch)
        } catch {
            guard options.servesStale, lead.isYoung, let value = lead.value else { throw error }
            return value
        }
        if let value { try Self.end([(lead, value)]) } else { lead.release(absence) }
        return value
    }

    /// Fetches the keys of some leases with one call of `fetch`. If it throws, releases the leases.
    static func load<Result>(_ leads: [Lead], _ fetch: () throws -> Result) throws -> Result {
        do {
            return try FetchContext.$names.withValue(FetchContext.names + leads.map(\.call.name)) { try fetch() }
        } catch {
            for lead in leads { lead.fail(error) }
            throw error
        }
    }

    // MARK: The daemon

    /// Reads the key from the daemon, or requests a lease for it.
    /// - Parameter waits: whether to wait for another caller's fetch, up to the hard timeout.
    private func ask(waits: Bool) throws -> Answer {
        guard try client.server().isLarder else { return try askRedis() }
        let began = MonotonicClock.milliseconds()
        return try ask(waits: waits, options.maxAge, since: began) ?? ask(waits: waits, 0, since: began)
            ?? .answer(try any())
    }

    /// Requests the key with FETCH, and waits for another caller's fetch if `waits` is true.
    /// - Returns: nil if the stored value cannot be decoded; the caller must then ask for a newer value.
    private func ask(waits: Bool, _ maxAge: Int64?, since began: Int64) throws -> Answer? {
        var limit = AgeLimit(maxAge)
        var asked = maxAge
        var answer = try client.perform(.fetch(key, maxAge: asked, lease: options.lease))
        while answer.state == .wait, waits {
            limit.answered()
            let left = options.hard.map { $0 - (MonotonicClock.milliseconds() - began) } ?? .max
            guard left > 0 else { return .wait }
            let session = try own ?? client.session.another()
            own = session
            let most = session.timeoutMilliseconds == 0 ? .max : max(1, Int64(session.timeoutMilliseconds) / 2)
            let wait = min(left, most, Self.sliceMilliseconds)
            asked = limit.now
            let request = Request.fetch(key, maxAge: asked, wait: wait, lease: options.lease)
            answer = try request.result(of: try session.perform([request.words], operation: "FETCH")[0])
        }
        return try self.answer(answer, asked)
    }

    /// Looks up several keys, in one round trip and without waiting.
    /// - Returns: the answers, up to and including the first error.
    static func askAll(_ calls: [BlockingFetch]) throws -> [Result<Answer, any Error>] {
        guard let client = calls.first?.client else { return [] }
        guard try client.server().isLarder else { return calls.map { call in Result { try call.askRedis() } } }
        let requests = calls.map { Request.fetch($0.key, maxAge: $0.options.maxAge, lease: $0.options.lease) }
        return zip(calls, try client.performAll(requests)).map { call, answer in
            Result { try call.answer(try answer.get(), call.options.maxAge) ?? call.ask(waits: false) }
        }
    }

    /// Converts the daemon's answer to FETCH.
    /// - Parameter asked: the maximum age in the request.
    /// - Returns: nil for a value that cannot be decoded.
    private func answer(_ answer: FetchAnswer, _ asked: Int64?) throws -> Answer? {
        switch answer.state {
        case .fresh, .stale:
            guard let bytes = answer.value else { return .answer(nil) }
            return try client.decodable(Value.self, bytes, key).map { .answer($0) }
        case .lead:
            let value = try? client.decoded(Value.self, answer.value, key)
            return .lead(
                Lead(
                    call: self, token: answer.token, value: value, isFresh: answer.isFresh,
                    isYoung: answer.isYoung(asked)))
        case .wait: return .wait
        case .absent: return .answer(nil)
        case .failed: throw FlightTable.shared.restError(name, answer.left, now: MonotonicClock.milliseconds())
        }
    }

    /// Reads the key from Redis, which has no leases and does not report the age of values.
    private func askRedis() throws -> Answer {
        let value = try client.decodable(Value.self, try client.bytes(forKey: key), key)
        if let value, options.maxAge == nil { return .answer(value) }
        return .lead(Lead(call: self, token: 0, value: value, isFresh: value != nil, isYoung: false))
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

    // MARK: Results

    /// How to release the lease if the origin has no value.
    private var absence: FetchRelease { .absent(milliseconds: max(1, options.absent)) }

    /// Stores the fetched values of several leases, or their absence, in one round trip.
    static func end(_ ends: [(lead: Lead, value: Value?)]) throws {
        guard let client = ends.first?.lead.call.client else { return }
        var failure: (any Error)?
        var sent: [(lead: Lead, request: Request<Bool>)] = []
        let server = try client.server()
        for (lead, value) in ends {
            do throws(LarderClientError) {
                guard let request = try lead.call.request(lead, value, server) else { continue }
                sent.append((lead, request))
            } catch {
                failure = failure ?? error.about(client.name)
                lead.release()
            }
        }
        for (lead, result) in zip(sent.map(\.lead), try client.performAll(sent.map(\.request))) {
            guard case .failure(let error) = result else { continue }
            failure = failure ?? error
            lead.release()
        }
        if let failure { throw failure }
    }

    /// Returns the request that ends a lease; nil if there is no lease and nothing to store.
    private func request(_ lead: Lead, _ value: Value?, _ server: ServerKind) throws(LarderClientError)
        -> Request<Bool>?
    {
        guard let value else { return lead.token == 0 ? nil : .release(key, token: lead.token, absence) }
        let entry = try client.newEntry(value, key, options.policy, options.tags)
        return try entry.request(for: server, if: NewEntry.lease(lead.token))
    }
}
