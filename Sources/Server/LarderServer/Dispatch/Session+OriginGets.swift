import LarderEngine
import LarderPlatform
import LarderRESP

/// Consecutive GETs in a database with an origin. If an entry here is current, the reply needs no request to the origin.
/// All other keys are requested from the origin together.
extension Session {
    /// Replies to GETs until an entry is not current or not in memory.
    /// - Returns: the number of replies.
    func replyBehindOrigin(
        _ keys: UnsafeBufferPointer<UnsafeRawBufferPointer>, _ now: Int64, _ outputBytesMax: Int
    ) -> Int {
        guard let tier = origin.tier else { return 0 }
        // Use one instant for all these requests: they take only a few microseconds together.
        let instant = MonotonicClock.nanoseconds()
        var index = 0
        requests: while index < keys.count, replyMemory.pointee.count <= outputBytesMax {
            switch tier.knowledge(keys[index], now: now, instant: instant) {
            case .nothing, .pending: break requests
            case .absent:
                replyMemory.pointee.null()
                index += 1
            case .kept:
                var end = index + 1
                while end < keys.count, tier.knowledge(keys[end], now: now, instant: instant) == .kept { end += 1 }
                let run = UnsafeBufferPointer(rebasing: keys[index..<end])
                // An entry may have been evicted.
                index += reply(to: run, now, outputBytesMax, mustExist: true)
                if index < end { break requests }
            }
        }
        if index < keys.count { askAhead(keys[index...], tier, now) }
        origin.aheadCount -= index
        return index
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
