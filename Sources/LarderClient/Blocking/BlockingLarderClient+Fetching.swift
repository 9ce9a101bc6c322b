import LarderFetching
import LarderPlatform

// Read-through calls, which read missing values from an origin.

extension BlockingLarderClient {
    /// Returns the model of a key. On a miss it runs `fetch`, and stores the result.
    ///
    /// Concurrent callers in all processes of the machine share one fetch of a key. One caller runs its closure, on its
    /// own thread. The others wait for the value, each on a connection of its own; if the entry is stale but within its
    /// grace, they get the stale value at once. The fetching caller always waits for the origin, because nothing runs
    /// in the background. So ``FetchOptions/softTimeout`` has no effect; ``FetchOptions/hardTimeout`` limits only how
    /// long the others wait.
    ///
    /// A value of another type, such as one from an older version of the program, counts as missing.
    ///
    /// With Redis instead of larderd, every caller runs its own fetch.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: reads the value from the origin. Must not fetch the same key: that throws
    ///     ``FetchError/Code/recursion``.
    /// - Throws: the error of `fetch` if there is no value to return instead; ``FetchError``; ``LarderClientError``.
    public func value<Value: Codable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: () throws -> Value
    ) throws -> Value {
        let call = try BlockingFetch<Value>(self, key.keyBytes, options)
        if let value = try call.value({ withoutNil(try fetch()) }) ?? nothing(of: type) { return value }
        throw options.source == .cacheOnly ? FetchError.notCached(call.name) : FetchError.absent(call.name)
    }

    /// Like the call above, for an origin that may have no value. `fetch` then returns nil, and so does the call. The
    /// absence is remembered for all callers for the duration ``FetchOptions/absent``.
    @_disfavoredOverload
    public func value<Value: Codable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: () throws -> Value?
    ) throws -> Value? {
        try BlockingFetch<Value>(self, key.keyBytes, options).value(fetch)
    }

    /// Returns the models of several keys. One call of `fetch` reads all keys that the daemon does not have, and its
    /// results are stored. If `fetch` returns no model for a key, the dictionary lacks that key, and the absence is
    /// remembered for the duration ``FetchOptions/absent``. Waits for other callers' running fetches of its keys.
    /// - Parameters:
    ///   - type: the models' type.
    ///   - keys: the entries' keys.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: receives the missing keys, each once, and reads them from the origin.
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
        var leads: [(key: Key, lead: BlockingFetch<Value>.Lead)] = []
        var waits: [(key: Key, call: BlockingFetch<Value>)] = []
        defer { for (_, lead) in leads { lead.release() } }
        let calls = try keys.filter { found[$0] == nil }.map {
            (key: $0, call: try BlockingFetch<Value>(self, $0.keyBytes, options))
        }
        var failure: (any Error)?
        for ((key, call), answer) in zip(calls, try BlockingFetch.askAll(calls.map(\.call))) {
            switch answer {
            case .failure(let error): failure = failure ?? error
            case .success(.answer(let value)): found[key] = value
            case .success(.lead(let lead)): leads.append((key, lead))
            case .success(.wait): waits.append((key, call))
            }
        }
        if let failure { throw failure }
        if !leads.isEmpty {
            let asked = leads
            leads = []
            let fetched = try BlockingFetch.load(asked.map(\.lead)) { try fetch(asked.map(\.key)) }
            try BlockingFetch.end(asked.map { (lead: $0.lead, value: fetched[$0.key]) })
            for (key, _) in asked { found[key] = fetched[key] }
        }
        // Wait for the other callers' fetches last: these callers may be waiting for values that this call fetches
        // above.
        for (key, call) in waits { found[key] = try call.value { try fetch([key])[key] } }
        return found
    }
}
