import LarderEngine
import LarderPlatform

/// The wait of a CHANGES command for the next change. A value type, used only by the session's owner.
struct FeedWait {
    /// The clock and the callbacks of a waiting command.
    struct Means {
        /// The current time of the monotonic clock, in milliseconds.
        let clock: Int64
        /// Makes the event loop run the command again; nil if the command must not wait.
        let wakeUp: (@Sendable () -> Void)?
        /// Runs work on another thread, because it would block the loop.
        let elsewhere: (@escaping @Sendable () -> Void) -> Void
    }

    private struct Waiting {
        let database: Database
        /// The end of the wait, in milliseconds of the monotonic clock.
        let until: Int64
        let isWoken: WaitingFetch.Flag
        /// Receives the end of the feed, if the wait begins there; nil once that position is known.
        let beginning: Beginning?
        var waiter: FeedWaiter?
    }

    private var waiting: Waiting?
    /// The end of the feed at the start of the command, from which the command reads; nil if the client gave a
    /// position.
    private(set) var end: FeedPosition?

    /// Whether a command waits and has not been woken.
    var isWaiting: Bool { waiting.map { !$0.isWoken.isSet } ?? false }

    /// Decides whether the command must wait because there are no changes to return.
    /// - Parameter milliseconds: the longest wait; nil to not wait, 0 for no limit.
    /// - Returns: the time at which the wait ends, in milliseconds of the monotonic clock; nil if the command must
    ///   reply now. If ``end`` is set, the reply starts there.
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
        // Determine the end of the feed on another thread, because recent changes may not be in the change log yet.
        let (beginning, isWoken) = (Beginning(), WaitingFetch.Flag())
        waiting = Waiting(database: database, until: until, isWoken: isWoken, beginning: beginning)
        means.elsewhere {
            beginning.set((try? database.feed.step(since: .end, FeedOptions()))?.position)
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
        guard database.feed.wait(waiter, feed: feed, behind: place) else { return nil }
        waiting = Waiting(database: database, until: until, isWoken: isWoken, beginning: nil, waiter: waiter)
        return until
    }

    /// Ends the wait. Has no effect if no command waits.
    mutating func stop() {
        guard let waiting else { return }
        if let waiter = waiting.waiter { waiting.database.feed.stopWaiting(waiter) }
        self.waiting = nil
    }
}

/// The position of a feed's end, which another thread determines.
///
/// `@unchecked Sendable`: the value is guarded by `lock`.
private final class Beginning: @unchecked Sendable {
    private let lock = Lock()
    private var value: FeedPosition?

    var position: FeedPosition? { lock.withLock { value } }
    func set(_ position: FeedPosition?) { lock.withLock { value = position } }
}
