import LarderEngine
import LarderPlatform

/// Limits the calls of a cache to its origin: a time limit for each call, and a circuit breaker. For origins with
/// limits of their own it only counts the calls.
///
/// Thread-safe. `@unchecked Sendable`: all mutable state is guarded by `lock`.
final class OriginLimiter: @unchecked Sendable {
    /// The permission for one call to the origin.
    struct Pass: Sendable {
        fileprivate let isProbe: Bool
        fileprivate let number: Int
    }

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
    let limits: OriginCacheLimits.Checked
    private let database: Database
    private let lock = Lock()
    private var breaker: Breaker
    private var counts = OriginCacheStatus()
    /// The number of the call that probes the origin; nil if no call does.
    private var probe: Int?
    /// The hashes of the reads that have failed since the last success.
    private var failedReads = BoundedTable<Int, Void>(most: 1024)
    /// Closures that end the waiting calls, by call number; nil when closed.
    private var ends: [Int: @Sendable () -> Void]? = [:]

    init(_ origin: some CacheOrigin, _ limits: OriginCacheLimits, _ database: Database) {
        name = origin.name
        keepsLimits = origin.keepsLimits
        self.limits = OriginCacheLimits.Checked(limits)
        self.database = database
        breaker = Breaker(failures: self.limits.failuresBeforeRest, restMilliseconds: self.limits.rest)
    }

    /// The time of the lease clock, in nanoseconds.
    private func now() -> Int64 { database.leases.time * 1_000_000 }

    /// Whether a call would fail immediately, because the circuit breaker is open.
    var isResting: Bool { lock.withLock { breaker.reasonToRefuse(now()) != nil } }

    var status: OriginCacheStatus {
        lock.withLock {
            let now = now()
            var status = counts
            status.isResting = breaker.reasonToRefuse(now) != nil
            status.restLeft = .nanoseconds(breaker.restLeft(now))
            status.failuresInRow = breaker.failures
            return status
        }
    }

    // MARK: Calls

    /// Admits a call to the origin.
    /// - Throws: ``OriginFailure/resting(_:reason:)`` if the circuit breaker is open.
    func enter() throws(OriginFailure) -> Pass {
        let entered = lock.withLock { () -> Result<Pass, OriginFailure> in
            if let reason = breaker.refusal(now()) {
                counts.refused += 1
                return .failure(.resting(name, reason: reason))
            }
            counts.calls += 1
            if breaker.isOpen { probe = counts.calls }
            return .success(Pass(isProbe: breaker.isOpen, number: counts.calls))
        }
        return try entered.get()
    }

    /// Runs an admitted call.
    /// - Parameters:
    ///   - question: the keys to read; nil for writes.
    ///   - deadline: when the caller's own time limit ends, in milliseconds of the monotonic clock; nil if there is no
    ///     limit. If the call is cancelled after this time, it counts as a timeout.
    ///   - late: called when `body` ends after the time limit was reached.
    func run<Value: Sendable>(
        _ pass: Pass, question: [[UInt8]]? = nil, deadline: Int64? = nil,
        _ body: @escaping @Sendable () async throws -> Value, late: @escaping @Sendable () async -> Void = {}
    ) async -> OriginOutcome<Value> {
        let began = MonotonicClock.milliseconds()
        let end: OriginOutcome<Value>
        if keepsLimits {
            do {
                end = .answered(.success(try await body()))
            } catch {
                end = .answered(.failure(error))
            }
        } else {
            end = await OriginOutcome.run(milliseconds: limits.call, body, late: late) { list(pass, $0) }
            lock.withLock { _ = ends?.removeValue(forKey: pass.number) }
        }
        switch end {
        case .answered(.success): note(.answered, pass, question)
        case .closed: note(.abandoned, pass, question)
        case .timedOut: note(.timedOut, pass, question)
        case .answered(.failure(let error)):
            let now = MonotonicClock.milliseconds()
            note(Self.ending(error, isLate: now >= min(began + limits.call, deadline ?? .max)), pass, question)
        }
        return end
    }

    private func list(_ pass: Pass, _ end: @escaping @Sendable () -> Void) {
        let isClosed = lock.withLock {
            ends?[pass.number] = end
            return ends == nil
        }
        if isClosed { end() }
    }

    /// Ends the waits for all running calls. Origins with limits of their own end their calls themselves.
    func close() {
        let all = lock.withLock {
            defer { ends = nil }
            return ends ?? [:]
        }
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

    private func note(_ ending: Ending, _ pass: Pass, _ question: [[UInt8]]?) {
        let word = lock.withLock { () -> (isAsked: Bool, text: String)? in
            let wasOpen = breaker.isOpen
            count(ending, pass, question)
            guard breaker.isOpen != wasOpen else { return nil }
            guard breaker.isOpen else { return (true, "the origin '\(name)' is available again") }
            return (
                false,
                "the origin '\(name)' has failed \(breaker.failures) times in a row, and is now asked at most every "
                    + "\(limits.rest) ms; last error: \(counts.lastError ?? "")"
            )
        }
        if let word { database.report(word.isAsked ? .info : .warning, word.text) }
    }

    /// Called with `lock` held.
    private func count(_ ending: Ending, _ pass: Pass, _ question: [[UInt8]]?) {
        let isProbe = pass.isProbe && probe == pass.number
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
            fail("no answer within the time limit", isProbe, isCounted: true)
        case .failed(let error):
            fail("\(error)", isProbe, isCounted: isNew(question))
        }
    }

    /// Whether this read has not failed since the last success of any call. Only the first failure of a read counts,
    /// because its repeated failures say nothing about other reads.
    private func isNew(_ question: [[UInt8]]?) -> Bool {
        guard let read = question?.hashValue else { return true }
        defer { failedReads[read] = () }
        return failedReads[read] == nil
    }

    private func fail(_ reason: String, _ isProbe: Bool, isCounted: Bool) {
        counts.failures += 1
        counts.lastError = reason
        // While the circuit breaker is open, only the probe counts: other calls were sent before it opened.
        guard !keepsLimits, isProbe || !breaker.isOpen else { return }
        if isCounted { breaker.noteFailure(reason, now()) } else { breaker.noteAbandoned() }
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
            let result: Result<Value, any Error>
            do {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            if !outcome.set(.answered(result)) { await late() }
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

    /// The clamped values, in milliseconds.
    struct Checked: Sendable {
        let call: Int64
        let failuresBeforeRest: Int
        let rest: Int64

        init(_ limits: OriginCacheLimits) {
            call = Self.checked(limits.call)
            failuresBeforeRest = max(1, limits.failuresBeforeRest)
            rest = Self.checked(limits.rest)
        }

        private static func checked(_ span: Duration) -> Int64 {
            max(1, min(span.roundedMilliseconds ?? (span < .zero ? 1 : .max), 86_400_000))
        }
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
