import LarderFetching

// Read-through calls, which read missing values from an origin.

extension RemoteCache {
    // MARK: One key

    /// Returns the model of a key. On a miss it runs `fetch`, and stores the result.
    ///
    /// ```swift
    /// let weather = try await reports.value(forKey: "oslo") { try await api.weather(in: "oslo") }
    /// ```
    /// Concurrent callers in all processes of the machine share one fetch of a key. One caller runs its closure, and
    /// the other callers wait for the value without blocking the connection. If the entry is stale but within its
    /// grace, all callers get the stale value without waiting. If the fetching process exits, another process takes
    /// over immediately. The closure runs in a task of its own. A cancelled caller throws without affecting the other
    /// callers in the process; when no caller is left, the task is cancelled. If the key is written, removed or purged
    /// during the fetch, the callers get the fetched value, but it is not stored.
    ///
    /// A near cache hit costs no round trip, and does not refresh the value ahead of its deadline. Fetching uses one
    /// additional connection for each database. A value of another type, such as one from an older version of the
    /// program, counts as missing, and is reported to ``ClientOptions/onEvent``. With Redis instead of larderd,
    /// one caller of each process fetches. The age of values is then unknown, and neither failures nor missing values
    /// are remembered.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: reads the value from the origin. Must not fetch the same key: that throws
    ///     ``FetchError/Code/recursion``.
    /// - Throws: ``LarderClientError``, including `cancelled`; ``FetchError``; the error of `fetch` if there is no
    ///   value to return instead. All callers in the process that wait for this fetch get the error of `fetch`.
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

    /// Like the call above, for an origin that may have no value. `fetch` then returns nil, and so does the call. The
    /// absence is remembered for all callers for the duration ``FetchOptions/absent``.
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
                withoutNil(
                    try await FlightTable.shared.unstored(backend.name, checked) { try await self.observing(load) })
            }
        case .cacheOnly: return try await youngEnough(key, checked.maxAge)
        case .cacheElseOrigin where checked.maxAge == nil && near != nil:
            // Read the key without FETCH, so that the near cache keeps the value.
            if let value = try await missingIfUndecodable({ () async throws(LarderClientError) in
                try await value(forKey: key)
            }) {
                return value
            }
        case .cacheElseOrigin, .originElseCache, .originOnly: break
        }
        return try await cancellable {
            try await FlightTable.shared.value(backend, checked) { try await self.observing(load) }
        }
    }

    /// Returns the result of `read`; nil if a value cannot be decoded. The fetch that follows reports the error.
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

    /// Runs a fetch closure, and reports its beginning and end if the program observes calls.
    private func observing<Result>(_ fetch: () async throws -> Result) async throws -> Result {
        store.calls.begin()
        defer { store.calls.end() }
        return try await store.hooks.around("larder.fetch", "fetch", name, fetch)
    }

    private func cancellable<Result>(_ body: () async throws -> Result) async throws -> Result {
        store.calls.begin()
        defer { store.calls.end() }
        do {
            return try await body()
        } catch is CancellationError where Task.isCancelled {
            throw LarderClientError(
                .cancelled, "the task was cancelled while a value was fetched", operation: "fetch", database: name)
        }
    }

    /// Returns the fresh model of a key if it is not older than `maxAge`.
    private func youngEnough(_ key: some CacheKey, _ maxAge: Int64?) async throws(LarderClientError) -> Value? {
        guard let maxAge else { return try await value(forKey: key) }
        let bytes = key.keyBytes
        guard try await store.server().isLarder else { return nil }
        let (info, stored) = try await store.perform(.info(bytes), .get(bytes))
        guard let info, info.ageMilliseconds <= maxAge else { return nil }
        return try await decoded(stored, bytes)
    }

    /// Returns a sequence of up to two values of a key: first the daemon's value, fresh or stale, and then the fetched
    /// value. The fetched value is also stored.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``; its source is ignored.
    ///   - fetch: reads the value from the origin.
    public func cachedThenFetched(
        forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value?
    ) -> FetchSequence<Value> {
        sequence(key.keyBytes, options, fetch) { _, _ in false }
    }

    /// Like the call above. With `leavingOutEqual`, the second value is omitted if it equals the first one.
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

    /// Returns the models of several keys. One call of `fetch` reads all keys that the daemon does not have, and its
    /// results are stored. If `fetch` returns no model for a key, the dictionary lacks that key, and the absence is
    /// remembered for the duration ``FetchOptions/absent``.
    ///
    /// If every key has at least a stale value, the call returns these values. The closure then runs in the background,
    /// as for a single key: see ``FetchOptions/softTimeout``. If a value is missing, the call waits for the closure,
    /// and for other callers' running fetches of the same keys. Cancelling the caller also cancels the closure, unlike
    /// in the call for a single key. Other callers that wait for the closure's keys then fetch these keys themselves.
    /// One client can fetch 10,000 keys at a time (`larderd --max-leases`); the daemon returns an error for more.
    ///
    /// Takes one round trip to read the keys, one to request leases for the missing keys, and one to store the results.
    /// - Parameters:
    ///   - keys: the entries' keys.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: receives the missing keys, each once, and reads them from the origin.
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
                try await FlightTable.shared.unstored(name, checked) {
                    try await self.observing { try await fetch(keys) }
                } ?? [:]
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
        let fetched = try await cancellable {
            try await FlightTable.shared.values(backends, checked) { keys in
                try await self.observing { try await fetch(keys) }
            }
        }
        return found.merging(fetched) { $1 }
    }
}
