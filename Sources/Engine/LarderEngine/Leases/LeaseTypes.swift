import LarderPlatform
import Synchronization

package enum LeaseReleaseResult: Sendable {
    case done
    /// The lease is no longer valid. Nothing was done.
    case lost
    /// There was no value to renew; the lease was released.
    case nothingStored
}

/// A remembered negative result of an origin for one key: the origin had no value, or the fetch failed. It ends at an
/// instant of the monotonic clock, in milliseconds.
package enum NegativeResult: Hashable, Sendable {
    case absent(until: Int64)
    case failed(until: Int64)

    package var until: Int64 {
        switch self {
        case .absent(let until), .failed(let until): until
        }
    }
}

/// The effect of a write on the key's lease.
package enum LeaseEffect: Hashable, Sendable {
    /// The lease ends, because the value being fetched may be older than this write.
    case outdated
    /// The lease's holder stored the refreshed value.
    case refreshed
    /// The lease's holder removed the entry, because the origin has no value.
    case absent(until: Int64)
    /// No effect on the lease, because readers could not see the removed entry.
    case none
}

/// The limits and counts of leases in one larder. Thread-safe.
package final class LeaseContext: Sendable {
    /// The maximum number of leases at the same time.
    package static let leasesMax = 100_000
    /// The maximum number of callers that wait for leases at the same time.
    package static let waitersMax = 100_000
    /// The maximum number of negative results, and of refresh durations, that a shard remembers.
    static let rememberedMax = 4096
    /// The default duration of a lease, in milliseconds.
    package static let standardMilliseconds: Int64 = 30_000
    /// The longest duration of a lease or a back-off: a day, in milliseconds.
    package static let longestMilliseconds: Int64 = 86_400_000

    let time: EngineTime
    /// Notifies observers that a key can be fetched again. Called, with locks held, when the key's lease has ended
    /// without a value and was not granted to a waiter.
    let givenUp: @Sendable (any DatabaseIdentity, Key) -> Void
    package let leases = Atomic<Int>(0)
    package let waiters = Atomic<Int>(0)
    package let granted = Atomic<Int>(0)
    /// The number of replies with a stale value.
    package let staleServed = Atomic<Int>(0)
    /// The number of leases that ended without a result, because they timed out or their holder ended.
    package let lost = Atomic<Int>(0)
    package let failures = Atomic<Int>(0)

    init(time: EngineTime, givenUp: @escaping @Sendable (any DatabaseIdentity, Key) -> Void) {
        (self.time, self.givenUp) = (time, givenUp)
    }
}

/// A holder of leases: a connection, or a program's handle.
///
/// Thread-safe. Lock order: shard locks, `state`.
package final class LeaseHolder: Sendable {
    private struct State {
        /// What ends the leases that end with the holder, by the tokens of the leases.
        var held: [UInt64: @Sendable () -> Void] = [:]
        /// The number of leases that outlive their holder.
        var outlivingCount = 0
        var isEnded = false

        var count: Int { held.count + outlivingCount }
    }

    private let state = Locked(State())
    private let most: Int
    private let limitName: String

    /// - Parameters:
    ///   - most: the maximum number of leases of this holder.
    ///   - limitName: the name of this limit in error messages.
    package init(most: Int = LeaseContext.leasesMax, limitName: String = "") {
        (self.most, self.limitName) = (most, limitName)
    }

    deinit { end() }

    var isFull: Bool { state.withLock { $0.count >= most } }

    func fullError(_ key: Key) -> LarderError {
        LarderError(
            .tooManyLeases,
            "this client has reached the limit of \(most) leases (\(limitName)); store values, or release leases",
            operation: "fetch", key: key.description)
    }

    /// - Parameters:
    ///   - outlives: whether the lease stays valid after the holder has ended.
    ///   - end: ends the lease. Called without locks.
    /// - Returns: false if the holder has ended, or has reached its limit.
    func add(_ token: UInt64, outlives: Bool, end: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            if state.count >= most { return false }
            if outlives {
                state.outlivingCount += 1
                return true
            }
            if state.isEnded { return false }
            state.held[token] = end
            return true
        }
    }

    func remove(_ token: UInt64, outlives: Bool) {
        state.withLock { if outlives { $0.outlivingCount -= 1 } else { $0.held[token] = nil } }
    }

    /// The maximum number of leases that ``end(elsewhere:)`` releases on the calling thread.
    private static let endedAtOnceMax = 64

    /// Marks the holder as ended, and ends its leases except those that outlive it. Grants each key's lease to the
    /// caller that has waited longest. Called without any shard's lock held.
    /// - Parameter elsewhere: called to run the work on another thread if there are many leases; nil to do all work on
    ///   the calling thread.
    package func end(elsewhere: ((@escaping @Sendable () -> Void) -> Void)? = nil) {
        let left = state.withLock { state in
            defer { state.held = [:] }
            state.isEnded = true
            return state.held
        }
        let giveUp: @Sendable () -> Void = { for end in left.values { end() } }
        if let elsewhere, left.count > Self.endedAtOnceMax { elsewhere(giveUp) } else { giveUp() }
    }
}

