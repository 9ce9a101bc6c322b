import LarderPlatform
import Synchronization

/// The limit for the total size of a larder's entries in memory, and the shards that contain them. Dirty entries cannot
/// be evicted. They count towards the limit, except those of 1 MiB or more.
///
/// The limit may include the other memory of the process: see ``note(residentBytes:)``.
///
/// Thread-safe. `@unchecked Sendable`: `lock` guards the list of shards. The caller of ``makeRoom(_:)`` holds a shard's
/// lock, so the call never waits for the lock of another shard: it skips a shard whose lock is not free.
final class MemoryBudget: @unchecked Sendable {
    private let limit: Atomic<Int>
    private let used = Atomic<Int>(0)
    private let dirty = Atomic<Int>(0)
    private let attached = Atomic<Int>(0)
    /// The size of the batches with which the running checkpoint has passed dirty entries to LevelDB. These entries are
    /// about to become clean.
    private let passed = Atomic<Int>(0)
    private let everPassed = Atomic<Int>(0)
    /// The largest measured resident memory of the process, in bytes.
    let residentPeak = Atomic<Int>(0)
    /// The part of the limit that is not available for entries, in bytes.
    private let reserved = Atomic<Int>(0)
    /// The last measured sizes of the process's other memory, in bytes.
    private let others = Locked<[Int]>([])
    /// Attachments that entries have dropped and that have not been released yet.
    let released = ReleaseQueue()
    private let shardCount = Atomic<Int>(1)
    private let lock = Lock()
    /// The registered shards. Unmanaged: strong references would keep the entries of closed databases in memory; weak
    /// references would slow down all reference counting of shards. The database that registers shards keeps them alive
    /// until it unregisters them.
    private var shards: [Unmanaged<Shard>] = []
    private var next = 0

    private let largestPart: Int

    /// - Parameter largestPart: see ``EngineOptions/largestMemoryPart``.
    init(limitBytes: Int, largestPart: Int = EngineOptions().largestMemoryPart) {
        limit = Atomic(max(0, limitBytes))
        self.largestPart = largestPart
    }

    var limitBytes: Int { limit.load(ordering: .relaxed) }
    /// The limit for the entries: ``limitBytes`` without the process's other memory, but at least half of it.
    private var entryBytesMax: Int { limitBytes - min(reserved.load(ordering: .relaxed), limitBytes / 2) }
    /// The least change of a shard's size that the shard reports, in bytes. Reports must be rare, so that the shards do
    /// not contend for one counter.
    var stepBytes: Int { min(16_384, limitBytes / 4096) }
    /// The number of dirty bytes above which a checkpoint is due: half of the limit, at least 32 MiB.
    private var dirtyBytesMax: Int { max(32 << 20, limitBytes / 2) }

    var isOn: Bool { limitBytes > 0 }

    /// The sum of the sizes reported by the shards.
    var usedBytes: Int { used.load(ordering: .relaxed) }

    /// The size of the longest record, and of the largest attachment, that memory keeps, in bytes.
    var largestBytes: Int { limitBytes / largestPart }
    func admits(_ bytes: Int) -> Bool { bytes <= largestBytes }

    func register(_ new: [Shard]) {
        lock.withLock {
            shards += new.map { Unmanaged.passUnretained($0) }
            shardCount.store(max(1, shards.count), ordering: .relaxed)
        }
    }

    func unregister(_ old: [Shard]) {
        let gone = Set(old.map { Unmanaged.passUnretained($0).toOpaque() })
        lock.withLock {
            shards.removeAll { gone.contains($0.toOpaque()) }
            shardCount.store(max(1, shards.count), ordering: .relaxed)
        }
    }

    /// All registered shards. Takes no shard's lock.
    var all: [Shard] { lock.withLock { shards.map { $0.takeUnretainedValue() } } }

    /// Records a change of a shard's size, in bytes: of the total, of the dirty bytes, and of the bytes of attachments.
    func changed(by bytes: Int, dirty dirtyBytes: Int, attached attachedBytes: Int) {
        used.add(bytes)
        dirty.add(dirtyBytes)
        if attachedBytes != 0 { attached.add(attachedBytes) }
    }

    // MARK: Attachments

    /// The limit for the size of all attachments in bytes: half of the memory limit. Attachments that were dropped and
    /// not released yet count too.
    var attachedBytesMax: Int { limitBytes / 2 }

    /// The size of all attachments, including those that were dropped and not released yet, in bytes.
    private var attachedBytes: Int { attached.load(ordering: .relaxed) + released.byteCount }

    /// Drops attachments until their total size is within the limit. Each shard has an equal share of the limit. While
    /// `shard` is within its share, drops attachments of other shards; otherwise those of `shard`. Called with the
    /// shard's lock held.
    func makeRoomForAttachments(_ shard: Shard) {
        guard attachedBytes > attachedBytesMax else { return }
        let part = attachedBytesMax / shardCount.load(ordering: .relaxed)
        // Calculate this once: the loop increases `released`, so the limit would decrease as fast as the size.
        let most = max(0, attachedBytesMax - released.byteCount)
        var tries = 0
        while attached.load(ordering: .relaxed) > most {
            tries += 1
            if tries <= 4, shard.table.attachedByteCount <= part,
                shrinkAnother(than: shard, to: part, most: 65_536, { $0.attachedByteCount }, { $0.dropAttachment() })
            {
                continue
            }
            guard shard.table.dropAttachment() else { return }
            shard.publish()
        }
    }

