import LarderEngine
import LarderPlatform
import LarderRESP

/// The waits of a connection's current command, except for those for an origin, and how the command is woken. A value
/// type, owned by its session.
struct Waits {
    var fetching = Fetching()
    /// The wait of a CHANGES command.
    var feed = FeedWait()
    /// The reply that another thread will set, if the current command waits for one; otherwise nil.
    var reply: Awaited<Result<RESPValue, CommandError>>?
    /// Makes the loop run a waiting command again. Thread-safe; nil for a session without a connection.
    var wakeUp: (@Sendable () -> Void)?
    /// Runs short work on another thread, because it would block the loop; nil for a session without a connection.
    var runElsewhere: ((@escaping @Sendable () -> Void) -> Void)?

    /// Whether a command waits and has not been woken.
    var areOpen: Bool {
        if let reply { return reply.value == nil }
        return fetching.waiting.map { $0.news.value == nil } ?? feed.isWaiting
    }

    /// Ends the waits of FETCH and CHANGES, and the connection's leases. Called when the connection is closed or reset.
    mutating func end() {
        fetching.end(elsewhere: runElsewhere)
        feed.stop()
    }
}

/// A value that another thread will deliver to a waiting command. The command's session owns it; any thread may set it.
final class Awaited<Value: Sendable>: Sendable {
    private let current = Locked<Value?>(nil)
    private let wakeUp: (@Sendable () -> Void)?

    /// - Parameter wakeUp: makes the event loop run the command again; called when the value is set.
    init(wakeUp: (@Sendable () -> Void)?) { self.wakeUp = wakeUp }

    /// The value; nil until it is set.
    var value: Value? { current.withLock { $0 } }

    func set(_ value: Value) {
        current.withLock { $0 = value }
        wakeUp?()
    }

    /// Removes the value, so that the command waits for another one.
    func clear() { current.withLock { $0 = nil } }
}

/// The leases of a connection, and its waiting FETCH command. A lease is the exclusive right to compute a missing
/// value. A value type, used only by the session's owner.
struct Fetching {
    var waiting: Waiting?

    /// A FETCH command that waits while another client has the lease to compute the value.
    struct Waiting {
        let request: FetchRequest
        let database: Database
        /// When the wait ends, in milliseconds of the monotonic clock.
        let until: Int64
        /// Set when the command must run again.
        let news: Awaited<Bool>
    }

    /// The connection's leases; nil before its first FETCH.
    private var leases: LeaseHolder?

    /// Returns the holder of the connection's leases, and creates it if there is none.
    /// - Parameter most: the maximum number of leases that the connection may have.
    mutating func holder(most: Int) -> LeaseHolder {
        if let leases { return leases }
        let holder = LeaseHolder(most: most, limitName: "--max-leases")
        leases = holder
        return holder
    }

    /// Releases the leases, so that waiting clients can get them. Called when the connection is closed or reset.
    /// Releases many leases on another thread, so that other connections are not delayed.
    mutating func end(elsewhere: ((@escaping @Sendable () -> Void) -> Void)?) {
        if let waiting { waiting.database.leases.stopWaiting(waiting.request) }
        waiting = nil
        leases?.end(elsewhere: elsewhere)
        leases = nil
    }
}

/// The wait of a CHANGES command for the next change. A value type, used only by the session's owner.
struct FeedWait {
    private struct Waiting {
        let database: Database
        /// When the wait ends, in milliseconds of the monotonic clock.
        let until: Int64
        /// Set when the command must run again. The value is nil if there is a change. If the command has waited until
        /// the end of the feed was determined, the value is this end.
        let news: Awaited<FeedPosition?>
        var waiter: FeedWaiter?
    }

    private var waiting: Waiting?
    /// For a command that reads from the end of the feed, the position of the end when the command began; nil if the
    /// client sent a position.
    private(set) var end: FeedPosition?

    /// Whether a command waits and has not been woken.
    var isWaiting: Bool { waiting.map { $0.news.value == nil } ?? false }

    /// Checks whether the command must wait, because there are no changes to return.
    /// - Parameters:
    ///   - milliseconds: the maximum wait; 0 for no limit, nil for no wait.
    ///   - clock: the current time of the monotonic clock, in milliseconds.
    ///   - wakeUp: makes the event loop run the command again; nil if the command must not wait.
    ///   - elsewhere: runs work on another thread, because the work would block the event loop.
    /// - Returns: when the wait ends, in milliseconds of the monotonic clock; nil if the command must reply now. The
    ///   reply starts at ``end`` if that is set, otherwise at `position`.
    mutating func mustWait(
        behind position: FeedPosition, _ prefix: [UInt8], milliseconds: Int64?, _ database: Database, clock: Int64,
        wakeUp: (@Sendable () -> Void)?, elsewhere: (@escaping @Sendable () -> Void) -> Void
    ) -> Int64? {
        if let waiting {
            if wakeUp != nil, waiting.news.value == nil, clock < waiting.until { return waiting.until }
            let begun: FeedPosition? = waiting.news.value ?? nil
            stop()
            guard let begun else { return nil }
            end = begun
            return wait(behind: begun, prefix, until: waiting.until, database, clock, wakeUp)
        }
        end = nil
        guard let milliseconds else { return nil }
        let until = clock + (milliseconds > 0 ? milliseconds : Self.century)
        guard position.start == .end, let wakeUp else {
            return wait(behind: position, prefix, until: until, database, clock, wakeUp)
        }
        // Determine the end of the feed on another thread, because recent changes may not be in the change log yet.
        let news = Awaited<FeedPosition?>(wakeUp: wakeUp)
        waiting = Waiting(database: database, until: until, news: news)
        elsewhere { news.set((try? database.feed.step(since: .end, FeedOptions()))?.position) }
        return until
    }

    private static let century: Int64 = 100 * 365 * 86_400_000

    private mutating func wait(
        behind position: FeedPosition, _ prefix: [UInt8], until: Int64, _ database: Database, _ clock: Int64,
        _ wakeUp: (@Sendable () -> Void)?
    ) -> Int64? {
        guard clock < until, position.pass == nil, let wakeUp, case .behind(let feed?, let place) = position.start
        else { return nil }
        let news = Awaited<FeedPosition?>(wakeUp: wakeUp)
        let waiter = FeedWaiter(prefix: prefix) { news.set(nil) }
        guard database.feed.wait(waiter, feed: feed, behind: place) else { return nil }
        waiting = Waiting(database: database, until: until, news: news, waiter: waiter)
        return until
    }

    /// Ends the wait. Has no effect if no command waits.
    mutating func stop() {
        guard let waiting else { return }
        if let waiter = waiting.waiter { waiting.database.feed.stopWaiting(waiter) }
        self.waiting = nil
    }
}