/// A caller that waits for another caller's lease to end.
///
/// `@unchecked Sendable`: the shard's lock guards the mutable state.
package final class LeaseWaiter: @unchecked Sendable {
    let holder: LeaseHolder
    /// The duration, in milliseconds, of the lease that the waiter wants. If nil, the lease has the default duration,
    /// and ends earlier if its holder ends.
    let leaseMilliseconds: Int64?
    /// Wakes the caller, which then checks the key again. Called from any thread, with locks held: it must be short,
    /// must not block, and must not call the engine. May be called more than once.
    private let wake: @Sendable () -> Void
    /// The token of the lease that the waiter was granted while it waited; nil if there is none.
    var token: UInt64?
    var isListed = false
    /// Whether the key was written while the caller waited. Then its value is newer than the caller's request.
    var sawWrite = false
    /// The waiter's number in the queue; see ``WaiterQueue``.
    var turn: UInt64 = 0
    /// When the caller checks again, on the monotonic clock in milliseconds: the end of the lease for which it waits.
    var leaseEnds = Int64.max

    package init(_ holder: LeaseHolder, leaseMilliseconds: Int64?, wake: @escaping @Sendable () -> Void) {
        (self.holder, self.leaseMilliseconds, self.wake) = (holder, leaseMilliseconds, wake)
    }

    func wakeUp() { wake() }
}

/// The FIFO queue of callers that wait for one key. Removing a waiter takes constant time: its element stays in the
/// queue, and is skipped later.
struct WaiterQueue {
    /// The waiters in the order of arrival, each with the number that it had when it was added. The elements of waiters
    /// that have left stay until ``compact()``.
    private var waiters = Deque<(waiter: LeaseWaiter, turn: UInt64)>()
    private var lastTurn: UInt64 = 0
    /// The number of callers still waiting.
    private var count = 0

    var isEmpty: Bool { count == 0 }
    /// The caller that has waited longest.
    var longest: LeaseWaiter? { all.first { _ in true } }
    var all: some Sequence<LeaseWaiter> {
        waiters.lazy.filter { $0.waiter.isListed && $0.waiter.turn == $0.turn }.map(\.waiter)
    }

    mutating func append(_ waiter: LeaseWaiter) {
        lastTurn += 1
        waiter.turn = lastTurn
        waiters.append((waiter, lastTurn))
        count += 1
    }

    mutating func popFirst() -> LeaseWaiter? {
        while let (waiter, turn) = waiters.popFirst() {
            guard waiter.isListed, waiter.turn == turn else { continue }
            count -= 1
            compact()
            return waiter
        }
        return nil
    }

    /// Records that a waiter has left.
    mutating func noteRemoved() {
        count -= 1
        compact()
    }

    private mutating func compact() {
        guard waiters.count > 16, count < waiters.count / 2 else { return }
        waiters.removeAll { !$0.waiter.isListed || $0.waiter.turn != $0.turn }
    }
}
