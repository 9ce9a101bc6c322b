import LarderEngine

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
