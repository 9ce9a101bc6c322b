import LarderPlatform
import Synchronization

/// The ways to give up a lease without storing a value.
package enum LeaseRelease: Hashable, Sendable {
    /// Somebody else may refresh at once.
    case open
    /// The origin has no value: nobody asks it again for so many milliseconds.
    case absent(milliseconds: Int64)
    /// The origin failed: nobody asks it again for so many milliseconds, and what is stale is served meanwhile.
    case failed(milliseconds: Int64)
}

/// What an origin's answer without a value means until an instant of the monotonic clock, in milliseconds.
package enum OriginRest: Hashable, Sendable {
    case absent(until: Int64)
    case failed(until: Int64)

    package var until: Int64 {
        switch self {
        case .absent(let until), .failed(let until): until
        }
    }
}

/// What a change of a key means for its lease.
package enum LeaseEffect: Hashable, Sendable {
    /// What is being fetched is older than the change.
    case outdated
    /// The change is the refreshed value, stored by the lease's holder.
    case refreshed
    /// The change is the removal of what the origin does not have any more, by the lease's holder.
    case absent(until: Int64)
    /// None: nobody could see what was removed.
    case none
}

/// The limits and counts of leases in one larder. Thread-safe.
package final class LeaseContext: Sendable {
    /// The most leases at a time.
    package static let leasesMax = 100_000
    /// The most callers who wait for somebody else's lease, at a time.
    package static let waitersMax = 100_000
    /// The most keys of a shard whose rests, or times of refreshing, are remembered.
    static let rememberedMax = 4096
    /// For how long a lease is good if the caller does not say, in milliseconds.
    package static let standardMilliseconds: Int64 = 30_000
    /// The longest time for a lease or a rest: a day, in milliseconds.
    package static let longestMilliseconds: Int64 = 86_400_000

    let time: EngineTime
    /// Called when nobody refreshes a key any more that somebody did, or when its origin rests: who was told to wait
    /// may ask again. With locks held.
    let givenUp: @Sendable (any LeaseOwner, Key) -> Void
    package let leases = Atomic<Int>(0)
    package let waiters = Atomic<Int>(0)
    package let granted = Atomic<Int>(0)
    /// Answers with a stale value.
    package let staleServed = Atomic<Int>(0)
    /// Leases that ended without a value or a word: by their time, or with their holder.
    package let lost = Atomic<Int>(0)
    package let failures = Atomic<Int>(0)

    init(time: EngineTime, givenUp: @escaping @Sendable (any LeaseOwner, Key) -> Void) {
        self.time = time
        self.givenUp = givenUp
    }
}

/// One who may hold leases: a connection, or a program's handle.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`. The lock is taken behind those of shards.
package final class LeaseHolder: @unchecked Sendable {
    private let lock = Lock()
    /// Those that end with the holder.
    private var held: [UInt64: (owner: any LeaseOwner, key: Key)] = [:]
    /// How many do not.
    private var outlivingCount = 0
    private var isEnded = false
    private let most: Int
    private let limitName: String

    /// - Parameters:
    ///   - most: how many leases it may have at a time.
    ///   - limitName: how a message names that limit.
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
            "one client may have \(most) leases (\(limitName)), and this one has them; store or release",
            operation: "fetch", key: key.description)
    }

    /// - Parameter outlives: whether the lease continues when the holder is gone.
    /// - Returns: false if the holder is gone, or has as many as it may.
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

    /// The most leases that ``end(elsewhere:)`` gives up itself.
    private static let endedAtOnceMax = 64

    /// Gives up all leases, to who waits for them. Called without any shard's lock.
    /// - Parameter elsewhere: runs what takes longer on another thread; nil to take the time.
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

/// A caller who waits for somebody else's lease to end.
///
/// The shard's lock guards what changes; that is the proof for `@unchecked Sendable`.
package final class LeaseWaiter: @unchecked Sendable {
    let holder: LeaseHolder
    /// How long a lease of the waiter is good; nil: for the standard time, and as long as its holder exists.
    let leaseMilliseconds: Int64?
    /// Called from any thread, with locks held: it must be short, must not block, and must not call the engine. The
    /// caller then asks again. It may be called more than once.
    private let wake: @Sendable () -> Void
    /// The lease that the waiter got while it waited.
    var token: UInt64?
    var isListed = false
    /// Whether the key was written while the waiter waited: what is stored is newer than its question.
    var sawWrite = false
    /// Its place in the queue, if it is listed.
    var turn: UInt64 = 0
    /// When the lease ends that the caller was last told of: it asks again then.
    var leaseEnds = Int64.max

    package init(_ holder: LeaseHolder, leaseMilliseconds: Int64?, wake: @escaping @Sendable () -> Void) {
        self.holder = holder
        self.leaseMilliseconds = leaseMilliseconds
        self.wake = wake
    }

    func wakeUp() { wake() }
}

/// The callers who wait for one key, the longest wait first. Who leaves costs nothing, and is passed over.
struct WaiterQueue {
    /// With the turn that each had when it came.
    private var waiters: [(waiter: LeaseWaiter, turn: UInt64)] = []
    private var lastTurn: UInt64 = 0
    /// Those before it have left.
    private var first = 0
    /// How many still wait.
    private var count = 0

    var isEmpty: Bool { count == 0 }
    /// Who has waited longest.
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

    /// One who waited is not listed any more.
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
