import LarderFetching
import LarderPlatform

// Reads that ask an origin for what the daemon does not have.

extension BlockingLarderClient {
    /// The model of a key; if the daemon has no fresh one, what `fetch` returns, which then is stored.
    ///
    /// Of all callers in all processes of the machine who want the key at the same time, one runs its closure, on its own
    /// thread; the others wait for its value, on connections of their own. If the entry has a grace, they get the stale
    /// value at once meanwhile. Nothing happens in the background: who fetches waits for the origin, and
    /// ``FetchOptions/softTimeout`` has no effect; ``FetchOptions/hardTimeout`` limits the waiting for others.
    ///
    /// A value that is no such model, such as one that an older version of the program stored, counts as missing.
    ///
    /// With Redis instead of larderd every caller fetches for himself.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: asks the origin. Must not fetch the same key: that throws ``FetchError/Code/recursion``.
    /// - Throws: what `fetch` throws, if there is nothing to serve instead; ``FetchError``; ``LarderClientError``.
    public func value<Value: Codable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: () throws -> Value
    ) throws -> Value {
        let call = try BlockingFetch<Value>(self, key.keyBytes, options)
        if let value = try call.value({ withoutNil(try fetch()) }) ?? nothing(of: type) { return value }
        throw options.source == .cacheOnly ? FetchError.notCached(call.name) : FetchError.absent(call.name)
    }

    /// Like the call above, for an origin that may not have the value: then `fetch` returns nil, and so does the call,
    /// here and for ``FetchOptions/absent`` for everybody else.
    @_disfavoredOverload
    public func value<Value: Codable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: () throws -> Value?
    ) throws -> Value? {
        try BlockingFetch<Value>(self, key.keyBytes, options).value(fetch)
    }

    /// The models of several keys: those that the daemon has, and for all others what one call of `fetch` returns, which
    /// then is stored. Keys for which it returns nothing are left out, and that is remembered for
    /// ``FetchOptions/absent``. Keys that somebody else is fetching are waited for.
    /// - Parameters:
    ///   - type: the models' type.
    ///   - keys: the entries' keys.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: gets the keys whose values are missing, each once, and asks the origin for them.
    /// - Throws: as `value(_:forKey:options:fetch:)`.
    public func values<Key: CacheKey & Hashable, Value: Codable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, options: FetchOptions = FetchOptions(),
        fetch: ([Key]) throws -> [Key: Value]
    ) throws -> [Key: Value] {
        var seen: Set<Key> = []
        let keys = keys.filter { seen.insert($0).inserted }
        guard options.source != .ignoreCache else { return try fetch(keys) }
        if keys.isEmpty || options.source == .cacheOnly && options.takesAnyFresh {
            return try values(type, forKeys: keys)
        }
        var found: [Key: Value] = [:]
        if options.takesAnyFresh {
            for (key, bytes) in zip(keys, try perform(.getAll(keys.map(\.keyBytes)))) {
                found[key] = try decodable(type, bytes, key.keyBytes)
            }
        }
        var leads: [(key: Key, call: BlockingFetch<Value>, lead: BlockingFetch<Value>.Lead)] = []
        var waits: [(key: Key, call: BlockingFetch<Value>)] = []
        defer { for lead in leads { lead.call.release(lead.lead, .open) } }
        let calls = try keys.filter { found[$0] == nil }.map {
            (key: $0, call: try BlockingFetch<Value>(self, $0.keyBytes, options))
        }
        var failure: (any Error)?
        for ((key, call), answer) in zip(calls, try BlockingFetch.askAll(calls.map(\.call))) {
            switch answer {
            case .failure(let error): failure = failure ?? error
            case .success(.answer(let value)): found[key] = value
            case .success(.lead(let lead)): leads.append((key, call, lead))
            case .success(.wait): waits.append((key, call))
            }
        }
        if let failure { throw failure }
        if !leads.isEmpty {
            let asked = leads
            leads = []
            let fetched = try BlockingFetch<Value>.load(asked, fetch)
            try BlockingFetch.endAll(asked.map { (call: $0.call, lead: $0.lead, value: fetched[$0.key]) })
            for (key, _, _) in asked { found[key] = fetched[key] }
        }
        // Only now: others may be waiting for what this call fetched.
        for (key, call) in waits { found[key] = try call.value { try fetch([key])[key] } }
        return found
    }
}
