import LarderPlatform
import Synchronization

/// How a lease is released without storing a value.
package enum LeaseRelease: Hashable, Sendable {
    /// Another caller may refresh at once.
    case open
    /// The origin has no value. The key is cached as absent for `milliseconds`.
    case absent(milliseconds: Int64)
    /// The origin failed. It is not asked for `milliseconds`; meanwhile stale values are served.
    case failed(milliseconds: Int64)
}

/// A negative result of an origin, remembered until an instant of the monotonic clock, in milliseconds.
package enum OriginRest: Hashable, Sendable {
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
    /// The value being fetched may be older than this write.
    case outdated
    /// The lease's holder stored the refreshed value.
    case refreshed
    /// The lease's holder removed the entry, because the origin has no value.
    case absent(until: Int64)
    /// No effect: the removed entry was not visible.
    case none
}

/// The limits and counts of leases in one larder. Thread-safe.
package final class LeaseContext: Sendable {
    /// The most leases at a time.
    package static let leasesMax = 100_000
    /// The most callers that wait for leases at a time.
    package static let waitersMax = 100_000
    /// The most keys per shard with a remembered negative result, and the most with a remembered refresh duration.
    static let rememberedMax = 4096
    /// The default duration of a lease, in milliseconds.
    package static let standardMilliseconds: Int64 = 30_000
    /// The longest duration of a lease or a back-off: a day, in milliseconds.
    package static let longestMilliseconds: Int64 = 86_400_000

    let time: EngineTime
    /// Called with locks held when a lease was released without a value or the origin backs off. Waiters may then
    /// retry.
    let givenUp: @Sendable (any LeaseOwner, Key) -> Void
    package let leases = Atomic<Int>(0)
    package let waiters = Atomic<Int>(0)
    package let granted = Atomic<Int>(0)
    /// Replies with a stale value.
    package let staleServed = Atomic<Int>(0)
    /// The number of leases that ended without a result: by timeout, or because their holder ended.
    package let lost = Atomic<Int>(0)
    package let failures = Atomic<Int>(0)

    init(time: EngineTime, givenUp: @escaping @Sendable (any LeaseOwner, Key) -> Void) {
        self.time = time
        self.givenUp = givenUp
    }
}

/// A lease holder: a connection, or a program's handle.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`, which is taken after those of shards.
package final class LeaseHolder: @unchecked Sendable {
    private let lock = Lock()
    /// The leases that end with the holder.
    private var held: [UInt64: (owner: any LeaseOwner, key: Key)] = [:]
    /// The number of leases that do not end with the holder.
    private var outlivingCount = 0
    private var isEnded = false
    private let most: Int
    private let limitName: String

    /// - Parameters:
    ///   - most: the maximum number of its leases.
    ///   - limitName: the name of that limit in messages.
    package init(most: Int = LeaseContext.leasesMax, limitName: String = "") {
        self.most = most
        self.limitName = limitName
    }

    deinit { end() }

    var isFull: Bool { lock.withLock { isFullNow } }
    private var isFullNow: Bool { held.count + outlivingCount >= most }

    func fullError(_ key: Key) -> LarderError {
        LarderError(
            .tooManyLeases,
            "this client has reached the limit of \(most) leases (\(limitName)); store or release",
            operation: "fetch", key: key.description)
    }

    /// - Parameter outlives: whether the lease stays valid after the holder has ended.
    /// - Returns: false if the holder has ended, or has reached its limit.
    func add(_ token: UInt64, _ key: Key, _ owner: any LeaseOwner, outlives: Bool) -> Bool {
        lock.withLock {
            if isFullNow { return false }
            if outlives {
                outlivingCount += 1
                return true
            }
            if isEnded { return false }
            held[token] = (owner, key)
            return true
        }
    }

    func remove(_ token: UInt64, outlives: Bool) {
        lock.withLock { if outlives { outlivingCount -= 1 } else { held[token] = nil } }
    }

    /// The most leases that ``end(elsewhere:)`` releases on the calling thread.
    private static let endedAtOnceMax = 64

    /// Releases all leases, and hands each to its longest waiter. Called without any shard's lock.
    /// - Parameter elsewhere: runs longer work on another thread; nil to do all work on the calling thread.
    package func end(elsewhere: ((@escaping @Sendable () -> Void) -> Void)? = nil) {
        let left = lock.withLock {
            defer { held = [:] }
            isEnded = true
            return held
        }
        let giveUp: @Sendable () -> Void = {
            for (token, lease) in left { lease.owner.holderEnded(token, lease.key) }
        }
        if let elsewhere, left.count > Self.endedAtOnceMax { elsewhere(giveUp) } else { giveUp() }
    }
}

/// The database of a lease.
protocol LeaseOwner: AnyObject, Sendable {
    /// The sequence of the last commit unit.
    var lastSequence: UInt64 { get }
    func holderEnded(_ token: UInt64, _ key: Key)
}

/// A caller that waits for another caller's lease to end.
///
/// `@unchecked Sendable`: mutable state is guarded by the shard's lock.
package final class LeaseWaiter: @unchecked Sendable {
    let holder: LeaseHolder
    /// The duration of the lease that the waiter wants. With nil, the lease has the default duration and ends early if
    /// its holder does.
    let leaseMilliseconds: Int64?
    /// Notifies the caller, which then checks again. Called from any thread, with locks held: it must be short, must
    /// not block, and must not call the engine. May be called more than once.
    private let wake: @Sendable () -> Void
    /// The lease that the waiter was granted while it waited.
    var token: UInt64?
    var isListed = false
    /// Whether the key was written during the wait, so that its value is newer than the lookup.
    var sawWrite = false
    /// The waiter's number in the queue, if it is in one.
    var turn: UInt64 = 0
    /// The end of the lease as last returned to the caller, which then checks again.
    var leaseEnds = Int64.max

    package init(_ holder: LeaseHolder, leaseMilliseconds: Int64?, wake: @escaping @Sendable () -> Void) {
        self.holder = holder
        self.leaseMilliseconds = leaseMilliseconds
        self.wake = wake
    }

    func wakeUp() { wake() }
}

/// The FIFO queue of callers that wait for one key. Removing a waiter is O(1): its place is skipped later.
struct WaiterQueue {
    /// Each waiter with the number that it had when it was added.
    private var waiters: [(waiter: LeaseWaiter, turn: UInt64)] = []
    private var lastTurn: UInt64 = 0
    /// The waiters before it have left.
    private var first = 0
    /// The number of callers still waiting.
    private var count = 0

    var isEmpty: Bool { count == 0 }
    /// The longest waiter.
    var longest: LeaseWaiter? { all.first { _ in true } }
    var all: some Sequence<LeaseWaiter> {
        waiters[first...].lazy.filter { $0.waiter.isListed && $0.waiter.turn == $0.turn }.map(\.waiter)
    }

    mutating func append(_ waiter: LeaseWaiter) {
        lastTurn += 1
        waiter.turn = lastTurn
        waiters.append((waiter, lastTurn))
        count += 1
    }

    mutating func popFirst() -> LeaseWaiter? {
        while first < waiters.count {
            let (waiter, turn) = waiters[first]
            first += 1
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
        waiters = waiters[first...].filter { $0.waiter.isListed && $0.waiter.turn == $0.turn }
        first = 0
    }
}