    /// Whether there are so many dirty bytes that a checkpoint is due.
    var isCheckpointDue: Bool { dirty.load(ordering: .relaxed) > dirtyBytesMax }
    /// Returns whether writers should wait for the checkpoint, because there are too many dirty bytes even without
    /// `bytes` of them, for which ``CheckpointTrigger`` has a limit of its own.
    func mustBlockWriters(besides bytes: Int) -> Bool { waitingBytes - bytes > waitingBytesMax }
    /// The number of dirty bytes that were not passed to LevelDB yet, and its limit.
    var waitingBytes: Int { dirty.load(ordering: .relaxed) - passed.load(ordering: .relaxed) }
    var waitingBytesMax: Int { 2 * dirtyBytesMax }
    /// The number of bytes that checkpoints have ever passed to LevelDB.
    var passedBytes: Int { everPassed.load(ordering: .relaxed) }

    /// Records that a checkpoint has passed `bytes` of dirty entries to LevelDB; negative when they are clean.
    func notePassed(_ bytes: Int) {
        passed.add(bytes)
        if bytes > 0 { everPassed.add(bytes) }
    }

    /// Measures the exact size of all entries. Takes the locks of all shards one after another.
    func measure() -> Int {
        all.reduce(0) { sum, shard in
            sum
                + shard.lock.withLock {
                    shard.publish()
                    return shard.table.byteCount + shard.table.attachedByteCount
                }
        }
    }

    /// Evicts entries until the total size is within the limit. Each shard has an equal share of the limit. While
    /// `shard` is within its share, evicts entries of other shards; otherwise those of `shard`. Called with the shard's
    /// lock held.
    func makeRoom(_ shard: Shard) {
        let shardCount = shardCount.load(ordering: .relaxed)
        let room = room
        guard usedBytes > room else { return }
        let part = max(0, room) / shardCount
        var tries = 0
        while usedBytes > room {
            tries += 1
            // Evict several entries, because finding the shard takes some time.
            if tries <= 4, shard.table.cleanByteCount < part,
                shrinkAnother(than: shard, to: part, most: 16_384, { $0.cleanByteCount }, { $0.evict() })
            {
                continue
            }
            let hasEvicted = shard.table.evict()
            shard.publish()
            guard hasEvicted else { return }
        }
    }

    /// The limit for the sizes that the shards have reported: leaves space for growth that they have not.
    private var room: Int { entryBytesMax - shardCount.load(ordering: .relaxed) * stepBytes }

    /// The maximum number of entries that ``shrink()`` evicts before it releases a shard's lock for a moment.
    private static let evictedAtOnce = 64

    /// Changes the limit. If it decreases, evicts excess entries. Dirty entries stay until a checkpoint.
    /// - Parameter evicts: false if locks of shards may be held for long. Then writes evict the excess entries.
    func changeLimit(to bytes: Int, evicts: Bool = true) {
        limit.store(max(0, bytes), ordering: .relaxed)
        guard evicts else { return }
        // Make the shards report all changes of their sizes.
        _ = measure()
        shrink()
    }

    /// Evicts entries of the shards that exceed their equal share, until the total size is within the limit. Takes the
    /// locks of the shards one after another.
    private func shrink() {
        let all = all
        var hasEvicted = true
        while usedBytes > room, hasEvicted {
            hasEvicted = false
            for shard in all where shard.lock.withLock({ evictSome(of: shard, beyond: max(0, room) / all.count) }) {
                hasEvicted = true
            }
        }
    }

    /// - Returns: whether anything was evicted. Called with the shard's lock held.
    private func evictSome(of shard: Shard, beyond part: Int) -> Bool {
        defer { shard.publish() }
        for count in 0..<Self.evictedAtOnce {
            let isTooMuch = shard.table.byteCount + shard.table.attachedByteCount > part
            guard isTooMuch, shard.table.evict() || shard.table.dropAttachment() else { return count > 0 }
        }
        return true
    }

    // MARK: Other memory

    /// The number of measurements that are compared. They take five seconds.
    private static let measurementsMax = 10
    /// The time between two measurements, in milliseconds.
    static let measurementMilliseconds: Int64 = 500

    /// Makes the limit include the other memory of the process: LevelDB's buffers and caches, connections, threads, and
    /// what the allocator wastes. Called regularly with the process's resident memory, without mapped files.
    ///
    /// Counts the least of the last measurements, so that no entries are evicted for buffers that exist for a few
    /// seconds, such as those of a checkpoint. Entries keep at least half of the limit.
    func note(residentBytes: Int) {
        let least = others.withLock { others in
            others.append(max(0, residentBytes - usedBytes))
            if others.count > Self.measurementsMax { others.removeFirst() }
            return others.min() ?? 0
        }
        reserved.store(least, ordering: .relaxed)
        shrink()
    }

    /// Makes the table of another shard whose lock is free smaller, if it is larger than `part`: until it is not, or by
    /// about `most` bytes. Tries only a few shards.
    /// - Parameters:
    ///   - size: returns the size of a table in bytes.
    ///   - drop: makes a table smaller; returns false if that is impossible.
    /// - Returns: whether a table is smaller now.
    private func shrinkAnother(
        than own: Shard, to part: Int, most: Int, _ size: (EntryTable) -> Int, _ drop: (EntryTable) -> Bool
    ) -> Bool {
        for _ in 0..<8 {
            let candidate = lock.withLock { () -> Shard? in
                guard !shards.isEmpty else { return nil }
                next = (next + 1) % shards.count
                return shards[next].takeUnretainedValue()
            }
            guard let candidate, candidate !== own, candidate.lock.tryLock() else { continue }
            defer { candidate.lock.unlock() }
            let (table, before) = (candidate.table, size(candidate.table))
            while size(table) > part, before - size(table) < most, drop(table) {}
            candidate.publish()
            if size(table) < before { return true }
        }
        return false
    }
}
