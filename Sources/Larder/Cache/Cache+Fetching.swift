import LarderEngine
import LarderFetching

// Read-through calls, which read missing values from an origin.

extension Cache {
    // MARK: One key

    /// Returns the model of a key. On a miss it runs `fetch`, and stores the result.
    ///
    /// ```swift
    /// let weather = try await cache.value(Weather.self, forKey: "oslo") { try await api.weather(in: "oslo") }
    /// ```
    /// Concurrent callers in the process share one fetch of a key: one caller runs its closure, and the other callers
    /// wait. If the entry has expired but is within its grace, callers get the stale value instead of waiting: see
    /// ``FetchOptions/softTimeout``. The closure runs in a task of its own. A cancelled caller throws
    /// `CancellationError` without affecting other callers; the task is cancelled when no caller is left. If the key is
    /// written, removed or purged during the fetch, the callers get the fetched value, but it is not stored.
    ///
    /// A cache hit costs as much as `value(_:forKey:)`, and runs on the caller's thread. An entry of another type, such
    /// as one from an older version of the program, counts as missing, and ``CacheOptions/onEvent`` reports it.
    /// - Parameters:
    ///   - type: the model's type. May be omitted if the context determines it.
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: reads the value from the origin. Must not fetch the same key: that throws
    ///     ``FetchError/Code/recursion``.
    /// - Throws: the error of `fetch`, to all waiting callers, unless a stale value can be returned instead;
    ///   ``FetchError``; ``LarderError`` for the same reasons as `CacheReading.value(_:forKey:fillCache:)` and
    ///   `set(_:forKey:policy:tags:durability:)`; `CancellationError`.
    @inlinable public func value<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if options.takesAnyFresh {
            var endsSoon = false
            if let (model, sequence) = keptModel(type, key, endsSoon: &endsSoon) {
                if sequence != 0 { try await source.taskWaitsForCommit(sequence) }
                if endsSoon { refreshAhead(type, key, options) { try await fetch() } }
                return model
            }
        }
        return try await fetchedOrThrow(type, key, options) { try await fetch() }
    }

    /// Like the call above, for an origin that may have no value. `fetch` then returns nil, and so does the call. The
    /// absence is remembered for all callers for the duration ``FetchOptions/absent``.
    @_disfavoredOverload
    @inlinable public func value<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value?
    ) async throws -> Value? {
        if options.takesAnyFresh {
            var endsSoon = false
            if let (model, sequence) = keptModel(type, key, endsSoon: &endsSoon) {
                if sequence != 0 { try await source.taskWaitsForCommit(sequence) }
                if endsSoon { refreshAhead(type, key, options, fetch) }
                return model
            }
        }
        return try await fetched(type, key, options, fetch)
    }

    /// Returns a fresh entry's decoded model from memory, with a commit's sequence number; nil if no such model is in
    /// memory. The caller must wait for the commit before it uses the model; 0 means that there is nothing to wait for.
    /// - Parameter endsSoon: set to true if the entry expires soon and should be refreshed now.
    @inlinable func keptModel<Value: Sendable>(
        _ type: Value.Type, _ key: some CacheKey, endsSoon: inout Bool
    ) -> (model: Value, sequence: UInt64)? {
        var model: Value?
        let sequence = key.withKeyBytes { bytes in
            source.readDecoded(ObjectIdentifier(type), bytes, endsSoon: &endsSoon) {
                model = $0.assumingMemoryBound(to: Value.self).pointee
            }
        }
        guard let sequence, let model else { return nil }
        return (model, sequence)
    }

    /// Returns a sequence of up to two values of a key: first the cached value, fresh or stale, and then the fetched
    /// value. The fetched value is also stored.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``; ``FetchOptions/source`` is ignored.
    ///   - fetch: reads the value from the origin.
    public func cachedThenFetched<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value?
    ) -> FetchSequence<Value> {
        sequence(type, key, options, fetch) { _, _ in false }
    }

    /// Like the call above. If `leavingOutEqual` is true, the sequence omits the second value if it equals the first
    /// one.
    public func cachedThenFetched<Value: Codable & Sendable & Equatable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, leavingOutEqual: Bool,
        options: FetchOptions = FetchOptions(), fetch: @escaping @Sendable () async throws -> Value?
    ) -> FetchSequence<Value> {
        sequence(type, key, options, fetch) { leavingOutEqual && $0 == $1 }
    }

    private func sequence<Value: Codable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, _ options: FetchOptions,
        _ fetch: @escaping @Sendable () async throws -> Value?,
        _ isRepetition: @escaping @Sendable (Value, Value) -> Bool
    ) -> FetchSequence<Value> {
        var origin = options
        origin.source = .originOnly
        let key = key.keyBytes
        return FetchSequence(
            cached: {
                let backend = CacheFetch<Value>(self, try self.source.key(key, "fetch"), isCounted: false)
                let checked = try CheckedFetch(options, backend.name)
                return try await FlightTable.shared.peek(backend, checked, maxAge: checked.maxAge)
            },
            fetched: { [origin] in try await self.fetched(type, key, origin, fetch) }, isRepetition: isRepetition)
    }

    // MARK: Several keys

    /// Returns the models of several keys. One call of `fetch` receives all keys that are not cached, and its results
    /// are stored. Keys without a result are missing from the dictionary, and their absence is remembered for the
    /// duration ``FetchOptions/absent``.
    ///
    /// If every key has a value but some values are stale, the call returns all values, and the closure runs in the
    /// background: see ``FetchOptions/softTimeout``. If a value is missing, the call waits for the closure, and for
    /// other callers' fetches of the same keys. Cancelling the caller also cancels the closure, unlike in the call for
    /// a single key. Other callers that wait for keys of the cancelled closure then fetch these keys themselves.
    /// - Parameters:
    ///   - type: the models' type.
    ///   - keys: the entries' keys.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: receives the missing keys, each once, and reads them from the origin.
    /// - Throws: the same errors as `value(_:forKey:options:fetch:)`.
    public func values<Key: CacheKey & Hashable & Sendable, Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        var seen: Set<Key> = []
        let keys = keys.filter { seen.insert($0).inserted }
        if options.source == .ignoreCache {
            let name = FetchName(source.database, name, keys.first?.keyBytes ?? [])
            let checked = try CheckedFetch(options, name)
            return try await FlightTable.shared.unstored(name, checked) {
                try await self.observing { try await fetch(keys) }
            } ?? [:]
        }
        var found: [Key: Value] = [:]
        if options.takesAnyFresh {
            found =
                try await source.decodable(options) { () async throws(LarderError) in
                    try await values(type, forKeys: keys)
                } ?? [:]
            if options.source == .cacheOnly { return found }
        }
        var backends: [(key: Key, backend: CacheFetch<Value>)] = []
        for key in keys where found[key] == nil {
            let stored = try source.key(key, "fetch")
            backends.append((key, CacheFetch(self, stored, isCounted: options.takesAnyFresh)))
        }
        guard let first = backends.first else { return found }
        let checked = try CheckedFetch(options, first.backend.name)
        if options.source == .cacheOnly {
            for (key, backend) in backends { found[key] = try await youngEnough(backend.key, checked.maxAge) }
            return found
        }
        return found.merging(
            try await FlightTable.shared.values(backends, checked) { keys in
                try await self.observing { try await fetch(keys) }
            }
        ) { $1 }
    }

    // MARK: Slow path

    /// Runs a fetch closure, and reports its beginning and end if the program observes calls.
    private func observing<Result>(_ fetch: () async throws -> Result) async throws -> Result {
        try await source.hooks.around("larder.fetch", "fetch", name, fetch)
    }

    @usableFromInline func fetchedOrThrow<Value: Codable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, _ options: FetchOptions,
        _ load: @escaping @Sendable () async throws -> Value?
    ) async throws -> Value {
        if let value = try await fetched(type, key, options, load) ?? nothing(of: type) { return value }
        let name = FetchName(source.database, name, key.keyBytes)
        throw options.source == .cacheOnly ? FetchError.notCached(name) : FetchError.absent(name)
    }

    @usableFromInline func fetched<Value: Codable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, _ options: FetchOptions,
        _ load: @escaping @Sendable () async throws -> Value?
    ) async throws -> Value? {
        let stored = try source.key(key, "fetch")
        let backend = CacheFetch<Value>(self, stored, isCounted: options.takesAnyFresh)
        let checked = try CheckedFetch(options, backend.name)
        if checked.source == .ignoreCache {
            return withoutNil(
                try await FlightTable.shared.unstored(backend.name, checked) { try await self.observing(load) })
        }
        if options.takesAnyFresh,
            let value = try await source.decodable(
                options,
                { () async throws(LarderError) in
                    try await source.modelToShareForTask(type, key, fillCache: true)
                })
        {
            if source.database.leases.isRefreshDue(stored, now: source.database.now()) {
                refreshAhead(type, key, options, load)
            }
            return value
        }
        guard checked.source != .cacheOnly else {
            if options.takesAnyFresh { return nil }
            return try await youngEnough(stored, checked.maxAge)
        }
        return try await FlightTable.shared.value(backend, checked) { try await self.observing(load) }
    }

    /// Returns the fresh model of a key if it is at most `maxAge` milliseconds old; a nil `maxAge` allows any age.
    func youngEnough<Value: Decodable>(_ key: Key, _ maxAge: Int64?) async throws(LarderError) -> Value? {
        let now = source.database.now()
        guard let record = try await source.recordForTask(key, "fetch"),
            maxAge.map({ record.header.storedAt >= now - $0 }) ?? true
        else { return nil }
        return try await source.decodeForTask(Value.self, record, key)
    }

    /// Refreshes an entry in the background, unless another caller is doing so.
    @usableFromInline func refreshAhead<Value: Codable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, _ options: FetchOptions,
        _ load: @escaping @Sendable () async throws -> Value?
    ) {
        // Ignore errors: this call follows a cache hit, so the key and the options are valid.
        guard options.refreshesAhead, options.source == .cacheElseOrigin,
            let key = try? source.key(key, "fetch")
        else { return }
        let backend = CacheFetch<Value>(self, key, isCounted: true)
        guard let checked = try? CheckedFetch(options, backend.name) else { return }
        FlightTable.shared.refresh(backend, checked) { try await self.observing(load) }
    }
}
