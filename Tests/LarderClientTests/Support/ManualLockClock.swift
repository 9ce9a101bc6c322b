import LarderTestSupport

@testable import LarderClient

/// A clock for locks that a test advances.
///
/// Thread-safe: mutable state is guarded.
final class ManualLockClock: Sendable {
    private struct State {
        var now: Int64 = 0
        var sleepers: [Int: (until: Int64, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var cancelled: Set<Int> = []
        var count = 0
    }

    private let state = Guarded(State())

    var clock: LockClock {
        LockClock(now: { [self] in state.value.now }, sleep: { [self] in try await sleep($0) })
    }

    /// The remaining milliseconds of each sleeper. A running renewal is a sleeper too: it waits for its time limit.
    var rests: [Int64] { state.with { state in state.sleepers.values.map { $0.until - state.now } } }

    /// Advances by the given number of milliseconds, and wakes the sleepers that are due.
    func advance(by milliseconds: Int64) {
        let woken = state.with { state in
            state.now += milliseconds
            let now = state.now
            let woken = state.sleepers.filter { $0.value.until <= now }
            for number in woken.keys { state.sleepers[number] = nil }
            return woken.values.map(\.continuation)
        }
        for continuation in woken { continuation.resume() }
    }

    private func sleep(_ milliseconds: Int64) async throws {
        let number = state.with { state in
            state.count += 1
            return state.count
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.with { state in
                    if state.cancelled.remove(number) != nil { return true }
                    state.sleepers[number] = (state.now + milliseconds, continuation)
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.with { state in
                let sleeper = state.sleepers.removeValue(forKey: number)
                if sleeper == nil { state.cancelled.insert(number) }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
