import LarderFetching
import LarderPlatform
import LarderRESP

/// One key of a daemon's database, for a caller that fetches its value from an origin.
struct RemoteFetch<Value: Codable & Sendable>: FetchBackend {
    let cache: RemoteCache<Value>
    let key: [UInt8]
    let name: FetchName

    init(_ cache: RemoteCache<Value>, _ key: [UInt8]) {
        self.cache = cache
        self.key = key
        name = FetchName(cache.store, cache.name, key)
    }

    private var store: DatabaseStore { cache.store }

    func now() -> Int64 { MonotonicClock.milliseconds() }

    func ask(maxAge: Int64?, lease: Int64?, waits: FetchWait) async throws -> FetchReply<Value> {
        guard try await store.server().isLarder else { return try await askRedis(maxAge) }
        var limit = AgeLimit(maxAge)
        var isSecond = false
        while true {
            let wakeUp = waits != .never ? store.signals.listen(key) : nil
            defer { if let wakeUp { store.signals.forget(wakeUp, key) } }
            let asked = limit.now
            let answer = try await store.perform(.fetch(key, maxAge: asked, lease: lease), on: store.fetchLink)
            guard answer.state == .wait, let wakeUp else {
                if let reply = try await reply(answer, asked, isReplaceable: !isSecond) { return reply }
                // The value cannot be decoded, so ask for a newer value.
                isSecond = true
                limit = AgeLimit(0)
                continue
            }
            limit.answered()
            await wakeUp.wait(milliseconds: answer.left)
            try Task.checkCancellation()
        }
    }

    /// Looks up several keys, in one round trip unless a value cannot be decoded.
    static func askAll(
        _ backends: [Self], maxAge: Int64?, lease: Int64?
    ) async -> [Result<FetchReply<Value>, any Error>] {
        guard let store = backends.first?.store else { return [] }
        let found: [Result<FetchAnswer, LarderClientError>]
        do {
            guard try await store.server().isLarder else { return await askRedis(backends, maxAge) }
            let requests = backends.map { Request.fetch($0.key, maxAge: maxAge, lease: lease) }
            found = try await store.performAll(requests, on: store.fetchLink)
        } catch {
            return [.failure(error)]
        }
        var answers: [Result<FetchReply<Value>, any Error>] = []
        answers.reserveCapacity(found.count)
        for (backend, answer) in zip(backends, found) {
            do {
                if let reply = try await backend.reply(try answer.get(), maxAge, isReplaceable: true) {
                    answers.append(.success(reply))
                } else {
                    answers.append(.success(try await backend.ask(maxAge: 0, lease: lease, waits: .never)))
                }
            } catch {
                answers.append(.failure(error))
            }
        }
        return answers
    }

    private static func askRedis(_ backends: [Self], _ maxAge: Int64?) async -> [Result<FetchReply<Value>, any Error>] {
        var answers: [Result<FetchReply<Value>, any Error>] = []
        for backend in backends {
            do {
                answers.append(.success(try await backend.askRedis(maxAge)))
            } catch {
                return answers + [.failure(error)]
            }
        }
        return answers
    }

    /// Converts the daemon's answer to FETCH.
    /// - Parameter isReplaceable: whether a value that cannot be decoded counts as missing; otherwise it makes the call
    ///   throw `decode`.
    /// - Returns: the reply for the fetching caller; nil if a value that cannot be decoded counts as missing.
    private func reply(
        _ answer: FetchAnswer, _ maxAge: Int64?, isReplaceable: Bool
    ) async throws -> FetchReply<Value>? {
        let value: Value?
        if answer.state == .lead {
            // Ignore a stored value that cannot be decoded: this caller has the lease, and fetches a new value.
            value = try? await cache.decoded(answer.value, key, "FETCH")
        } else if isReplaceable {
            value = try await cache.decodable(answer.value, key, "FETCH")
        } else {
            value = try await cache.decoded(answer.value, key, "FETCH")
        }
        return answer.reply(value, maxAge)
    }

    private func askRedis(_ maxAge: Int64?) async throws -> FetchReply<Value> {
        FetchAnswer.redisReply(try await cache.decodable(try await store.perform(.get(key)), key), maxAge)
    }

    func store(_ value: Value, token: UInt64, _ options: CheckedFetch) async throws {
        let request = try request(token, value, options, try await store.server())
        if let request { _ = try await store.perform(request) }
    }

    func release(token: UInt64, _ release: FetchRelease) async {
        guard token != 0 else { return }
        // If this request does not reach the daemon, the lease expires.
        _ = try? await store.perform(.release(key, token: token, release))
    }

    /// Ends the leases of several keys in one round trip.
    static func endAll(_ ends: [FetchEnd<Self>], _ options: CheckedFetch) async -> (any Error)? {
        guard let cache = ends.first?.backend.cache else { return nil }
        var failure: (any Error)?
        var sent: [(end: FetchEnd<Self>, request: Request<Bool>)] = []
        do {
            let server = try await cache.store.server()
            for end in ends {
                do throws(LarderClientError) {
                    guard let request = try end.backend.request(end.token, end.value, options, server) else { continue }
                    sent.append((end, request))
                } catch {
                    failure = failure ?? error
                    await end.backend.release(token: end.token, .open)
                }
            }
            if sent.isEmpty { return failure }
            for (end, result) in zip(sent.map(\.end), try await cache.store.performAll(sent.map(\.request))) {
                guard case .failure(let error) = result else { continue }
                failure = failure ?? error
                await end.backend.release(token: end.token, .open)
            }
        } catch {
            // If none of the requests reached the daemon, the leases expire, or end with the connection.
            failure = failure ?? error
        }
        return failure
    }

    /// Returns the request that ends a lease; nil if there is no lease and nothing to store.
    private func request(_ token: UInt64, _ value: Value?, _ options: CheckedFetch, _ server: ServerKind)
        throws(LarderClientError) -> Request<Bool>?
    {
        try LarderClientError.naming(cache.name) { () throws(LarderClientError) in
            try .end(token, key, value, cache.codec, options, for: server)
        }
    }

    func failedInBackground(_ error: any Error) {
        cache.store.report(
            .warning, "refetching '\(printableKey(key))' in the background failed: \(error)", key: key, error: error)
    }
}
