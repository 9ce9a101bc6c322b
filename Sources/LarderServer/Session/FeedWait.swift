import LarderEngine

/// A CHANGES that waits for a change. A value; the session's owner uses it.
struct FeedWait {
    private struct Waiting {
        let waiter: FeedWaiter
        let database: Database
        /// In milliseconds of the monotonic clock.
        let until: Int64
        let isWoken: WaitingFetch.Flag
    }

    private var waiting: Waiting?

    /// Whether a command waits, and nobody has woken it.
    var isWaiting: Bool { waiting.map { !$0.isWoken.isSet } ?? false }

    /// Waits, if there is nothing to answer.
    /// - Returns: until when the command waits, by the monotonic clock; nil if it answers now.
    mutating func mustWait(
        behind position: FeedPosition, _ prefix: [UInt8], milliseconds: Int64, _ database: Database, _ session: Session
    ) -> Int64? {
        let clock = session.clock.monotonic()
        if let waiting {
            if !session.isStopping, !waiting.isWoken.isSet, clock < waiting.until { return waiting.until }
            end()
            return nil
        }
        guard milliseconds > 0, !session.isStopping, position.pass == nil, let wakeUp = session.wakeUp,
            case .behind(let feed?, let place) = position.start
        else { return nil }
        let isWoken = WaitingFetch.Flag()
        let waiter = FeedWaiter(prefix: prefix) {
            isWoken.set()
            wakeUp()
        }
        guard database.wait(waiter, feed: feed, behind: place) else { return nil }
        waiting = Waiting(waiter: waiter, database: database, until: clock + milliseconds, isWoken: isWoken)
        return clock + milliseconds
    }

    /// Nothing waits any more.
    mutating func end() {
        guard let waiting else { return }
        waiting.database.stopWaiting(waiting.waiter)
        self.waiting = nil
    }
}

extension Session {
    /// Whether a command waits for others, and nobody has woken it.
    var waitsForOthers: Bool {
        if let call = origin.call { return !call.isWoken.load(ordering: .acquiring) }
        return fetching.waiting.map { !$0.isWoken.isSet } ?? feedWait.isWaiting
    }
}
