import LarderPlatform

/// The fixed part of an entry in memory. The bytes of the entry's key and record follow it in the same allocation.
struct EntryHead {
    /// The list that contains the entry.
    enum Place: UInt8 {
        case nowhere
        /// Clean: LevelDB has the entry too. It is in the small or the main queue of the eviction.
        case small, main
        /// Dirty: LevelDB does not have the entry yet.
        /// - `active`: waits for the running checkpoint, or for the next one if the entry became dirty after the
        ///   freeze.
        /// - `written`: the running checkpoint has passed it to LevelDB, but has not finished.
        case active, written
    }

    /// The bit of ``version`` that is set if the entry was read from LevelDB, and clear if it was written.
    static let loadedBit: UInt64 = 1 << 63

    let hash: Int
    /// Identifies the state of the entry. For a written entry: the sequence (number) of its commit unit. For an entry
    /// read from LevelDB: ``loadedBit`` and a counter. No two states of a key have the same version.
    var version: UInt64
    var newer: EntryPointer?
    var older: EntryPointer?
    /// An object that a reader has attached for later readers, such as a decoded model. The next change of the entry
    /// drops it.
    var attachment: Unmanaged<Attachment>?
    /// The time and kind of the index key that LevelDB is known to have for the entry; 0 for none. See ``ExpiryIndex``.
    var indexed: UInt64
    let keyCount: UInt32
    /// The length of the record; 0 if there is none. A dirty entry without a record is a removal. A clean entry without
    /// a record means that LevelDB has no record of the key.
    var recordCount: UInt32
    /// The number of bytes after the head.
    let capacity: UInt32
    var place: Place
    /// The number of recent hits, up to a small maximum. The eviction decreases it.
    var frequency: UInt8
    private var flags: Flags = []
    /// The number of readers that use the record without the lock. While it is not 0, the memory is neither changed nor
    /// freed, even if the entry has left the table.
    var pins: UInt8 = 0

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let wasMain = Flags(rawValue: 1)
        static let isAbsentInLevelDB = Flags(rawValue: 2)
        static let isOrphan = Flags(rawValue: 4)
        static let isFoundExpired = Flags(rawValue: 8)
    }

    init(hash: Int, keyCount: Int, capacity: Int) {
        self.hash = hash
        version = 0
        indexed = 0
        self.keyCount = UInt32(keyCount)
        recordCount = 0
        self.capacity = UInt32(capacity)
        place = .nowhere
        frequency = 0
    }

    /// Whether the entry was in the main queue when it became dirty. It returns to that queue when it is clean again.
    var wasMain: Bool {
        get { flags.contains(.wasMain) }
        set { set(.wasMain, newValue) }
    }
    /// Whether LevelDB is known to have no record of the key.
    var isAbsentInLevelDB: Bool {
        get { flags.contains(.isAbsentInLevelDB) }
        set { set(.isAbsentInLevelDB, newValue) }
    }
    /// Whether the entry has left the table while it is pinned. The last ``unpin()`` then frees its memory.
    var isOrphan: Bool {
        get { flags.contains(.isOrphan) }
        set { set(.isOrphan, newValue) }
    }

    /// Whether a read has found the record expired, and has counted that.
    var isFoundExpired: Bool {
        get { flags.contains(.isFoundExpired) }
        set { set(.isFoundExpired, newValue) }
    }

    private mutating func set(_ flag: Flags, _ isSet: Bool) {
        if isSet { flags.insert(flag) } else { flags.remove(flag) }
    }
}

/// A pointer to an entry in memory. Valid while the entry is in its table. Used only with the lock of the entry's shard
/// held, because otherwise another thread could free the memory.
struct EntryPointer: Equatable {
    let head: UnsafeMutablePointer<EntryHead>

    /// The memory of an entry in addition to its key and record, in bytes: the head, the allocator's overhead (16), and
    /// the entry's share of the table's slots (32).
    static let overheadBytes = MemoryLayout<EntryHead>.size + 16 + 32

    /// Allocates memory for a key and a record of `recordCount` bytes. Writes the key, but not the record.
    static func make(_ key: UnsafeRawBufferPointer, hash: Int, recordCount: Int) -> EntryPointer {
        let headSize = MemoryLayout<EntryHead>.size
        // The allocator rounds sizes up to 16 bytes. The extra bytes can be used when the record grows.
        let total = (headSize + key.count + recordCount + 15) & ~15
        guard let memory = malloc(total) else { fatalError("out of memory: an entry of \(total) bytes") }
        let head = memory.bindMemory(to: EntryHead.self, capacity: 1)
        head.initialize(to: EntryHead(hash: hash, keyCount: key.count, capacity: total - headSize))
        let entry = EntryPointer(head: head)
        if let source = key.baseAddress { entry.bytes.copyMemory(from: source, byteCount: key.count) }
        return entry
    }

    /// Frees the memory. If the entry is pinned, the last ``unpin()`` frees it. The attachment must be detached first.
    func free() {
        guard head.pointee.pins == 0 else {
            head.pointee.isOrphan = true
            return
        }
        Self.free(head)
    }

    /// Keeps the key and the record unchanged until ``unpin()``, even if the key is written or removed. So the caller
    /// can read them without the lock.
    /// - Returns: false if the entry has too many pins already.
    func pin() -> Bool {
        guard head.pointee.pins < .max else { return false }
        head.pointee.pins += 1
        return true
    }

