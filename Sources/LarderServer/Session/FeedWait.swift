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
    /// - Parameters:
    ///   - clock: the monotonic clock.
    ///   - wakeUp: has the command run again; nil where no command waits any more.
    /// - Returns: until when the command waits, by the monotonic clock; nil if it answers now.
    mutating func mustWait(
        behind position: FeedPosition, _ prefix: [UInt8], milliseconds: Int64, _ database: Database, clock: Int64,
        wakeUp: (@Sendable () -> Void)?
    ) -> Int64? {
        if let waiting {
            if wakeUp != nil, !waiting.isWoken.isSet, clock < waiting.until { return waiting.until }
            end()
            return nil
        }
        guard milliseconds > 0, position.pass == nil, let wakeUp,
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
