import LarderEngine
import LarderFetching

// Reads that ask an origin for what the cache does not have.

extension Cache {
    // MARK: One key

    /// The model of a key; if the cache has no fresh one, what `fetch` returns, which then is stored.
    ///
    /// ```swift
    /// let weather = try await cache.value(Weather.self, forKey: "oslo") { try await api.weather(in: "oslo") }
    /// ```
    /// Of all callers in the process who want the key at the same time, one runs its closure; the others wait for its
    /// value. If the entry has a grace, they get the stale value at once meanwhile. The closure runs in a task of its own:
    /// a caller who is cancelled throws `CancellationError` and leaves it to the others; when all have gone, the task is
    /// cancelled. If somebody else writes, removes or purges the key meanwhile, the callers get what was fetched, and
    /// nothing is stored.
    ///
    /// A value that the cache has costs what `value(_:forKey:)` costs, on the caller's thread. An entry that is no such model,
    /// such as one that an older version of the program stored, counts as missing, and ``CacheOptions/onEvent`` reports it.
    /// - Parameters:
    ///   - type: the model's type. May be left out if the context determines it.
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: asks the origin. Must not fetch the same key: that throws ``FetchError/Code/recursion``.
    /// - Throws: what `fetch` throws, to all who wait, if there is nothing to serve instead; ``FetchError``;
    ///   ``LarderError`` as `CacheReading.value(_:forKey:fillCache:)` and `set(_:forKey:policy:tags:durability:)`;
    ///   `CancellationError`.
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

    /// Like the call above, for an origin that may not have the value: then `fetch` returns nil, and so does the call,
    /// here and for ``FetchOptions/absent`` for everybody else.
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

    /// The decoded model that is kept beside the fresh entry of a key, and the commit unit to wait for, 0 for none.
    /// - Parameter endsSoon: set if it is time to fetch the entry anew.
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

    /// What the cache has of a key, fresh or stale, and then what the origin has, which is stored: up to two values.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - key: the entry's key.
    ///   - options: see ``FetchOptions``; its source does not matter.
    ///   - fetch: asks the origin.
    public func cachedThenFetched<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable () async throws -> Value?
    ) -> FetchSequence<Value> {
        sequence(type, key, options, fetch) { _, _ in false }
    }

    /// Like the call above; the second value is left out if it equals the first one.
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

    /// The models of several keys: those that the cache has, and for all others what one call of `fetch` returns, which
    /// then is stored. Keys for which it returns nothing are left out, and that is remembered for
    /// ``FetchOptions/absent``.
    ///
    /// Where there is something to serve for every key, stale values too, that is served as with one key, and the closure
    /// runs in the background: see ``FetchOptions/softTimeout``. If one is missing, the call waits for the closure, and keys
    /// that somebody else is fetching are waited for. Unlike with one key, the closure ends with the caller's cancellation;
    /// who waits for its keys then fetches them by himself.
    /// - Parameters:
    ///   - type: the models' type.
    ///   - keys: the entries' keys.
    ///   - options: see ``FetchOptions``.
    ///   - fetch: gets the keys whose values are missing, each once, and asks the origin for them.
    /// - Throws: as `value(_:forKey:options:fetch:)`.
    public func values<Key: CacheKey & Hashable & Sendable, Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, options: FetchOptions = FetchOptions(),
        fetch: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        var seen: Set<Key> = []
        let keys = keys.filter { seen.insert($0).inserted }
        if options.source == .ignoreCache {
            let name = FetchName(source.database, name, keys.first?.keyBytes ?? [])
            let checked = try CheckedFetch(options, name)
            return try await FlightTable.shared.unstored(name, checked) { try await fetch(keys) } ?? [:]
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
        return found.merging(try await FlightTable.shared.values(backends, checked, fetch)) { $1 }
    }

    // MARK: Without the shortest way

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
            return withoutNil(try await FlightTable.shared.unstored(backend.name, checked, load))
        }
        if options.takesAnyFresh,
            let value = try await source.decodable(
                options,
                { () async throws(LarderError) in
                    try await source.modelToShareForTask(type, key, fillCache: true)
                })
        {
            if source.database.endsSoon(stored, now: source.database.now()) { refreshAhead(type, key, options, load) }
            return value
        }
        guard checked.source != .cacheOnly else {
            if options.takesAnyFresh { return nil }
            return try await youngEnough(stored, checked.maxAge)
        }
        return try await FlightTable.shared.value(backend, checked, load)
    }

    /// The fresh model of a key if it is not older than `maxAge`.
    func youngEnough<Value: Decodable>(_ key: Key, _ maxAge: Int64?) async throws(LarderError) -> Value? {
        let now = source.database.now()
        guard let record = try await source.recordForTask(key, "fetch"),
            maxAge.map({ record.header.storedAt >= now - $0 }) ?? true
        else { return nil }
        return try await source.decodeForTask(Value.self, record, key)
    }

    /// Fetches an entry anew in the background, unless somebody does so already.
    @usableFromInline func refreshAhead<Value: Codable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, _ options: FetchOptions,
        _ load: @escaping @Sendable () async throws -> Value?
    ) {
        // The engine refuses what cannot be a key, and the options, before there is a hit.
        guard options.refreshesAhead, options.source == .cacheElseOrigin,
            let key = try? source.key(key, "fetch")
        else { return }
        let backend = CacheFetch<Value>(self, key, isCounted: true)
        guard let checked = try? CheckedFetch(options, backend.name) else { return }
        FlightTable.shared.refresh(backend, checked, load)
    }
}
