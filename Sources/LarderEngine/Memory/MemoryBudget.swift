import Synchronization
import Threading

/// The bytes that the entries in memory of a larder may take together, and the shards that take them. Entries that LevelDB
/// does not have yet count too, but for those of 1 MiB and more, and cannot be let go.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the list of shards is read and written with the lock held. A shard's
/// lock is held by who calls ``makeRoom(_:)``; other shards are only tried, never waited for.
final class MemoryBudget: @unchecked Sendable {
    private let limit: Atomic<Int>
    private let used = Atomic<Int>(0)
    private let dirty = Atomic<Int>(0)
    private let attached = Atomic<Int>(0)
    /// What entries have let go, and nobody has released yet.
    let released = ReleaseQueue()
    private let shardCount = Atomic<Int>(1)
    private let lock = Lock()
    /// Not counted, because a reference that counts would keep a database's entries alive, and a weak one makes every count
    /// on a shard slow. Whoever registers shards keeps them until they are unregistered.
    private var shards: [Unmanaged<Shard>] = []
    private var next = 0

    init(limitBytes: Int) {
        limit = Atomic(max(0, limitBytes))
    }

    var limitBytes: Int { limit.load(ordering: .relaxed) }
    /// A shard tells of its growth in steps of at least so many bytes, so that the shards do not all count in one place all
    /// the time.
    var stepBytes: Int { min(16_384, limitBytes / 4096) }
    /// From how many bytes of entries that LevelDB does not have yet a checkpoint is due: half of all, at least 32 MiB.
    private var dirtyBytesMax: Int { max(32 << 20, limitBytes / 2) }

    var isOn: Bool { limitBytes > 0 }

    /// What the shards told of.
    private var usedBytes: Int { used.load(ordering: .relaxed) }

    /// The longest record that is kept: one that takes at most a 32nd of the whole.
    func admits(_ recordCount: Int) -> Bool { recordCount <= limitBytes / 32 }

    func register(_ new: [Shard]) {
        lock.withLock {
            shards += new.map { Unmanaged.passUnretained($0) }
            shardCount.store(max(1, shards.count), ordering: .relaxed)
        }
    }

    /// The shards go away.
    func unregister(_ old: [Shard]) {
        let gone = Set(old.map { Unmanaged.passUnretained($0).toOpaque() })
        lock.withLock {
            shards.removeAll { gone.contains($0.toOpaque()) }
            shardCount.store(max(1, shards.count), ordering: .relaxed)
        }
    }

    /// All shards. Takes no shard's lock.
    var all: [Shard] { lock.withLock { shards.map { $0.takeUnretainedValue() } } }

    /// Notes that a shard's table grew or shrank: all of it, and of that what is dirty and what is attached.
    func changed(by bytes: Int, dirty dirtyBytes: Int, attached attachedBytes: Int) {
        used.add(bytes)
        dirty.add(dirtyBytes)
        if attachedBytes != 0 { attached.add(attachedBytes) }
    }

    // MARK: Attachments

    /// The share of what is attached to entries, those included that cannot be let go: half of all.
    var attachedBytesMax: Int { limitBytes / 2 }

    /// What is attached, and what was let go and is not released yet.
    private var attachedBytes: Int { attached.load(ordering: .relaxed) + released.byteCount }

    /// Lets attachments go until all together are within their share again: from `shard`, or from others while `shard` has
    /// less than its part. Called with the shard's lock held.
    func makeRoomForAttachments(_ shard: Shard) {
        guard attachedBytes > attachedBytesMax else { return }
        let part = attachedBytesMax / shardCount.load(ordering: .relaxed)
        // What waits to be released counts, and is not to be reached by letting more go.
        let most = max(0, attachedBytesMax - released.byteCount)
        var tries = 0
        while attached.load(ordering: .relaxed) > most {
            tries += 1
            if tries <= 4, shard.table.attachedByteCount <= part, dropFromAnother(than: shard, part) { continue }
            guard shard.table.dropAttachment() else { return }
            shard.publish()
        }
    }

