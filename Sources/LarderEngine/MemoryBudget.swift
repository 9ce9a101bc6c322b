import Synchronization
import Threading

/// The bytes that the memory tiers of a larder may take together, and the shards that take them.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the list of shards is read and written with the lock held. A shard's
/// lock is held by who calls ``makeRoom(_:)``; other shards are only tried, never waited for.
final class MemoryBudget: @unchecked Sendable {
    let limitBytes: Int
    private let used = Atomic<Int>(0)
    private let lock = Lock()
    private var shards: [WeakShard] = []
    private var next = 0

    private struct WeakShard {
        weak var shard: Shard?
    }

    init(limitBytes: Int) { self.limitBytes = max(0, limitBytes) }

    var isOn: Bool { limitBytes > 0 }
    var usedBytes: Int { used.load(ordering: .relaxed) }

    /// The longest record that is kept: one that takes at most a 32nd of the whole.
    func admits(_ record: Record) -> Bool { admits(bytes: record.stored.count) }

    func admits(bytes: Int) -> Bool { bytes <= limitBytes / 32 }

    func register(_ new: [Shard]) {
        lock.withLock {
            shards.removeAll { $0.shard == nil }
            shards += new.map { WeakShard(shard: $0) }
        }
    }

    /// Notes that a shard's tier grew or shrank.
    func changed(by bytes: Int) { used.add(bytes) }

    /// Evicts until the whole is within its limit again: from `shard`, or from others while `shard` has less than its
    /// part. Called with the shard's lock held.
    func makeRoom(_ shard: Shard) {
        var tries = 0
        while usedBytes > limitBytes {
            if tries < 4, shard.tier.byteCount < part, evictFromAnother(than: shard) {
                tries += 1
                continue
            }
            tries += 1
            let before = shard.tier.byteCount
            let hasEvicted = shard.tier.evict()
            changed(by: shard.tier.byteCount - before)
            guard hasEvicted else { return }
        }
    }

    /// What each shard may have when all want much.
    private var part: Int { limitBytes / max(1, lock.withLock { shards.count }) }

    /// Looks at a few shards in turn for one that has more than its part and is free.
    private func evictFromAnother(than own: Shard) -> Bool {
        let part = part
        for _ in 0..<8 {
            let candidate = lock.withLock { () -> Shard? in
                guard !shards.isEmpty else { return nil }
                next = (next + 1) % shards.count
                return shards[next].shard
            }
            guard let candidate, candidate !== own, candidate.lock.tryLock() else { continue }
            defer { candidate.lock.unlock() }
            let before = candidate.tier.byteCount
            // Several at a time, since finding one took a while.
            while candidate.tier.byteCount > part, before - candidate.tier.byteCount < 16_384, candidate.tier.evict() {}
            changed(by: candidate.tier.byteCount - before)
            if candidate.tier.byteCount < before { return true }
        }
        return false
    }
}
