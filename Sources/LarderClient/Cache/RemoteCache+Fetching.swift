import LarderFetching

// Reads that ask an origin for what the daemon does not have.

extension RemoteCache {
    // MARK: One key

    /// The model of a key; if the daemon has no fresh one, what `fetch` returns, which then is stored.
    ///
    /// ```swift
    /// let weather = try await reports.value(forKey: "oslo") { try await api.weather(in: "oslo") }
    /// ```
    /// Of all callers in all processes of the machine who want the key at the same time, one runs its closure; the others
    /// wait for its value, without blocking the connection. If the entry has a grace, they get the stale value at once
    /// meanwhile. If the process that fetches ends, another one takes over at once. The closure runs in a task of its own:
    /// a caller who is cancelled throws, and leaves it to the other callers in the process; when all have gone, the task
    /// is cancelled. If somebody else writes, removes or purges the key meanwhile, the callers get what was fetched, and
    /// nothing is stored.
    ///
    /// A value that the near cache has costs no round trip, and is not fetched ahead of its end. Fetching uses a connection
    /// of its own for each database. A value that is no such model, such as one that an older version of the program stored,
    /// counts as missing, and ``ClientOptions/onUndecodable`` reports it. With Redis instead of larderd, one caller of each process fetches, no age is known,
    /// and neither failures nor missing values are remembered.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: asks the origin. Must not fetch the same key: that throws ``FetchError/Code/recursion``.
    /// - Throws: what `fetch` throws, to all in the process who wait, if there is nothing to serve instead; ``FetchError``;
    ///   ``LarderClientError``, `cancelled` too.
    public func value(
        forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if let value = try await fetched(key, options, { try await fetch() }) ?? nothing(of: Value.self) {
            return value
        }
        let name = FetchName(store, name, key.keyBytes)
        throw options.source == .cacheOnly ? FetchError.notCached(name) : FetchError.absent(name)
    }

    /// Like the call above, for an origin that may not have the value: then `fetch` returns nil, and so does the call,
    /// here and for ``FetchOptions/absent`` for everybody else.
    @_disfavoredOverload
    public func value(
        forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value?
    ) async throws -> Value? {
        try await fetched(key, options, fetch)
    }

    private func fetched(
        _ key: some CacheKey, _ options: FetchOptions, _ load: @escaping @Sendable () async throws -> Value?
    ) async throws -> Value? {
        let backend = RemoteFetch(self, key.keyBytes)
        let checked = try CheckedFetch(options, backend.name)
        switch checked.source {
        case .ignoreCache:
            return try await cancellable {
                withoutNil(try await FlightTable.shared.unstored(backend.name, checked, load))
            }
        case .cacheOnly: return try await youngEnough(key, checked.maxAge)
        case .cacheElseOrigin where checked.maxAge == nil && near != nil:
            // So the near cache keeps it.
            if let value = try await missingIfUndecodable({ () async throws(LarderClientError) in
                try await value(forKey: key)
            }) {
                return value
            }
        case .cacheElseOrigin, .originElseCache, .originOnly: break
        }
        return try await cancellable { try await FlightTable.shared.value(backend, checked, load) }
    }

    /// What `read` returns; nil if it met a value that cannot be decoded. Who asks then reports it.
    private func missingIfUndecodable<Result>(
        _ read: () async throws(LarderClientError) -> Result?
    ) async throws(LarderClientError) -> Result? {
        do throws(LarderClientError) {
            return try await read()
        } catch {
            guard error.code == .decode else { throw error }
            return nil
        }
    }

