import LarderPlatform
import LarderVocabulary

/// The running fetches of this process. Concurrent callers for a key share one fetch (single flight).
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class FlightTable: @unchecked Sendable {
    package static let shared = FlightTable()

    let lock = Lock()
    /// The waits for running fetches. Accessed with `lock` held.
    var waits = WaitGraph()
    private var flights: [FlightID: AnyObject] = [:]
    /// The errors of failed fetches, and when the back-off of their keys ends, in milliseconds of the backend's clock.
    private var failures = BoundedTable<FetchName, (error: any Error, until: Int64)>(most: 1024)

    /// The number of running fetches, for tests.
    package var count: Int { lock.withLock { flights.count } }

    /// The number of callers that share the running fetches of a key, for tests.
    package func callerCount<Value: Sendable>(forKey key: [UInt8], _ type: Value.Type) -> Int {
        lock.withLock {
            flights.filter { $0.key.name.key == key }.reduce(0) { $0 + (($1.value as? Flight<Value>)?.users ?? 0) }
        }
    }

    /// A lease that the caller already holds.
    private typealias Lead<Value: Sendable> = (token: UInt64, found: FoundValue<Value>?)

    /// Returns the cached value of a key. Without one, calls `load`, and stores and returns its value.
    /// - Parameter began: when the call began, in monotonic milliseconds: the start of its hard timeout.
    /// - Returns: nil if the origin has no value.
    /// - Throws: ``FetchError``, `CancellationError`, the errors of the backend, and those of `load`.
    package func value<Backend: FetchBackend>(
        _ backend: Backend, _ options: CheckedFetch, since began: Int64 = MonotonicClock.milliseconds(),
        _ load: @escaping @Sendable () async throws -> Backend.Value?
    ) async throws -> Backend.Value? {
        let name = backend.name
        if FetchContext.names.contains(name) { throw FetchError.recursion(name) }
        var soft = options.servesStale ? options.soft : nil
        var lead: Lead<Backend.Value>?
        // Whether the cache has no value to return, so that the caller has to wait.
        var mustWait = false
        while true {
            if let entered = enter(backend, options, lead, asksItself: soft == 0 && !mustWait, load) {
                lead = nil
                let flight = entered.flight
                let waiter = Flight<Backend.Value>.Waiter(
                    takesFound: options.servesStale && !mustWait, isFirst: entered.isFirst, soft: soft)
                switch await flight.wait(waiter, hard: options.hardLeft(since: began)) {
                case .found(let value): return value
                case .cancelled: throw CancellationError()
                case .finished(.success(let value)):
                    // Otherwise look the value up again: the cached value may have changed before this caller joined.
                    if entered.isFirst || !flight.isFromCache { return value }
                case .finished(.failure(let error)): return try await stale(backend, options, error)
                case .hardTimeout:
                    return try await stale(backend, options, FetchError.timeout(name, options.hard ?? 0))
                case .softTimeout:
                    soft = 0
                    continue
                }
            }
            // A fetch is running. Ask the cache, which may still have a stale value that this caller accepts.
            switch try await backend.ask(maxAge: options.maxAge, lease: options.lease, waits: .never) {
            case .stale where options.waitsForFresh: mustWait = true
            case .fresh(let value), .stale(let value): return value
            case .absent: return nil
            case .failed(let left): throw restError(name, left, now: backend.now())
            case .lead(let token, let found): lead = (token, found)
            case .wait: mustWait = true
            }
        }
    }

    /// Returns the cached value if the caller accepts it in place of an error; otherwise throws the error.
    private func stale<Backend: FetchBackend>(
        _ backend: Backend, _ options: CheckedFetch, _ error: any Error
    ) async throws -> Backend.Value? {
        guard options.source != .originOnly, !(error is CancellationError) else { throw error }
        // With ``FetchSource/originElseCache``, a value of any age is accepted.
        let maxAge = options.source == .originElseCache ? nil : options.maxAge
        switch try? await backend.ask(maxAge: maxAge, lease: options.lease, waits: .never) {
        case .fresh(let value), .stale(let value): return value
        case .lead(let token, let found):
            await backend.release(token: token, .open)
            guard let found, found.isYoung else { throw error }
            return found.value
        case .absent, .failed, .wait, nil: throw error
        }
    }

    /// Fetches a key in the background, unless it is already being fetched.
    package func refresh<Backend: FetchBackend>(
        _ backend: Backend, _ options: CheckedFetch, _ load: @escaping @Sendable () async throws -> Backend.Value?
    ) {
        guard !FetchContext.names.contains(backend.name) else { return }
        let id = Self.id(backend, options)
        lock.withLock {
            guard live(id, backend) == nil else { return }
            begin(id, backend, options, nil, background: true, load)
        }
    }

    // MARK: Failures

    /// Records the error of a failed fetch if a back-off follows. Call it before the lease is released.
    package func note(_ error: any Error, _ name: FetchName, _ release: FetchRelease, now: Int64) {
        guard case .failed(let milliseconds) = release else { return }
        lock.withLock { failures[name] = (error, now + milliseconds) }
    }

    /// Returns the error for callers during a key's back-off: the error of the failed fetch, or
    /// ``FetchError/Code/originRests`` if the fetch failed in another process.
    package func restError(_ name: FetchName, _ left: Int64, now: Int64) -> any Error {
        let last = lock.withLock { failures[name] }
        return last.flatMap { now < $0.until ? $0.error : nil } ?? FetchError.originRests(name, left)
    }

    // MARK: Flights

    private static func id<Backend: FetchBackend>(_ backend: Backend, _ options: CheckedFetch) -> FlightID {
        FlightID(name: backend.name, type: ObjectIdentifier(Backend.Value.self), maxAge: options.maxAge)
    }

    /// Enters and returns the flight (fetch) for the key. Starts one if none runs, or if the caller has a lease.
    /// - Returns: nil if a flight runs, but the caller should first ask the cache for a stale value (`asksItself`).
    private func enter<Backend: FetchBackend>(
        _ backend: Backend, _ options: CheckedFetch, _ lead: Lead<Backend.Value>?, asksItself: Bool,
        _ load: @escaping @Sendable () async throws -> Backend.Value?
    ) -> (flight: Flight<Backend.Value>, isFirst: Bool)? {
        let id = Self.id(backend, options)
        return lock.withLock {
            if lead == nil, let flight = live(id, backend) {
                if asksItself, flight.hasValue || flight.mayAskForLong { return nil }
                flight.enter()
                return (flight, false)
            }
            let flight = begin(id, backend, options, lead, background: false, load)
            flight.mayAskForLong = options.waitsForFresh
            flight.enter()
            return (flight, true)
        }
    }

    /// Called with `lock` held.
    private func live<Backend: FetchBackend>(_ id: FlightID, _ backend: Backend) -> Flight<Backend.Value>? {
        guard let flight = flights[id] as? Flight<Backend.Value>, flight.isOpen(backend.now()) else { return nil }
        return flight
    }

    /// Called with `lock` held.
    @discardableResult
    private func begin<Backend: FetchBackend>(
        _ id: FlightID, _ backend: Backend, _ options: CheckedFetch, _ lead: Lead<Backend.Value>?, background: Bool,
        _ load: @escaping @Sendable () async throws -> Backend.Value?
    ) -> Flight<Backend.Value> {
        let flight = Flight<Backend.Value>([id.name], self)
        flights[id] = flight
        flight.begin(background: background) { [self] in
            let result = await Result.of { try await run(flight, backend, options, lead, load) }
            lock.withLock { if flights[id] === flight { flights[id] = nil } }
            if !flight.finish(result), case .failure(let error) = result { backend.failedInBackground(error) }
        }
        return flight
    }

    private func run<Backend: FetchBackend>(
        _ flight: Flight<Backend.Value>, _ backend: Backend, _ options: CheckedFetch, _ lead: Lead<Backend.Value>?,
        _ load: @escaping @Sendable () async throws -> Backend.Value?
    ) async throws -> Backend.Value? {
        if let lead { return try await fetch(flight, backend, options, lead, load) }
        let waits: FetchWait = options.waitsForFresh ? .ifNothingIsFresh : .ifNothingServes
        switch try await backend.ask(maxAge: options.maxAge, lease: options.lease, waits: waits) {
        case .fresh(let value), .stale(let value):
            lock.withLock { flight.isFromCache = true }
            return value
        case .absent:
            lock.withLock { flight.isFromCache = true }
            return nil
        case .failed(let left): throw restError(backend.name, left, now: backend.now())
        case .wait: throw CancellationError()
        case .lead(let token, let found):
            if !options.refreshesAhead, let found, found.isFresh, found.isYoung {
                await backend.release(token: token, .open)
                lock.withLock { flight.isFromCache = true }
                return found.value
            }
            return try await fetch(flight, backend, options, (token, found), load)
        }
    }

    /// Runs the closure with the lease, and stores the value, its absence or its failure.
    private func fetch<Backend: FetchBackend>(
        _ flight: Flight<Backend.Value>, _ backend: Backend, _ options: CheckedFetch, _ lead: Lead<Backend.Value>,
        _ load: @escaping @Sendable () async throws -> Backend.Value?
    ) async throws -> Backend.Value? {
        flight.load(lead.found, leaseEnds: backend.now() + (options.lease ?? CheckedFetch.standardLease))
        let value: Backend.Value?
        do {
            try Task.checkCancellation()
            value = withoutNil(
                try await FetchContext.$names.withValue([backend.name]) { try await load() })
            lock.withLock { failures[backend.name] = nil }
        } catch {
            let release = Task.isCancelled ? .open : backend.release(after: error, options)
            note(error, backend.name, release, now: backend.now())
            await Self.whole { await backend.release(token: lead.token, release) }
            throw error
        }
        try await Self.whole {
            guard let value else {
                let release = FetchRelease.absent(milliseconds: max(1, options.absent))
                return await backend.release(token: lead.token, release)
            }
            do {
                try await backend.store(value, token: lead.token, options)
            } catch {
                await backend.release(token: lead.token, .open)
                throw error
            }
        }
        return value
    }

    /// Runs `body` in a new task, and waits for its end. Cancelling the calling task does not cancel `body`.
    static func whole<Failure: Error>(
        _ body: @escaping @Sendable () async throws(Failure) -> Void
    ) async throws(Failure) {
        let result = await Task { () async -> Result<Void, Failure> in
            do throws(Failure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }.value
        try result.get()
    }
}

extension Result where Failure == any Error {
    package static func of(_ body: () async throws -> Success) async -> Result {
        do {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }
}

// A closure that returns an optional may make Swift infer an optional as the model type itself. A nil model then means
// that the origin has no value.

/// A nil, which can be cast to every optional type, and to no other type.
private let nilModel: any Sendable = Never?.none

/// Returns the value that a closure returned; nil if the model is an optional and the value is its nil.
package func withoutNil<Value>(_ value: Value?) -> Value? {
    // Of all values, only the nil of an optional type can be cast to `Never?`.
    value.flatMap { $0 as Any is Never? ? nil : $0 }
}

/// Returns `.some(nil)`, the nil of the model itself, if the model type is an optional; nil for other types.
package func nothing<Value>(of type: Value.Type) -> Value? { nilModel as? Value }
