import LarderPlatform
import LarderVocabulary

/// One fetch (of a key, or of several keys with one closure) and all callers in this process that wait for its result.
///
/// A separate task looks the key up in the cache and then runs the closure. So the cancellation of one caller does not
/// end the fetch for the other callers.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by the table's lock.
final class Flight<Value: Sendable>: @unchecked Sendable {
    /// Why a caller stops waiting.
    enum Event {
        case finished(Result<Value?, any Error>)
        /// The cache has a value that the caller accepts now; the fetch continues.
        case found(Value)
        case softTimeout
        case hardTimeout
        case cancelled
    }

    /// A waiting caller. Only the thread that removes it from ``waiters`` sets its event.
    final class Waiter: Sendable {
        let takesFound: Bool
        /// Whether the caller started the flight (fetch). Other callers must not treat the cached value as fresh,
        /// because the entry may have changed between the flight's lookup and their call.
        let isFirst: Bool
        let soft: Int64?
        /// The keys whose fetching closures make this call, directly or indirectly.
        let closures = FetchContext.names
        let event = Promise<Event>()

        init(takesFound: Bool, isFirst: Bool = true, soft: Int64?) {
            (self.takesFound, self.isFirst, self.soft) = (takesFound, isFirst, soft)
        }

        func takes(_ found: FoundValue<Value>) -> Bool {
            found.isYoung && takesFound && (found.isFresh && isFirst || soft == 0)
        }
    }

    private enum Phase {
        case asking
        case loading(FoundValue<Value>?, leaseEnds: Int64)
        case finished(Result<Value?, any Error>)
    }

    /// The keys that this flight fetches.
    private let names: [FetchName]
    private let table: FlightTable
    private var lock: Lock { table.lock }
    private var phase = Phase.asking
    /// The waiting callers by identity, so that removing one is O(1).
    private(set) var waiters: [ObjectIdentifier: Waiter] = [:]
    /// The number of callers that have entered this flight and have no event yet.
    private(set) var users = 0
    /// Whether the fetch continues without waiting callers, for example after they have returned a stale value.
    private var isBackground = false
    /// Whether the task was cancelled, because all callers had left before the result. New callers must not join.
    private var isAbandoned = false
    private var task: Task<Void, Never>?
    /// Whether the result is from the cache, not from the closure. Guarded by the lock until the flight has ended.
    var isFromCache = false
    /// Whether the lookup may wait for another process although there is a stale value. Accessed with the lock held.
    var mayAskForLong = false

    init(_ names: [FetchName], _ table: FlightTable) { (self.names, self.table) = (names, table) }

    /// Creates a fetch that is not shared. Its only caller counts as entered.
    /// - Parameter found: the cached value that may be returned during the fetch.
    init(alone names: [FetchName], _ table: FlightTable, _ found: FoundValue<Value>? = nil) {
        self.names = names
        self.table = table
        users = 1
        phase = .loading(found, leaseEnds: .max)
    }

    // MARK: Called with the table's lock held

    /// Whether other callers may join: the lookup is still running, or the lease has not ended.
    func isOpen(_ now: Int64) -> Bool {
        if isAbandoned { return false }
        return switch phase {
        case .asking: true
        case .loading(_, let leaseEnds): now < leaseEnds
        case .finished: false
        }
    }

    /// Whether there is a cached value that may be returned during the fetch.
    var hasValue: Bool {
        if case .loading(let found?, _) = phase { found.isYoung } else { false }
    }

    func enter() { users += 1 }

    func begin(background: Bool, _ run: @escaping @Sendable () async -> Void) {
        isBackground = background
        task = Task { await run() }
    }

    // MARK: Waiting

    /// Waits for the first event for this caller. The caller must have called ``enter()``.
    func wait(_ waiter: Waiter, hard: Int64?) async -> Event {
        let event = await withTaskCancellationHandler {
            let event = lock.withLock {
                let event = immediateEvent(waiter)
                if let event { leave(event) } else { waiters[ObjectIdentifier(waiter)] = waiter }
                return event
            }
            if let event { return event }
            // A soft timeout of zero needs no timer: the wait ends as soon as there is a value to serve.
            let soft = waiter.soft.flatMap { $0 > 0 ? timer(waiter, $0, .softTimeout) : nil }
            let hard = hard.map { timer(waiter, $0, .hardTimeout) }
            defer {
                soft?.cancel()
                hard?.cancel()
            }
            return await waiter.event.value()
        } onCancel: {
            end(waiter, .cancelled)
        }
        cancelIfAbandoned()
        return event
    }

    /// Returns an event for a caller that need not wait; nil if it must. Called with the lock held.
    private func immediateEvent(_ waiter: Waiter) -> Event? {
        if Task.isCancelled { return .cancelled }
        return switch phase {
        case .finished(let result): .finished(result)
        case .loading(let found?, _) where waiter.takes(found): .found(found.value)
        case .asking, .loading: listWait(waiter)
        }
    }

