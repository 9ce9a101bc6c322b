/// Entries kept in memory beside LevelDB: what a shard has room for, the often used ones longest.
///
/// Evicts by S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO Queues are All You Need for Cache Eviction", SOSP 2023):
/// new entries enter a small queue; those asked for again while in it move to the main queue, the others leave, and only
/// their hashes are remembered for a while, so that one that comes back enters the main queue at once. A scan passes
/// through the small queue and pushes nothing else out. A hit changes a counter and moves nothing.
///
/// Holds committed entries only, expired or not: whoever reads judges freshness. Single owner; its shard's lock guards it.
struct MemoryTier {
    /// What an entry takes beyond its key and record, in bytes: its slot, its place in the table, two array headers.
    static let overheadBytes = 208
    /// The part of a shard's bytes that the small queue may hold, as one in so many.
    private static let smallShare = 10
    /// Hits are counted up to here.
    private static let frequencyMax: UInt8 = 3
    /// An entry in the small queue with more hits than this moves to the main queue. A write counts as none.
    private static let smallHitsKept: UInt8 = 0

    private struct Slot {
        var key: Key
        var record: Record?
        /// What a user of the engine made of the record, and keeps beside it. Goes with the record.
        var attachment: AnyObject?
        /// Unlike that of every other record this tier holds or held.
        var version: UInt64
        var byteCount: Int
        var frequency: UInt8
        var isMain: Bool
        var newer: Int32
        var older: Int32
    }

    private struct Queue {
        var newest: Int32 = -1
        var oldest: Int32 = -1
        var byteCount = 0
        var count = 0
    }

    private var slots: ContiguousArray<Slot> = []
    private var free: [Int32] = []
    private var table: [Key: Int32] = [:]
    private var small = Queue()
    private var main = Queue()
    private var ghosts = GhostQueue()
    private var lastVersion: UInt64 = 0

    /// Bytes that the entries take, keys and overhead included.
    var byteCount: Int { small.byteCount + main.byteCount }
    var count: Int { table.count }

    // MARK: Use

    /// The record of a key, counted as a hit.
    mutating func find(_ key: Key) -> Record? {
        guard let slot = table[key] else { return nil }
        let index = Int(slot)
        if slots[index].frequency < Self.frequencyMax { slots[index].frequency += 1 }
        return slots[index].record
    }

    /// The record of a key, not counted.
    func peek(_ key: Key) -> Record? { table[key].flatMap { slots[Int($0)].record } }

    /// The attachment of a key's record, and the record's header. Counted as a hit if there is an attachment.
    mutating func findAttached(_ key: Key) -> (AnyObject, RecordHeader)? {
        guard let slot = table[key] else { return nil }
        let index = Int(slot)
        guard let attachment = slots[index].attachment, let record = slots[index].record else { return nil }
        if slots[index].frequency < Self.frequencyMax { slots[index].frequency += 1 }
        return (attachment, record.header)
    }

    /// The version of a key's record; 0 when there is none.
    func version(_ key: Key) -> UInt64 { table[key].map { slots[Int($0)].version } ?? 0 }

    /// Keeps something beside a key's record, in place of what was there.
    /// - Parameter bytes: that it takes.
    /// - Returns: false when the key has no record of that version.
    mutating func attach(_ object: AnyObject, to key: Key, version: UInt64, bytes: Int) -> Bool {
        guard let slot = table[key], slots[Int(slot)].version == version, let record = slots[Int(slot)].record else {
            return false
        }
        let index = Int(slot)
        slots[index].attachment = object
        let total = key.stored.count + record.stored.count + Self.overheadBytes + bytes
        let change = total - slots[index].byteCount
        slots[index].byteCount = total
        if slots[index].isMain { main.byteCount += change } else { small.byteCount += change }
        return true
    }

    /// Keeps a record, in place of the key's former one.
    mutating func insert(_ key: Key, _ record: Record) {
        lastVersion += 1
        let bytes = key.stored.count + record.stored.count + Self.overheadBytes
        if let slot = table[key] {
            let index = Int(slot)
            let change = bytes - slots[index].byteCount
            slots[index].record = record
            slots[index].attachment = nil
            slots[index].version = lastVersion
            slots[index].byteCount = bytes
            if slots[index].isMain { main.byteCount += change } else { small.byteCount += change }
            return
        }
        let isKnown = ghosts.remove(key.hash)
        let slot = makeSlot(
            Slot(
                key: key, record: record, version: lastVersion, byteCount: bytes, frequency: 0, isMain: isKnown,
                newer: -1, older: -1))
        table[key] = slot
        if isKnown { Self.push(slot, &slots, &main) } else { Self.push(slot, &slots, &small) }
    }

