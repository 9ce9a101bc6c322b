import LarderEngine
import LarderFetching
import LarderPlatform

// Requests to the origin.

extension OriginCache {
    func backend<Value: Codable & Sendable>(_ key: some CacheKey, isCounted: Bool) throws(LarderError)
        -> OriginFetch<Value>
    {
        let stored = try cache.source.key(key, "fetch")
        return OriginFetch(cache: self, base: CacheFetch(cache, stored, isCounted: isCounted))
    }

    func fetched<Value: Codable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, _ options: FetchOptions, since began: Int64
    ) async throws -> Value? {
        let backend: OriginFetch<Value> = try backend(key, isCounted: options.takesAnyFresh)
        let checked = try CheckedFetch(options, backend.name)
        let stored = backend.base.key
        if checked.source == .ignoreCache {
            let bytes = Array(stored.bytes)
            return try await FlightTable.shared.unstored(backend.name, checked) { [self] in
                try await ask(type, [bytes], since: began)[0]
            }?.model
        }
        if options.takesAnyFresh,
            let value = try await cache.source.decodable(
                options,
                { () async throws(LarderError) in
                    try await cache.source.modelToShareForTask(type, key, fillCache: true)
                })
        {
            if cache.source.database.leases.isRefreshDue(stored, now: cache.source.database.now()) {
                refreshAhead(type, key, options)
            }
            return value
        }
        guard checked.source != .cacheOnly else {
            return options.takesAnyFresh ? nil : try await cache.youngEnough(stored, checked.maxAge)
        }
        let call = trust.beginCall()
        defer { trust.endCall() }
        return try await answer(backend, checked, call, since: began)?.model
    }

    /// Returns the value from the cache, or else from the origin. If the caller joined a request that was sent before
    /// the value changed, the request is repeated within the same hard timeout.
    func answer<Value: Codable & Sendable>(
        _ backend: OriginFetch<Value>, _ options: CheckedFetch, _ call: InvalidationEpoch.Ticket, since began: Int64
    ) async throws -> OriginFetched<Value>? {
        let key = Array(backend.base.key.bytes)
        while true {
            let fetched = try await FlightTable.shared.value(backend, options, since: began) { [self] in
                try await ask(Value.self, [key], since: began)[0]
            }
            guard let fetched, isOutdated(fetched, call, backend.base.key) else { return fetched }
        }
    }

    /// Whether `fetched` is outdated: it was requested before this call, and its key changed after the request.
    func isOutdated(_ fetched: OriginFetched<some Any>, _ call: InvalidationEpoch.Ticket, _ key: Key) -> Bool {
        guard let answered = fetched.answer, answered.ticket.number < call.number else { return false }
        return !trust.isValid(answered.ticket, Array(key.bytes))
    }

    func refreshAhead<Value: Codable & Sendable>(_ type: Value.Type, _ key: some CacheKey, _ options: FetchOptions) {
        guard options.refreshesAhead, options.source == .cacheElseOrigin, !limiter.isResting,
            let backend: OriginFetch<Value> = try? backend(key, isCounted: true),
            let checked = try? CheckedFetch(options, backend.name)
        else { return }
        let bytes = Array(backend.base.key.bytes)
        FlightTable.shared.refresh(backend, checked) { [self] in try await ask(type, [bytes])[0] }
    }

    /// Reads all keys with one request to the origin.
    /// - Parameter began: when the caller's call began, in milliseconds of the monotonic clock; nil if no caller waits.
    func ask<Value: Codable & Sendable>(
        _ type: Value.Type, _ keys: [[UInt8]], since began: Int64? = nil
    ) async throws -> [OriginFetched<Value>] {
        let number = try limiter.enter()
        let ticket = trust.beginCall()
        defer { trust.endCall() }
        let sentAt = cache.source.database.leases.time
        let deadline = began.flatMap { began in
            options.hardTimeout?.roundedMilliseconds.map { min($0, .max - began) + began }
        }
        let end = await limiter.run(number, question: keys, deadline: deadline) { [origin] in
            try await origin.read(keys)
        }
        let answers: [OriginAnswer]
        switch end {
        case .answered(let result): answers = try result.get()
        case .timedOut: throw limiter.timeout
        case .closed: throw cache.source.closedError("value")
        }
        guard answers.count == keys.count else {
            throw OriginFailure.wrongAnswers(origin.name, expected: keys.count, got: answers.count)
        }
        var fetched: [OriginFetched<Value>] = []
        for (key, answer) in zip(keys, answers) {
            fetched.append(OriginFetched(model: try model(type, answer, Key(key)), answer: (answer, ticket, sentAt)))
        }
        return fetched
    }

    private func model<Value: Codable>(
        _ type: Value.Type, _ answer: OriginAnswer, _ key: Key
    ) throws(LarderError) -> Value? {
        guard let bytes = answer.bytes else { return nil }
        try Payload.bytes(bytes).check(key, cache.name)
        let model: Value
        do {
            model = try bytes.withUnsafeBytes { try cache.source.codec.decode(type, $0, storedAs: answer.codec) }
        } catch {
            throw .decodingFailed(type, answer.codec, key, cache.name, error)
        }
        try cache.source.verify(model, key)
        return model
    }

    // MARK: Storing

    /// Whether a reply may be cached: no change of the key was reported since the request was sent. If the origin
    /// reports changes, it must also have promised to report changes of this entry.
    func mayStore(_ answered: OriginAnswered, _ key: Key) -> Bool {
        let key = Array(key.bytes)
        return (answered.answer.isWatched || !trust.isNotified) && trust.isValid(answered.ticket, key)
            && trust.mayStore(answered.ticket, key)
    }

    /// Returns the tags with which an entry is stored: its own, and ``tag`` if the origin reports changes.
    func tags(_ own: [String]) -> [String] { trust.isNotified ? own + [Self.tag] : own }
}
