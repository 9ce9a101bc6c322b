import LarderEngine
import LarderFetching
import LarderPlatform

/// Limits the calls of a cache to its origin: a time limit for each call, and a circuit breaker. For origins with
/// limits of their own it only counts the calls.
///
/// Thread-safe.
final class OriginLimiter: Sendable {
    /// How a call ended.
    enum Ending {
        case answered
        /// The caller cancelled the call, which says nothing about the origin.
        case abandoned
        case failed(any Error)
        case timedOut
    }

    private let name: String
    private let keepsLimits: Bool
    let limits: (call: Int64, failuresBeforeRest: Int, rest: Int64)
    private let database: Database
    private let hooks: CallHooks?
    private let state: Locked<State>

    fileprivate struct State {
        let keepsLimits: Bool
        var breaker: Breaker
        var counts = OriginCacheStatus()
        /// The number of the call that probes the origin; nil if no call does.
        var probe: Int?
        /// The hashes of the reads that have failed since the last success.
        var failedReads = BoundedTable<Int, Void>(most: 1024)
        /// Closures that end the waiting calls, by call number; nil when closed.
        var ends: [Int: @Sendable () -> Void]? = [:]
    }

    init(_ origin: some CacheOrigin, _ limits: OriginCacheLimits, _ source: CacheSource) {
        name = origin.name
        keepsLimits = origin.keepsLimits
        self.limits = limits.checked
        database = source.database
        hooks = source.hooks
        let breaker = Breaker(failures: self.limits.failuresBeforeRest, restMilliseconds: self.limits.rest)
        state = Locked(State(keepsLimits: keepsLimits, breaker: breaker))
    }

    /// The time of the lease clock, in nanoseconds.
    private func now() -> Int64 { database.leases.time * 1_000_000 }

    /// Whether a call would fail immediately, because the circuit breaker is open.
    var isResting: Bool { state.withLock { $0.breaker.reasonToRefuse(now()) != nil } }

    var status: OriginCacheStatus {
        state.withLock { state in
            let now = now()
            var status = state.counts
            status.isResting = state.breaker.reasonToRefuse(now) != nil
            status.restLeft = .nanoseconds(state.breaker.restLeft(now))
            status.failuresInRow = state.breaker.failures
            return status
        }
    }

    // MARK: Calls

    /// Admits a call to the origin, and returns its number.
    /// - Throws: ``OriginFailure/resting(_:reason:)`` if the circuit breaker is open.
    func enter() throws(OriginFailure) -> Int {
        try state.withLock { (state) throws(OriginFailure) in
            if let reason = state.breaker.refusal(now()) {
                state.counts.refused += 1
                throw .resting(name, reason: reason)
            }
            state.counts.calls += 1
            if state.breaker.isOpen { state.probe = state.counts.calls }
            return state.counts.calls
        }
    }

    /// Runs an admitted call.
    /// - Parameters:
    ///   - call: its number.
    ///   - question: the keys to read; nil for writes.
    ///   - deadline: when the caller's own time limit ends, in milliseconds of the monotonic clock; nil if there is no
    ///     limit. If the call is cancelled after this time, it counts as a timeout.
    ///   - late: called when `body` ends after the time limit was reached.
    func run<Value: Sendable>(
        _ call: Int, question: [[UInt8]]? = nil, deadline: Int64? = nil,
        _ body: @escaping @Sendable () async throws -> Value, late: @escaping @Sendable () async -> Void = {}
    ) async -> OriginOutcome<Value> {
        let began = MonotonicClock.milliseconds()
        let body: @Sendable () async throws -> Value = { [hooks, database] in
            try await hooks.around("larder.origin", question == nil ? "write" : "read", database.name, body)
        }
        let end: OriginOutcome<Value>
        if keepsLimits {
            end = .answered(await Result.of(body))
        } else {
            end = await OriginOutcome.run(milliseconds: limits.call, body, late: late) { list(call, $0) }
            state.withLock { _ = $0.ends?.removeValue(forKey: call) }
        }
        switch end {
        case .answered(.success): note(.answered, call, question)
        case .closed: note(.abandoned, call, question)
        case .timedOut: note(.timedOut, call, question)
        case .answered(.failure(let error)):
            let now = MonotonicClock.milliseconds()
            note(Self.ending(error, isLate: now >= min(began + limits.call, deadline ?? .max)), call, question)
        }
        return end
    }

    private func list(_ call: Int, _ end: @escaping @Sendable () -> Void) {
        let isClosed = state.withLock { state in
            state.ends?[call] = end
            return state.ends == nil
        }
        if isClosed { end() }
    }

    /// Ends the waits for all running calls. Origins with limits of their own end their calls themselves.
    func close() {
        let all = state.withLock { $0.ends.take() ?? [:] }
        for end in all.values { end() }
    }

    /// The error of a call that reached its limit.
    var timeout: OriginFailure { .timedOut(name, milliseconds: Int(limits.call)) }

    private static func ending(_ error: any Error, isLate: Bool) -> Ending {
        if Task.isCancelled || error is CancellationError { return isLate ? .timedOut : .abandoned }
        switch error as? OriginFailure {
        case .refused: return .answered
        case .readOnly: return .abandoned
        default: return .failed(error)
        }
    }

    // MARK: Outcomes

    private func note(_ ending: Ending, _ call: Int, _ question: [[UInt8]]?) {
        let word = state.withLock { (state) -> (isAsked: Bool, text: String)? in
            let wasOpen = state.breaker.isOpen
            state.count(ending, call, question, now: now())
            guard state.breaker.isOpen != wasOpen else { return nil }
            guard state.breaker.isOpen else { return (true, "the origin '\(name)' is available again") }
            return (
                false,
                "the origin '\(name)' has failed \(state.breaker.failures) times in a row, and is now asked at most every "
                    + "\(limits.rest) ms; last error: \(state.counts.lastError ?? "")"
            )
        }
        if let word { database.report(word.isAsked ? .info : .warning, word.text) }
    }
}