    mutating func remove(_ key: Key) {
        guard let slot = table.removeValue(forKey: key) else { return }
        if slots[Int(slot)].isMain { Self.unlink(slot, &slots, &main) } else { Self.unlink(slot, &slots, &small) }
        release(slot)
    }

    mutating func removeAll() {
        let version = lastVersion
        self = MemoryTier()
        lastVersion = version
    }

    /// Lets one entry go.
    /// - Returns: false when there is none.
    mutating func evict() -> Bool {
        while table.count > 0 {
            if main.count == 0 || small.byteCount * Self.smallShare > byteCount {
                if evictFromSmall() { return true }
            } else if evictFromMain() {
                return true
            }
        }
        return false
    }

    // MARK: S3-FIFO

    /// - Returns: whether an entry left; otherwise the oldest moved to the main queue.
    private mutating func evictFromSmall() -> Bool {
        let slot = small.oldest
        guard slot >= 0 else { return evictFromMain() }
        Self.unlink(slot, &slots, &small)
        if slots[Int(slot)].frequency > Self.smallHitsKept {
            slots[Int(slot)].frequency = 0
            slots[Int(slot)].isMain = true
            Self.push(slot, &slots, &main)
            return false
        }
        let key = slots[Int(slot)].key
        ghosts.add(key.hash, most: max(64, main.count))
        table[key] = nil
        release(slot)
        return true
    }

    /// - Returns: whether an entry left; otherwise the oldest, which had hits, goes round once more.
    private mutating func evictFromMain() -> Bool {
        let slot = main.oldest
        guard slot >= 0 else { return false }
        Self.unlink(slot, &slots, &main)
        if slots[Int(slot)].frequency > 0 {
            slots[Int(slot)].frequency -= 1
            Self.push(slot, &slots, &main)
            return false
        }
        table[slots[Int(slot)].key] = nil
        release(slot)
        return true
    }

    // MARK: Slots and queues

    private mutating func makeSlot(_ slot: Slot) -> Int32 {
        if let index = free.popLast() {
            slots[Int(index)] = slot
            return index
        }
        slots.append(slot)
        return Int32(slots.count - 1)
    }

    private mutating func release(_ slot: Int32) {
        // The memory of the record goes at once, that of the slot when it is used again.
        slots[Int(slot)].record = nil
        slots[Int(slot)].attachment = nil
        slots[Int(slot)].key = Self.noKey
        free.append(slot)
    }

    private static let noKey = Key([])

    private static func push(_ slot: Int32, _ slots: inout ContiguousArray<Slot>, _ queue: inout Queue) {
        slots[Int(slot)].newer = -1
        slots[Int(slot)].older = queue.newest
        if queue.newest >= 0 { slots[Int(queue.newest)].newer = slot } else { queue.oldest = slot }
        queue.newest = slot
        queue.count += 1
        queue.byteCount += slots[Int(slot)].byteCount
    }

    private static func unlink(_ slot: Int32, _ slots: inout ContiguousArray<Slot>, _ queue: inout Queue) {
        let newer = slots[Int(slot)].newer
        let older = slots[Int(slot)].older
        if newer >= 0 { slots[Int(newer)].older = older } else { queue.newest = older }
        if older >= 0 { slots[Int(older)].newer = newer } else { queue.oldest = newer }
        queue.count -= 1
        queue.byteCount -= slots[Int(slot)].byteCount
    }
}

/// Hashes of entries that left the small queue not long ago, the oldest forgotten first.
private struct GhostQueue {
    private var order: [Int] = []
    private var first = 0
    /// How often a hash stands in `order` and still counts.
    private var members: [Int: Int] = [:]

    mutating func add(_ hash: Int, most: Int) {
        order.append(hash)
        members[hash, default: 0] += 1
        while order.count - first > most { forgetOldest() }
        if first > 1024, first * 2 > order.count {
            order.removeFirst(first)
            first = 0
        }
    }

    /// - Returns: whether the hash was remembered.
    mutating func remove(_ hash: Int) -> Bool { members.removeValue(forKey: hash) != nil }

    private mutating func forgetOldest() {
        let hash = order[first]
        first += 1
        guard let times = members[hash] else { return }
        members[hash] = times > 1 ? times - 1 : nil
    }
}