    private func cancellable<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch is CancellationError where Task.isCancelled {
            throw LarderClientError(
                .cancelled, "the task was cancelled while a value was fetched", operation: "fetch", database: name)
        }
    }

    /// The fresh model of a key if it is not older than `maxAge`.
    private func youngEnough(_ key: some CacheKey, _ maxAge: Int64?) async throws(LarderClientError) -> Value? {
        guard let maxAge else { return try await value(forKey: key) }
        let bytes = key.keyBytes
        guard try await store.server().isLarder else { return nil }
        let (info, stored) = try await store.perform(.info(bytes), .get(bytes))
        guard let info, info.ageMilliseconds <= maxAge else { return nil }
        return try await decoded(stored, bytes)
    }

    /// What the daemon has of a key, fresh or stale, and then what the origin has, which is stored: up to two values.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``; its source does not matter.
    ///   - fetch: asks the origin.
    public func cachedThenFetched(
        forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value?
    ) -> FetchSequence<Value> {
        sequence(key.keyBytes, options, fetch) { _, _ in false }
    }

    /// Like the call above; the second value is left out if it equals the first one.
    public func cachedThenFetched(
        forKey key: some CacheKey, leavingOutEqual: Bool, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value?
    ) -> FetchSequence<Value> where Value: Equatable {
        sequence(key.keyBytes, options, fetch) { leavingOutEqual && $0 == $1 }
    }

    private func sequence(
        _ key: [UInt8], _ options: FetchOptions, _ fetch: @escaping @Sendable () async throws -> Value?,
        _ isRepetition: @escaping @Sendable (Value, Value) -> Bool
    ) -> FetchSequence<Value> {
        var origin = options
        origin.source = .originOnly
        return FetchSequence(
            cached: {
                let backend = RemoteFetch(self, key)
                let checked = try CheckedFetch(options, backend.name)
                return try await FlightTable.shared.peek(backend, checked, maxAge: checked.maxAge)
            },
            fetched: { [origin] in try await self.fetched(key, origin, fetch) }, isRepetition: isRepetition)
    }

    // MARK: Several keys

    /// The models of several keys: those that the daemon has, and for all others what one call of `fetch` returns, which
    /// then is stored. Keys for which it returns nothing are left out, and that is remembered for
    /// ``FetchOptions/absent``.
    ///
    /// Where there is something to serve for every key, stale values too, that is served as with one key, and the closure
    /// runs in the background: see ``FetchOptions/softTimeout``. If one is missing, the call waits for the closure, and keys
    /// that somebody else is fetching are waited for. Unlike with one key, the closure ends with the caller's cancellation;
    /// who waits for its keys then fetches them by himself.
    /// The daemon lets one client fetch 10,000 keys at a time (`larderd --max-leases`); for more it throws an error.
    ///
    /// Takes a round trip for the keys that are there, one to ask about those that are missing, and one to store them.
    /// - Parameters:
    ///   - keys: the entries' keys.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: gets the keys whose values are missing, each once, and asks the origin for them.
    /// - Throws: as ``value(forKey:options:fetch:)-(_,_,()->Value)``.
    public func values<Key: CacheKey & Hashable & Sendable>(
        forKeys keys: some Sequence<Key>, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        var seen: Set<Key> = []
        let keys = keys.filter { seen.insert($0).inserted }
        if options.source == .ignoreCache {
            let name = FetchName(store, name, keys.first?.keyBytes ?? [])
            let checked = try CheckedFetch(options, name)
            return try await cancellable {
                try await FlightTable.shared.unstored(name, checked) { try await fetch(keys) } ?? [:]
            }
        }
        var found: [Key: Value] = [:]
        if options.takesAnyFresh {
            if options.source == .cacheOnly { return try await values(forKeys: keys) }
            found =
                try await missingIfUndecodable { () async throws(LarderClientError) in
                    try await values(forKeys: keys)
                } ?? [:]
        }
        let missing = keys.filter { found[$0] == nil }
        let backends = missing.map { (key: $0, backend: RemoteFetch(self, $0.keyBytes)) }
        guard let first = backends.first else { return found }
        let checked = try CheckedFetch(options, first.backend.name)
        if options.source == .cacheOnly {
            for key in missing { found[key] = try await youngEnough(key, checked.maxAge) }
            return found
        }
        let fetched = try await cancellable { try await FlightTable.shared.values(backends, checked, fetch) }
        return found.merging(fetched) { $1 }
    }
}
