// Fetches several keys: one call of the closure for all keys that are not cached.

import LarderPlatform

extension FlightTable {
    /// The keys of a call, grouped by the cache's replies.
    private struct Sorted<Key: Hashable & Sendable, Backend: FetchBackend>: Sendable {
        typealias Lead = (key: Key, backend: Backend, token: UInt64, found: FoundValue<Backend.Value>?)

        var values: [Key: Backend.Value] = [:]
        /// The keys for which this call has got the lease, and which it fetches.
        var leads: [Lead] = []
        /// The keys that other callers are fetching, so that this call has to wait.
        var waits: [(key: Key, backend: Backend)] = []

        /// The cached values of all keys to fetch: they are returned at once while the keys are fetched again. Nil if
        /// the value of one of these keys is missing or too old for that, or if the call waits for other calls.
        var found: FoundValue<[Key: Backend.Value]>? {
            guard waits.isEmpty, leads.allSatisfy({ $0.found?.isYoung ?? false }) else { return nil }
            return FoundValue(stored, isFresh: leads.allSatisfy { $0.found?.isFresh ?? false }, isYoung: true)
        }

        /// The cached values, fresh or stale, of the keys to fetch.
        private var stored: [Key: Backend.Value] {
            leads.reduce(into: [:]) { values, lead in values[lead.key] = lead.found?.value }
        }

        /// Returns the cached values of the keys to fetch if the caller accepts them, else throws the error.
        func instead(of error: any Error, _ options: CheckedFetch) throws -> [Key: Backend.Value] {
            guard options.source != .originOnly, !(error is CancellationError),
                leads.allSatisfy({ lead in
                    // With ``FetchSource/originElseCache``, a value of any age is accepted.
                    lead.found.map { $0.isYoung || options.source == .originElseCache } ?? false
                })
            else { throw error }
            return stored
        }
    }

    /// Returns the values of several keys. Calls `load` once for the keys that are not cached, and stores the values.
    /// Keys that `load` does not return are cached as absent.
    /// - Parameter began: when the call began, in monotonic milliseconds: the start of its hard timeout.
    package func values<Key: Hashable & Sendable, Backend: FetchBackend>(
        _ backends: [(key: Key, backend: Backend)], _ options: CheckedFetch,
        since began: Int64 = MonotonicClock.milliseconds(),
        _ load: @escaping @Sendable ([Key]) async throws -> [Key: Backend.Value]
    ) async throws -> [Key: Backend.Value] {
        for (_, backend) in backends where FetchContext.names.contains(backend.name) {
            throw FetchError.recursion(backend.name)
        }
        var sorted = try await sort(backends, options)
        if !sorted.leads.isEmpty { sorted.values.merge(try await served(sorted, options, since: began, load)) { $1 } }
        // Wait for other callers' fetches last, because those callers may wait for keys that this call fetches above.
        for (key, backend) in sorted.waits {
            sorted.values[key] = try await value(backend, options, since: began) { try await load([key])[key] }
        }
        return sorted.values
    }

    /// Calls the closure for all keys to fetch. Returns its values, or the cached values after a timeout or an error.
    private func served<Key: Hashable & Sendable, Backend: FetchBackend>(
        _ sorted: Sorted<Key, Backend>, _ options: CheckedFetch, since began: Int64,
        _ load: @escaping @Sendable ([Key]) async throws -> [Key: Backend.Value]
    ) async throws -> [Key: Backend.Value] {
        let leads = sorted.leads
        let found = options.servesStale ? sorted.found : nil
        let flight = Flight<[Key: Backend.Value]>(alone: leads.map(\.backend.name), self, found)
        flight.begin(background: false) {
            let result = await Result<[Key: Backend.Value]?, any Error>.of {
                try await self.fetch(leads, options, load)
            }
            if !flight.finish(result), case .failure(let error) = result {
                for lead in leads { lead.backend.failedInBackground(error) }
            }
        }
        let waiter = Flight<[Key: Backend.Value]>.Waiter(takesFound: true, soft: found == nil ? nil : options.soft)
        switch await flight.wait(waiter, hard: options.hardLeft(since: began)) {
        case .found(let values): return values
        case .cancelled: throw CancellationError()
        case .finished(.success(let values)): return values ?? [:]
        case .softTimeout: return found?.value ?? [:]
        case .hardTimeout:
            return try sorted.instead(of: FetchError.timeout(leads[0].backend.name, options.hard ?? 0), options)
        case .finished(.failure(let error)): return try sorted.instead(of: error, options)
        }
    }

