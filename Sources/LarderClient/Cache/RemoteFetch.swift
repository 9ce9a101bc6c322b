import Fetching
import Platform
import RESP

/// One key of a daemon's database, for who fetches its value.
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

    func ask(maxAge: Int64?, lease: Int64?, waits: Bool) async throws -> FetchReply<Value> {
        guard try await store.server().isLarder else { return try await askRedis(maxAge) }
        while true {
            let wakeUp = waits ? store.signals.listen(key) : nil
            defer { if let wakeUp { store.signals.forget(wakeUp, key) } }
            let answer = try await store.fetch(.fetch(key, maxAge: maxAge, lease: lease))
            guard answer.state == .wait, let wakeUp else { return try await reply(answer, maxAge) }
            await wakeUp.wait(milliseconds: answer.left)
            try Task.checkCancellation()
        }
    }

    private func reply(_ answer: FetchAnswer, _ maxAge: Int64?) async throws -> FetchReply<Value> {
        switch answer.state {
        case .fresh, .stale:
            guard let value = try await cache.decoded(answer.value, key, "FETCH") else {
                throw LarderClientError.unexpectedReply(to: "FETCH", "a value", key: printableKey(key))
            }
            return answer.state == .fresh ? .fresh(value) : .stale(value)
        case .lead:
            // What cannot be decoded is about to be replaced.
            let value = try? await cache.decoded(answer.value, key, "FETCH")
            let isYoung = maxAge.map { answer.age <= $0 } ?? true
            return .lead(
                token: answer.token, value.map { FoundValue($0, isFresh: answer.isFresh, isYoung: isYoung) })
        case .wait: return .wait
        case .absent: return .absent
        case .failed: return .failed(milliseconds: answer.left)
        }
    }

    /// Redis does not know who fetches: each process asks for itself, and no age is known.
    private func askRedis(_ maxAge: Int64?) async throws -> FetchReply<Value> {
        let value = try await cache.value(forKey: key)
        guard let value else { return .lead(token: 0, nil) }
        if maxAge == nil { return .fresh(value) }
        return .lead(token: 0, FoundValue(value, isFresh: true, isYoung: false))
    }

    func store(_ value: Value, token: UInt64, _ options: CheckedFetch) async throws {
        let condition = token == 0 ? [] : wordList("TOKEN", "\(token)")
        _ = try await cache.put(try cache.encoded(value, key), key, options.policy, options.tags, if: condition)
    }

    func release(token: UInt64, _ release: FetchRelease) async {
        guard token != 0 else { return }
        // If the daemon does not hear of it, the right ends with its time.
        _ = try? await cache.changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.release(key, token: token, release))
        }
    }

    func failedInBackground(_ error: any Error) {
        cache.core.options.onFailedRefresh?(cache.name, printableKey(key), error)
    }
}
