import LarderEngine
import LarderPlatform

/// Lets the calls of a cache to its origin through: each within a limit, and none for a while when the origin has failed
/// some times in a row. An origin that keeps limits itself is only counted.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class OriginLimiter: @unchecked Sendable {
    /// A call that was let in.
    struct Pass: Sendable {
        fileprivate let isProbe: Bool
        fileprivate let number: Int
    }

    /// How a call ended.
    enum Ending {
        case answered
        /// Nothing is known of the origin: the caller has given up.
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
    /// The number of the call that tries the origin; nil if none does.
    private var probe: Int?
    /// Which questions have failed since the last answer, by their hashes.
    private var failedQuestions: Set<Int> = []
    private static let failedQuestionsMax = 1024
    /// What ends the calls that are waited for, by their numbers; nil when closed.
    private var ends: [Int: @Sendable () -> Void]? = [:]

    init(_ origin: some CacheOrigin, _ limits: OriginCacheLimits, _ database: Database) {
        name = origin.name
        keepsLimits = origin.keepsLimits
        self.limits = OriginCacheLimits.Checked(limits)
        self.database = database
        breaker = Breaker(failures: self.limits.failuresBeforeRest, restMilliseconds: self.limits.rest)
    }

    /// By the clock by which leases end, in nanoseconds.
    private func now() -> Int64 { database.leaseTime() * 1_000_000 }

    /// Whether a call would fail at once.
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

    /// - Throws: ``OriginFailure/resting(_:reason:)``: nothing was called.
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

    /// Runs a call that was let in.
    /// - Parameters:
    ///   - question: the keys that are read; nil for writes.
    ///   - patience: how many milliseconds the caller's own limit has left, in which the call counts as one that took too
    ///     long if it is given up then; nil if it has none.
    ///   - late: is called when `body` has ended after its limit.
    func run<Value: Sendable>(
        _ pass: Pass, question: [[UInt8]]? = nil, patience: Int64? = nil,
        _ body: @escaping @Sendable () async throws -> Value, late: @escaping @Sendable () async -> Void = {}
    ) async -> OriginCall<Value>.End {
        let began = MonotonicClock.milliseconds()
        let end: OriginCall<Value>.End
        if keepsLimits {
            do {
                end = .answered(.success(try await body()))
            } catch {
                end = .answered(.failure(error))
            }
        } else {
            end = await OriginCall.run(milliseconds: limits.call, body, late: late) { list(pass, $0) }
            lock.withLock { _ = ends?.removeValue(forKey: pass.number) }
        }
        switch end {
        case .answered(.success): note(.answered, pass, question)
        case .closed: note(.abandoned, pass, question)
        case .timedOut: note(.timedOut, pass, question)
        case .answered(.failure(let error)):
            let spent = MonotonicClock.milliseconds() - began
            note(Self.ending(error, isLate: spent >= min(limits.call, patience ?? .max)), pass, question)
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

    /// Nobody waits for a call any more. Those of origins that keep limits themselves end as these say.
    func close() {
        let all = lock.withLock {
            defer { ends = nil }
            return ends ?? [:]
        }
        for end in all.values { end() }
    }

    /// For a call whose limit is over.
    var timeout: OriginFailure { .timedOut(name, milliseconds: Int(limits.call)) }

    private static func ending(_ error: any Error, isLate: Bool) -> Ending {
        if Task.isCancelled || error is CancellationError { return isLate ? .timedOut : .abandoned }
        switch error as? OriginFailure {
        case .refused: return .answered
        case .readOnly: return .abandoned
        default: return .failed(error)
        }
    }

    // MARK: Their ends

    private func note(_ ending: Ending, _ pass: Pass, _ question: [[UInt8]]?) {
        let word = lock.withLock { () -> (isAsked: Bool, text: String)? in
            let wasOpen = breaker.isOpen
            count(ending, pass, question)
            guard breaker.isOpen != wasOpen else { return nil }
            guard breaker.isOpen else { return (true, "the origin '\(name)' answers again") }
            return (
                false,
                "the origin '\(name)' is not asked for \(limits.rest) ms each time: \(breaker.failures) calls in a row failed, "
                    + "the last one: \(counts.lastError ?? "")"
            )
        }
        if let word { database.reportOrigin(isAsked: word.isAsked, word.text) }
    }

    /// With the lock held.
    private func count(_ ending: Ending, _ pass: Pass, _ question: [[UInt8]]?) {
        let isProbe = pass.isProbe && probe == pass.number
        if isProbe { probe = nil }
        switch ending {
        case .answered:
            counts.lastError = nil
            probe = nil
            failedQuestions = []
            breaker.noteSuccess()
        case .abandoned:
            if isProbe { breaker.noteAbandoned() }
        case .timedOut:
            counts.timeouts += 1
            fail("no answer within its limit", isProbe, isCounted: true)
        case .failed(let error):
            fail("\(error)", isProbe, isCounted: isNew(question))
        }
    }

    /// Whether a question has not failed since the last answer: one that fails again and again says nothing of others.
    private func isNew(_ question: [[UInt8]]?) -> Bool {
        guard let question else { return true }
        if failedQuestions.count >= Self.failedQuestionsMax { failedQuestions = [] }
        return failedQuestions.insert(question.hashValue).inserted
    }

    private func fail(_ reason: String, _ isProbe: Bool, isCounted: Bool) {
        counts.failures += 1
        counts.lastError = reason
        // Calls that were sent before the rest began say nothing of the one that tries the origin.
        guard !keepsLimits, isProbe || !breaker.isOpen else { return }
        if isCounted { breaker.noteFailure(reason, now()) } else { breaker.noteAbandoned() }
    }
}
