// Several keys whose missing values one call of a closure fetches.

extension FlightTable {
    /// What the cache said about the keys of a call.
    private struct Sorted<Key: Hashable & Sendable, Backend: FetchBackend>: Sendable {
        struct Lead: Sendable {
            let key: Key
            let backend: Backend
            let token: UInt64
            let found: FoundValue<Backend.Value>?
        }

        var values: [Key: Backend.Value] = [:]
        /// Keys for which this call fetches.
        var leads: [Lead] = []
        /// Keys that somebody else fetches.
        var waits: [(key: Key, backend: Backend)] = []

        /// Whether there is something to serve for all keys that are fetched.
        var servesAll: Bool { waits.isEmpty && leads.allSatisfy { $0.found?.isYoung ?? false } }
    }

    /// The values of several keys: what the cache has, and for all others what one call of `load` returns, which then is
    /// stored. What it leaves out the origin does not have.
    package func values<Key: Hashable & Sendable, Backend: FetchBackend>(
        _ backends: [(key: Key, backend: Backend)], _ options: CheckedFetch,
        _ load: @escaping @Sendable ([Key]) async throws -> [Key: Backend.Value]
    ) async throws -> [Key: Backend.Value] {
        for (_, backend) in backends where FetchContext.names.contains(backend.name) {
            throw FetchError.recursion(backend.name)
        }
        var sorted = try await sort(backends, options)
        if !sorted.leads.isEmpty {
            if options.servesStale, options.soft == 0, sorted.servesAll {
                let leads = sorted.leads
                for lead in leads { sorted.values[lead.key] = lead.found?.value }
                Task {
                    do {
                        _ = try await self.fetch(leads, options, load)
                    } catch {
                        for lead in leads { lead.backend.failedInBackground(error) }
                    }
                }
            } else {
                let leads = sorted.leads
                do {
                    sorted.values.merge(try await fetch(leads, options, load)) { $1 }
                } catch {
                    guard options.source != .originOnly, sorted.leads.allSatisfy({ $0.found != nil }),
                        options.source == .originElseCache || sorted.leads.allSatisfy({ $0.found?.isYoung ?? false })
                    else { throw error }
                    for lead in leads { sorted.values[lead.key] = lead.found?.value }
                }
            }
        }
        // Only now: others may be waiting for what this call fetched.
        for (key, backend) in sorted.waits {
            sorted.values[key] = try await value(backend, options) { try await load([key])[key] }
        }
        return sorted.values
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
            case .success(.fresh(let value)), .success(.stale(let value)): sorted.values[key] = value
            case .success(.absent): break
            case .success(.wait): sorted.waits.append((key, backend))
            case .success(.failed(let left)): failure = failure ?? FetchError.originRests(backend.name, left)
            case .success(.lead(let token, let found)):
                if !options.refreshesAhead, let found, found.isFresh, found.isYoung {
                    await backend.release(token: token, .open)
                    sorted.values[key] = found.value
                    continue
                }
                sorted.leads.append(.init(key: key, backend: backend, token: token, found: found))
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
            values = try await FetchContext.$names.withValue(FetchContext.names + leads.map(\.backend.name)) {
                try await load(leads.map(\.key))
            }
        } catch {
            let isFailed = !Task.isCancelled && !(error is CancellationError) && options.backOff > 0
            await Self.whole {
                for lead in leads {
                    await lead.backend.release(
                        token: lead.token, isFailed ? .failed(milliseconds: options.backOff) : .open)
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

    /// What the cache has, fresh or stale, without asking the origin.
    package func peek<Backend: FetchBackend>(
        _ backend: Backend, _ options: CheckedFetch, maxAge: Int64?
    ) async throws -> Backend.Value? {
        switch try await backend.ask(maxAge: maxAge, lease: options.lease, waits: false) {
        case .fresh(let value), .stale(let value): return value
        case .lead(let token, let found):
            await backend.release(token: token, .open)
            return found.flatMap { $0.isYoung ? $0.value : nil }
        case .absent, .failed, .wait: return nil
        }
    }
}