    /// Adds the caller's wait to the wait-for graph, if the call is within a closure. Called with the lock held.
    /// - Returns: an error if the wait would be a deadlock.
    private func listWait(_ waiter: Waiter) -> Event? {
        guard let closure = waiter.closures.last, let name = names.first else { return nil }
        guard !table.waits.leads(from: names, to: waiter.closures) else {
            return .finished(.failure(FetchError.cycle(name, closure)))
        }
        table.waits.add(waiter.closures, names)
        return nil
    }

    /// Removes a waiting caller from the wait-for graph. Called with the lock held.
    private func unlistWait(_ waiter: Waiter) {
        if !waiter.closures.isEmpty { table.waits.remove(waiter.closures, names) }
    }

    private func timer(_ waiter: Waiter, _ milliseconds: Int64, _ event: Event) -> Task<Void, Never> {
        Task.delayed(milliseconds: milliseconds) { [weak self] in self?.end(waiter, event) }
    }

    /// Ends a caller's wait, if it has begun and has not ended.
    private func end(_ waiter: Waiter, _ event: Event) {
        let isWaiting = lock.withLock {
            guard waiters.removeValue(forKey: ObjectIdentifier(waiter)) != nil else { return false }
            unlistWait(waiter)
            leave(event)
            return true
        }
        if isWaiting { waiter.event.set(event) }
    }

    /// Counts a caller that stops waiting. Called with the lock held, as soon as the caller's event is known. From then
    /// on the caller does not receive an error of the closure any more, so such an error must be reported.
    private func leave(_ event: Event) {
        users -= 1
        switch event {
        case .found: isBackground = true
        case .softTimeout, .hardTimeout: if hasValue { isBackground = true }
        case .finished, .cancelled: break
        }
    }

    /// Cancels the fetch if all callers have left before the result, and none of them has returned a cached value.
    private func cancelIfAbandoned() {
        let abandoned = lock.withLock { () -> Task<Void, Never>? in
            if case .finished = phase { return nil }
            isAbandoned = users == 0 && !isBackground
            return isAbandoned ? task : nil
        }
        abandoned?.cancel()
    }

    // MARK: Progress

    /// Records that the closure starts to run, and ends the wait of all callers that accept the cached value.
    func load(_ found: FoundValue<Value>?, leaseEnds: Int64) {
        let served = lock.withLock { () -> [Waiter] in
            phase = .loading(found, leaseEnds: leaseEnds)
            guard let found else { return [] }
            let served = waiters.values.filter { $0.takes(found) }
            for waiter in served {
                waiters[ObjectIdentifier(waiter)] = nil
                unlistWait(waiter)
                leave(.found(found.value))
            }
            return served
        }
        guard let found else { return }
        for waiter in served { waiter.event.set(.found(found.value)) }
    }

    /// Ends the fetch with a result.
    /// - Returns: false if the fetch ran in the background and no caller was left to receive an error.
    func finish(_ result: Result<Value?, any Error>) -> Bool {
        let (waiting, isAwaited) = lock.withLock {
            phase = .finished(result)
            let isAwaited = users > 0 || !isBackground
            users -= waiters.count
            for waiter in waiters.values { unlistWait(waiter) }
            defer { waiters = [:] }
            return (waiters.values, isAwaited)
        }
        for waiter in waiting { waiter.event.set(.finished(result)) }
        return isAwaited
    }
}

/// The identity of a fetch. Callers share a fetch only if their identities are equal.
struct FlightID: Hashable, Sendable {
    let name: FetchName
    let type: ObjectIdentifier
    let maxAge: Int64?
}

/// The wait-for graph of running fetches. Detects a deadlock before a caller blocks.
///
/// Only calls from within a fetching closure are recorded; other calls cannot cause a deadlock.
struct WaitGraph {
    /// `waits[a][b]` is the number of calls within the closure of key `a` that wait for key `b`.
    private var waits: [FetchName: [FetchName: Int]] = [:]

    /// Records that a call within the closures of the keys `closures` waits for the keys `awaited`.
    mutating func add(_ closures: [FetchName], _ awaited: [FetchName]) {
        for closure in closures {
            for name in awaited { waits[closure, default: [:]][name, default: 0] += 1 }
        }
    }

    mutating func remove(_ closures: [FetchName], _ awaited: [FetchName]) {
        for closure in closures {
            guard var others = waits[closure] else { continue }
            for name in awaited { others[name] = others[name].flatMap { $0 > 1 ? $0 - 1 : nil } }
            waits[closure] = others.isEmpty ? nil : others
        }
    }

    /// Whether the closures of the keys `awaited` wait, directly or indirectly, for one of the keys `closures`.
    func leads(from awaited: [FetchName], to closures: [FetchName]) -> Bool {
        var seen = Set(awaited)
        var next = awaited
        while let name = next.popLast() {
            if closures.contains(name) { return true }
            for (other, _) in waits[name] ?? [:] where seen.insert(other).inserted { next.append(other) }
        }
        return false
    }
}