extension OriginLimiter.State {
    fileprivate mutating func count(_ ending: OriginLimiter.Ending, _ call: Int, _ question: [[UInt8]]?, now: Int64) {
        let isProbe = probe == call
        if isProbe { probe = nil }
        switch ending {
        case .answered:
            counts.lastError = nil
            probe = nil
            failedReads.removeAll()
            breaker.noteSuccess()
        case .abandoned:
            if isProbe { breaker.noteAbandoned() }
        case .timedOut:
            counts.timeouts += 1
            fail("no answer within the time limit", isProbe, isCounted: true, now)
        case .failed(let error):
            fail("\(error)", isProbe, isCounted: isNew(question), now)
        }
    }

    /// Whether this read has not failed since the last success of any call. Only the first failure of a read counts,
    /// because its repeated failures say nothing about other reads.
    private mutating func isNew(_ question: [[UInt8]]?) -> Bool {
        guard let read = question?.hashValue else { return true }
        defer { failedReads[read] = () }
        return failedReads[read] == nil
    }

    private mutating func fail(_ reason: String, _ isProbe: Bool, isCounted: Bool, _ now: Int64) {
        counts.failures += 1
        counts.lastError = reason
        // While the circuit breaker is open, only the probe counts: other calls were sent before it opened.
        guard !keepsLimits, isProbe || !breaker.isOpen else { return }
        if isCounted { breaker.noteFailure(reason, now) } else { breaker.noteAbandoned() }
    }
}

/// How a call to an origin with a time limit ended.
enum OriginOutcome<Value: Sendable>: Sendable {
    case answered(Result<Value, any Error>)
    /// The task of the call was cancelled at the limit, but may ignore that and continue to run.
    case timedOut
    /// The cache was closed. The task may continue to run, as after the limit.
    case closed

    /// Runs `body` in a task of its own, which is cancelled with the caller's task, and when the limit is reached.
    /// - Parameters:
    ///   - milliseconds: the limit.
    ///   - late: called when `body` ends, if the wait was over before; never called if `body` does not end.
    ///   - begun: receives a closure that ends the wait because the cache is closed.
    static func run(
        milliseconds: Int64, _ body: @escaping @Sendable () async throws -> Value,
        late: @escaping @Sendable () async -> Void = {}, begun: (@escaping @Sendable () -> Void) -> Void = { _ in }
    ) async -> Self {
        let outcome = Promise<Self>()
        let work = Task {
            if !outcome.set(.answered(await Result.of(body))) { await late() }
        }
        let timer = Task.delayed(milliseconds: milliseconds) { if outcome.set(.timedOut) { work.cancel() } }
        defer { timer.cancel() }
        begun { if outcome.set(.closed) { work.cancel() } }
        return await withTaskCancellationHandler {
            await outcome.value()
        } onCancel: {
            work.cancel()
        }
    }
}

/// The time limit of an ``OriginCache``'s calls to its origin, and the settings of its circuit breaker. Ignored for
/// origins with limits of their own (``CacheOrigin/keepsLimits``).
///
/// Durations are rounded to milliseconds and clamped to the range from a millisecond to a day.
public struct OriginCacheLimits: Hashable, Sendable {
    /// The time limit of one call, independent of ``FetchOptions/hardTimeout``. A call that takes longer fails with
    /// ``OriginFailure/timedOut(_:milliseconds:)``, and its task is cancelled. The default is ten seconds.
    public var call = Duration.seconds(10)
    /// The circuit breaker opens after this number of failures and timeouts in a row. Repeated failures of the same
    /// read count once, unless they are timeouts. The default is 5; at least 1.
    public var failuresBeforeRest = 5
    /// How long the circuit breaker stays open. Meanwhile calls immediately fail with
    /// ``OriginFailure/resting(_:reason:)``, and reads return stale entries within their grace. Afterwards one call at
    /// a time probes the origin until the origin answers. The default is a second.
    public var rest = Duration.seconds(1)

    /// Creates the default limits.
    public init() {}

    /// The limits in milliseconds, clamped to their ranges.
    var checked: (call: Int64, failuresBeforeRest: Int, rest: Int64) {
        func checked(_ span: Duration) -> Int64 {
            max(1, min(span.roundedMilliseconds ?? (span < .zero ? 1 : .max), 86_400_000))
        }
        return (checked(call), max(1, failuresBeforeRest), checked(rest))
    }
}

/// The state of the circuit breaker of an ``OriginCache``, and counters of its calls, which only grow.
public struct OriginCacheStatus: Hashable, Sendable {
    /// Whether a call would fail immediately, because the circuit breaker is open or another call is probing the
    /// origin. Always false for origins with limits of their own.
    public internal(set) var isResting = false
    /// The time until the next call may probe the origin; zero if a call may probe it now, or is already probing it.
    public internal(set) var restLeft = Duration.zero
    /// The number of failures in a row, as ``OriginCacheLimits/failuresBeforeRest`` counts them.
    public internal(set) var failuresInRow = 0
    /// The number of reads, writes and removals sent to the origin.
    public internal(set) var calls = 0
    /// The number of calls that failed or timed out.
    public internal(set) var failures = 0
    /// The number of calls that timed out.
    public internal(set) var timeouts = 0
    /// The number of calls that failed immediately because the circuit breaker was open. Not included in ``calls``.
    public internal(set) var refused = 0
    /// The failure of the last call; nil if it was answered.
    public internal(set) var lastError: String?
}
