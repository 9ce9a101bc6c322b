import LarderEngine
import LarderPlatform
import LarderRESP

/// Consecutive GETs in a database with an origin. Current entries are returned as in any other database, and the other
/// keys are requested together.
extension Session {
    /// Runs consecutive requests `GET key` while their entries are current and in memory.
    /// - Returns: the number of requests that ran, and their time; nil for none.
    func runOriginGets(_ outputBytesMax: Int) -> (Int, now: Int64)? {
        guard allowsFastPath, seesCurrent, !server.hasAttention.load(ordering: .relaxed), let tier = origin.tier else {
            return nil
        }
        let now = clock.now()
        let most = min(outputBytesMax, pendingOutput + Limits.loopCopyBytesMax)
        let done = runOriginGets(tier, now: now, outputBytesMax: most)
        accounting.fastPath.pointee.get += done
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

    /// The most requests looked up together.
    private static let originGetsMax = 64

    private func replyToGets(
        _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ tier: OriginTier, _ now: Int64, _ outputBytesMax: Int
    ) -> Int {
        // Use one instant for all requests, because they take only some microseconds.
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

    /// Replies to keys with a mark, up to the first one whose entry was evicted.
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

    /// Prefetches the keys of the following requests, so that they do not wait for the origin one after the other.
    private func askAhead(
        _ keys: Swift.Slice<UnsafeBufferPointer<UnsafeRawBufferPointer>>, _ tier: OriginTier, _ now: Int64
    ) {
        guard origin.aheadCount <= 0 else { return }
        origin.aheadCount = keys.count
        let missing = Set(keys.lazy.filter { tier.knowledge($0, now: now) == .nothing }.map { Array($0) })
        if missing.count > 1 { tier.ask(Array(missing)) { _, _ in } }
    }
}