    /// Ends a ``pin()``. Called with the lock held.
    func unpin() {
        head.pointee.pins -= 1
        if head.pointee.pins == 0, head.pointee.isOrphan { Self.free(head) }
    }

    private static func free(_ memory: UnsafeMutableRawPointer) { systemFree(memory) }

    /// The key, which follows the head.
    private var bytes: UnsafeMutableRawPointer { UnsafeMutableRawPointer(head + 1) }

    var key: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: bytes, count: Int(head.pointee.keyCount)) }

    /// The header and the payload; nil if there is no record.
    var record: UnsafeRawBufferPointer? {
        let count = Int(head.pointee.recordCount)
        guard count > 0 else { return nil }
        return UnsafeRawBufferPointer(start: bytes + Int(head.pointee.keyCount), count: count)
    }

    /// Returns whether a record of `count` bytes fits into this memory without wasting more than half of it.
    func fits(_ count: Int) -> Bool {
        if head.pointee.pins > 0 { return false }
        let needed = Int(head.pointee.keyCount) + count
        let capacity = Int(head.pointee.capacity)
        return needed <= capacity && (capacity <= 2 * needed || capacity <= 256)
    }

    /// Returns the memory for a record of `count` bytes, which must fit. The caller overwrites the old record.
    func reserve(_ count: Int) -> UnsafeMutableRawPointer {
        let keyCount = Int(head.pointee.keyCount)
        precondition(count >= 0 && keyCount + count <= Int(head.pointee.capacity), "a record does not fit its memory")
        head.pointee.recordCount = UInt32(count)
        return bytes + keyCount
    }

    func hasKey(_ other: UnsafeRawBufferPointer) -> Bool {
        guard Int(head.pointee.keyCount) == other.count else { return false }
        guard let start = other.baseAddress else { return true }
        return memcmp(bytes, start, other.count) == 0
    }

    /// The size that counts towards the memory budget, in bytes, without the attachment.
    var byteCount: Int { Self.overheadBytes + Int(head.pointee.capacity) }
    /// The size of an outsize (very large) entry in bytes; 0 for other entries.
    var outsizeByteCount: Int {
        let capacity = Int(head.pointee.capacity)
        return capacity >= Self.outsizeBytesMin ? capacity : 0
    }
    /// The smallest size of an outsize entry: 1 MiB.
    private static let outsizeBytesMin = 1 << 20
    var isDirty: Bool { head.pointee.place.rawValue >= EntryHead.Place.active.rawValue }
    /// The sequence of the commit unit that wrote the entry; 0 if the entry was read from LevelDB.
    var sequence: UInt64 { head.pointee.version & EntryHead.loadedBit == 0 ? head.pointee.version : 0 }
}

/// A list of entries, ordered by age. Each entry is in at most one list.
struct EntryList {
    private(set) var newest: EntryPointer?
    private(set) var oldest: EntryPointer?
    private(set) var count = 0
    private(set) var byteCount = 0
    private(set) var outsizeByteCount = 0

    mutating func push(_ entry: EntryPointer, _ place: EntryHead.Place) {
        let head = entry.head
        head.pointee.place = place
        head.pointee.newer = nil
        head.pointee.older = newest
        if let newest { newest.head.pointee.newer = entry } else { oldest = entry }
        newest = entry
        count += 1
        byteCount += entry.byteCount
        outsizeByteCount += entry.outsizeByteCount
    }

    mutating func unlink(_ entry: EntryPointer) {
        let head = entry.head
        if let newer = head.pointee.newer {
            newer.head.pointee.older = head.pointee.older
        } else {
            newest = head.pointee.older
        }
        if let older = head.pointee.older {
            older.head.pointee.newer = head.pointee.newer
        } else {
            oldest = head.pointee.newer
        }
        head.pointee.newer = nil
        head.pointee.older = nil
        head.pointee.place = .nowhere
        count -= 1
        byteCount -= entry.byteCount
        outsizeByteCount -= entry.outsizeByteCount
    }

    /// Moves an entry of this list to the oldest end of the list.
    mutating func moveToOldest(_ entry: EntryPointer) {
        guard let last = oldest, last != entry else { return }
        let place = entry.head.pointee.place
        unlink(entry)
        entry.head.pointee.place = place
        entry.head.pointee.newer = last
        entry.head.pointee.older = nil
        last.head.pointee.older = entry
        oldest = entry
        count += 1
        byteCount += entry.byteCount
        outsizeByteCount += entry.outsizeByteCount
    }

    /// Replaces the entry `old` by `new` at the same place of the list.
    mutating func replace(_ old: EntryPointer, _ new: EntryPointer) {
        let newer = old.head.pointee.newer
        let older = old.head.pointee.older
        new.head.pointee.newer = newer
        new.head.pointee.older = older
        new.head.pointee.place = old.head.pointee.place
        if let newer { newer.head.pointee.older = new } else { newest = new }
        if let older { older.head.pointee.newer = new } else { oldest = new }
        byteCount += new.byteCount - old.byteCount
        outsizeByteCount += new.outsizeByteCount - old.outsizeByteCount
    }
}