    private func dropFromAnother(than own: Shard, _ part: Int) -> Bool {
        withAnother(than: own) { candidate in
            let before = candidate.table.attachedByteCount
            while candidate.table.attachedByteCount > part, before - candidate.table.attachedByteCount < 65_536,
                candidate.table.dropAttachment()
            {}
            candidate.publish()
            return candidate.table.attachedByteCount < before
        }
    }

    /// Whether so much is dirty that a checkpoint is due.
    var isCheckpointDue: Bool { dirty.load(ordering: .relaxed) > dirtyBytesMax }
    /// Whether so much is dirty, besides so many bytes, that writers should wait for the checkpoint.
    func isFullOfDirty(besides bytes: Int) -> Bool { dirty.load(ordering: .relaxed) - bytes > 2 * dirtyBytesMax }

    /// The bytes that entries take now, exactly. Takes every shard's lock in turn.
    func measure() -> Int {
        all.reduce(0) { sum, shard in
            sum
                + shard.lock.withLock {
                    shard.publish()
                    return shard.table.byteCount + shard.table.attachedByteCount
                }
        }
    }

    /// Evicts until the whole is within its limit again: from `shard`, or from others while `shard` has less than its
    /// part. Called with the shard's lock held.
    func makeRoom(_ shard: Shard) {
        let shardCount = shardCount.load(ordering: .relaxed)
        // What the shards did not tell of yet has room too.
        let room = limitBytes - shardCount * stepBytes
        guard usedBytes > room else { return }
        let part = max(0, room) / shardCount
        var tries = 0
        while usedBytes > room {
            tries += 1
            if tries <= 4, shard.table.cleanByteCount < part, evictFromAnother(than: shard, part) { continue }
            let hasEvicted = shard.table.evict()
            shard.publish()
            guard hasEvicted else { return }
        }
    }

    /// How many entries are evicted while a shard's lock is held once.
    private static let evictedAtOnce = 64

    /// Changes the limit, and evicts what is too much for a smaller one: of each shard what is beyond its part. Takes every
    /// shard's lock in turn; what LevelDB does not have yet stays until a checkpoint.
    func changeLimit(to bytes: Int) {
        limit.store(max(0, bytes), ordering: .relaxed)
        let all = all
        let part = limitBytes / max(1, all.count)
        for shard in all {
            while shard.lock.withLock({ evictSome(of: shard, beyond: part) }) {}
        }
    }

    /// - Returns: whether there may be more to evict. Called with the shard's lock held.
    private func evictSome(of shard: Shard, beyond part: Int) -> Bool {
        defer { shard.publish() }
        for _ in 0..<Self.evictedAtOnce {
            let isTooMuch = shard.table.byteCount + shard.table.attachedByteCount > part
            guard isTooMuch, shard.table.evict() || shard.table.dropAttachment() else { return false }
        }
        return true
    }

    /// Looks at a few shards in turn for one that has more than its part and is free.
    private func evictFromAnother(than own: Shard, _ part: Int) -> Bool {
        withAnother(than: own) { candidate in
            let before = candidate.table.byteCount
            // Several at a time, since finding one took a while.
            while candidate.table.cleanByteCount > part, before - candidate.table.byteCount < 16_384,
                candidate.table.evict()
            {}
            candidate.publish()
            return candidate.table.byteCount < before
        }
    }

    /// Shows `body` a few other shards in turn, those that are free, with their lock held, until it has done something.
    /// - Returns: whether it has.
    private func withAnother(than own: Shard, _ body: (Shard) -> Bool) -> Bool {
        for _ in 0..<8 {
            let candidate = lock.withLock { () -> Shard? in
                guard !shards.isEmpty else { return nil }
                next = (next + 1) % shards.count
                return shards[next].takeUnretainedValue()
            }
            guard let candidate, candidate !== own, candidate.lock.tryLock() else { continue }
            defer { candidate.lock.unlock() }
            if body(candidate) { return true }
        }
        return false
    }
}
