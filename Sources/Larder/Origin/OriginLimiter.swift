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
