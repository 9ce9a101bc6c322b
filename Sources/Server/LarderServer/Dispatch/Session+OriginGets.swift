import LarderEngine
import LarderPlatform
import LarderRESP

/// Runs consecutive GETs in a database with an origin. If an entry here is current, the reply needs no request to the
/// origin. All other keys are requested from the origin together.
extension Session {
    /// Runs consecutive requests `GET key` until an entry is not current or not in memory.
    /// - Returns: how many have run, and the time that was used for their expiry; nil if none has.
    func runOriginGets(_ outputBytesMax: Int) -> (Int, now: Int64)? {
        guard allowsFastPath, seesCurrent, !server.hasAttention.load(ordering: .relaxed), let tier = origin.tier else {
            return nil
        }
        let now = clock.now()
        let most = min(outputBytesMax, pendingOutput + Limits.loopCopyBytesMax)
        let done = runOriginGets(tier, now: now, outputBytesMax: most)
        if done > 0 { accounting.noteFast(.get, done) }
        return done > 0 ? (done, now) : nil
    }

    private func runOriginGets(_ tier: OriginTier, now: Int64, outputBytesMax: Int) -> Int {
        withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: Self.originGetsMax) { keys in
            withUnsafeTemporaryAllocation(of: Int.self, capacity: Self.originGetsMax) { ends in
                let count = parserMemory.pointee.usualGets(keys, ends)
                guard count > 0 else { return 0 }
                let run = UnsafeBufferPointer(rebasing: keys[..<count])
                let done = replyToGets(run, tier, now, outputBytesMax)
                if done < count { askAhead(run[done...], tier, now) }
                origin.aheadCount -= done
                if done > 0 { parserMemory.pointee.skip(ends[done - 1]) }
                return done
            }
        }
    }

    /// The most requests that are looked up at once.
    private static let originGetsMax = 64

    private func replyToGets(
        _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ tier: OriginTier, _ now: Int64, _ outputBytesMax: Int
    ) -> Int {
        // Use one instant for all these requests: they take only a few microseconds together.
        let instant = MonotonicClock.nanoseconds()
        var index = 0
        while index < keys.count, replyMemory.pointee.count <= outputBytesMax {
            switch tier.knowledge(keys[index], now: now, instant: instant) {
            case .nothing, .pending: return index
            case .absent:
                replyMemory.pointee.null()
                index += 1
            case .kept:
                var end = index + 1
                while end < keys.count, tier.knowledge(keys[end], now: now, instant: instant) == .kept { end += 1 }
                let run = UnsafeBufferPointer(rebasing: keys[index..<end])
                let done = replyWithKept(run, now, outputBytesMax)
                index += done
                if done < run.count { return index }
            }
        }
        return index
    }

    /// Replies to requests whose entries are current. Stops at the first one that was evicted.
    private func replyWithKept(
        _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ now: Int64, _ outputBytesMax: Int
    ) -> Int {
        let replies = replyMemory
        let sent = replyQueue.sentBytes
        var isLost = false
        let done = fastDatabase._withUnsafeGuaranteedRef { database in
            database.readRun(keys, now: now) { _, ticket, payload in
                guard let payload else {
                    isLost = true
                    return false
                }
                let start = sent + replies.pointee.count
                replies.pointee.bulk(payload)
                if ticket != .none { hold(from: start, ticket) }
                return replies.pointee.count <= outputBytesMax
            }
        }
        return isLost ? done - 1 : done
    }

    /// Requests the keys of the next GETs from the origin now, so that these do not wait for one reply after the other.
    private func askAhead(
        _ keys: Swift.Slice<UnsafeBufferPointer<UnsafeRawBufferPointer>>, _ tier: OriginTier, _ now: Int64
    ) {
        guard origin.aheadCount <= 0 else { return }
        origin.aheadCount = keys.count
        let missing = Set(keys.lazy.filter { tier.knowledge($0, now: now) == .nothing }.map { Array($0) })
        if missing.count > 1 { tier.ask(Array(missing)) { _, _ in } }
    }
}
