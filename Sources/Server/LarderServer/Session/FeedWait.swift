import LarderEngine
import LarderPlatform

/// A CHANGES that waits for a change. A value; the session's owner uses it.
struct FeedWait {
    /// What a command waits with, besides its words.
    struct Means {
        /// The monotonic clock, in milliseconds.
        let clock: Int64
        /// Has the command run again; nil where no command waits any more.
        let wakeUp: (@Sendable () -> Void)?
        /// Runs what would hold up the loop.
        let elsewhere: (@escaping @Sendable () -> Void) -> Void
    }

    private struct Waiting {
        let database: Database
        /// In milliseconds of the monotonic clock.
        let until: Int64
        let isWoken: WaitingFetch.Flag
        /// Where the feed is begun; nil once that is known.
        let beginning: Beginning?
        var waiter: FeedWaiter?
    }

    private var waiting: Waiting?
    /// Where a command that began at the end reads on.
    private(set) var end: FeedPosition?

    /// Whether a command waits, and nobody has woken it.
    var isWaiting: Bool { waiting.map { !$0.isWoken.isSet } ?? false }

    /// Waits, if there is nothing to answer.
    /// - Parameter milliseconds: nil for not at all, 0 for ever.
    /// - Returns: until when the command waits, by the monotonic clock; nil if it answers now, from ``end`` if there is one.
    mutating func mustWait(
        behind position: FeedPosition, _ prefix: [UInt8], milliseconds: Int64?, _ database: Database, _ means: Means
    ) -> Int64? {
        guard let waiting else {
            end = nil
            guard let milliseconds else { return nil }
            return begin(
                behind: position, prefix, until: means.clock + (milliseconds > 0 ? milliseconds : Self.century),
                database,
                means)
        }
        if means.wakeUp != nil, !waiting.isWoken.isSet, means.clock < waiting.until { return waiting.until }
        let (until, begun) = (waiting.until, waiting.beginning?.position)
        stop()
        guard let begun else { return nil }
        end = begun
        return wait(behind: begun, prefix, until: until, database, means)
    }

    private static let century: Int64 = 100 * 365 * 86_400_000

    private mutating func begin(
        behind position: FeedPosition, _ prefix: [UInt8], until: Int64, _ database: Database, _ means: Means
    ) -> Int64? {
        guard position.start == .end, let wakeUp = means.wakeUp else {
            return wait(behind: position, prefix, until: until, database, means)
        }
        // The end of what the database has at this moment; its changes may not be remembered yet.
        let (beginning, isWoken) = (Beginning(), WaitingFetch.Flag())
        waiting = Waiting(database: database, until: until, isWoken: isWoken, beginning: beginning)
        means.elsewhere {
            beginning.set((try? database.changes(since: .end, FeedOptions()))?.position)
            isWoken.set()
            wakeUp()
        }
        return until
    }

    private mutating func wait(
        behind position: FeedPosition, _ prefix: [UInt8], until: Int64, _ database: Database, _ means: Means
    ) -> Int64? {
        guard means.clock < until, position.pass == nil, let wakeUp = means.wakeUp,
            case .behind(let feed?, let place) = position.start
        else { return nil }
        let isWoken = WaitingFetch.Flag()
        let waiter = FeedWaiter(prefix: prefix) {
            isWoken.set()
            wakeUp()
        }
        guard database.wait(waiter, feed: feed, behind: place) else { return nil }
        waiting = Waiting(database: database, until: until, isWoken: isWoken, beginning: nil, waiter: waiter)
        return until
    }

    /// Nothing waits any more.
    mutating func stop() {
        guard let waiting else { return }
        if let waiter = waiting.waiter { waiting.database.stopWaiting(waiter) }
        self.waiting = nil
    }
}

/// The end of a feed, once that is known.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the value is read and written with the lock held.
private final class Beginning: @unchecked Sendable {
    private let lock = Lock()
    private var value: FeedPosition?

    var position: FeedPosition? { lock.withLock { value } }
    func set(_ position: FeedPosition?) { lock.withLock { value = position } }
}