    /// Returns the value of `load`, within the hard timeout, without storing it.
    package func unstored<Value: Sendable>(
        _ name: FetchName, _ options: CheckedFetch, _ load: @escaping @Sendable () async throws -> Value?
    ) async throws -> Value? {
        guard let hard = options.hard else { return try await load() }
        let flight = Flight<Value>(alone: [], self)
        flight.begin(background: false) { _ = flight.finish(await Result.of(load)) }
        switch await flight.wait(.init(takesFound: false, soft: nil), hard: hard) {
        case .finished(let result): return try result.get()
        case .cancelled: throw CancellationError()
        // `found` and `softTimeout` cannot occur, because there is no cached value.
        case .found, .softTimeout, .hardTimeout: throw FetchError.timeout(name, hard)
        }
    }

    private func sort<Key: Hashable & Sendable, Backend: FetchBackend>(
        _ backends: [(key: Key, backend: Backend)], _ options: CheckedFetch
    ) async throws -> Sorted<Key, Backend> {
        let answers = await Backend.askAll(backends.map(\.backend), maxAge: options.maxAge, lease: options.lease)
        var sorted = Sorted<Key, Backend>()
        var failure: (any Error)?
        for ((key, backend), answer) in zip(backends, answers) {
            switch answer {
            case .failure(let error): failure = failure ?? error
            // There is only a stale value, but the caller wants to wait for a fresh value.
            case .success(.stale) where options.waitsForFresh: sorted.waits.append((key, backend))
            case .success(.fresh(let value)), .success(.stale(let value)): sorted.values[key] = value
            case .success(.absent): break
            case .success(.wait): sorted.waits.append((key, backend))
            // There may be an older value, which this source accepts. So ask again without a maximum age.
            case .success(.failed) where options.source == .originElseCache: sorted.waits.append((key, backend))
            case .success(.failed(let left)):
                failure = failure ?? restError(backend.name, left, now: backend.now())
            case .success(.lead(let token, let found)):
                if !options.refreshesAhead, let found, found.isFresh, found.isYoung {
                    await backend.release(token: token, .open)
                    sorted.values[key] = found.value
                    continue
                }
                sorted.leads.append((key, backend, token, found))
            }
        }
        do {
            if let failure { throw failure }
            try Task.checkCancellation()
        } catch {
            let leads = sorted.leads
            await Self.whole { for lead in leads { await lead.backend.release(token: lead.token, .open) } }
            throw error
        }
        return sorted
    }

    private func fetch<Key: Hashable & Sendable, Backend: FetchBackend>(
        _ leads: [Sorted<Key, Backend>.Lead], _ options: CheckedFetch,
        _ load: @escaping @Sendable ([Key]) async throws -> [Key: Backend.Value]
    ) async throws -> [Key: Backend.Value] {
        let values: [Key: Backend.Value]
        do {
            try Task.checkCancellation()
            values = try await FetchContext.$names.withValue(leads.map(\.backend.name)) {
                try await load(leads.map(\.key))
            }
        } catch {
            let isCancelled = Task.isCancelled
            await Self.whole {
                for lead in leads {
                    let release = isCancelled ? .open : lead.backend.release(after: error, options)
                    self.note(error, lead.backend.name, release, now: lead.backend.now())
                    await lead.backend.release(token: lead.token, release)
                }
            }
            throw error
        }
        try await Self.whole {
            let ends = leads.map { FetchEnd(backend: $0.backend, token: $0.token, value: values[$0.key]) }
            if let failure = await Backend.endAll(ends, options) { throw failure }
        }
        let asked = Set(leads.map(\.key))
        return values.filter { asked.contains($0.key) }
    }

    /// Returns the cached value, fresh or stale, without fetching; nil if there is none within the maximum age.
    package func peek<Backend: FetchBackend>(
        _ backend: Backend, _ options: CheckedFetch, maxAge: Int64?
    ) async throws -> Backend.Value? {
        switch try await backend.ask(maxAge: maxAge, lease: options.lease, waits: .never) {
        case .fresh(let value), .stale(let value): return value
        case .lead(let token, let found):
            await backend.release(token: token, .open)
            return found.flatMap { $0.isYoung ? $0.value : nil }
        case .absent, .failed, .wait: return nil
        }
    }
}
