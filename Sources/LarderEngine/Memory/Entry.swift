#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The fixed part of an entry in memory. The bytes of its key and then of its record follow it in the same allocation.
struct EntryHead {
    /// In which of the table's lists the entry is.
    enum Place: UInt8 {
        case nowhere
        /// Clean: LevelDB has it too. In the small or the main queue of the eviction.
        case small, main
        /// Dirty: LevelDB does not have it yet.
        /// - `active`: for the checkpoint under way if it was dirty when that began, else for the next
        /// - `written`: handed to LevelDB by the checkpoint under way, which has not yet come to its end
        case active, written
    }

    /// A version with this bit set is not a commit unit's: the entry came from LevelDB.
    static let loadedBit: UInt64 = 1 << 63

    let hash: Int
    /// Which write made the entry as it is: the sequence of its commit unit, or ``loadedBit`` and a number. No two states
    /// of a key have the same.
    var version: UInt64
    var newer: EntryPointer?
    var older: EntryPointer?
    /// What a reader has left here to find again: a decoded model. Gone with the next change.
    var attachment: Unmanaged<Attachment>?
    /// The time and kind of the index key that LevelDB is known to have for the entry; 0 for none. See ``ExpiryIndex``.
    var indexed: UInt64
    let keyCount: UInt32
    /// 0: there is no record. A dirty entry without one is a removal; a clean one says that LevelDB has none.
    var recordCount: UInt32
    /// Bytes behind the head.
    let capacity: UInt32
    var place: Place
    /// Hits since the entry came to the front of its queue, counted to a small number.
    var frequency: UInt8
    private var flags: Flags = []
    /// How many read the record without the lock. The memory stays as it is for them, in the table or not.
    var pins: UInt8 = 0

    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let wasMain = Flags(rawValue: 1)
        static let isAbsentBelow = Flags(rawValue: 2)
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

    /// Whether the entry was in the main queue before it was written.
    var wasMain: Bool {
        get { flags.contains(.wasMain) }
        set { set(.wasMain, newValue) }
    }
    /// Whether LevelDB is known to have no record of the key.
    var isAbsentBelow: Bool {
        get { flags.contains(.isAbsentBelow) }
        set { set(.isAbsentBelow, newValue) }
    }
    /// Whether the memory belongs to those who have it pinned: the last of them frees it.
    var isOrphan: Bool {
        get { flags.contains(.isOrphan) }
        set { set(.isOrphan, newValue) }
    }

    /// Whether a read found the record expired, and counted it.
    var isFoundExpired: Bool {
        get { flags.contains(.isFoundExpired) }
        set { set(.isFoundExpired, newValue) }
    }

    private mutating func set(_ flag: Flags, _ isSet: Bool) {
        if isSet { flags.insert(flag) } else { flags.remove(flag) }
    }
}

/// An entry in memory. Valid while it is in its table, and only with the lock of its shard held: everything here reads
/// or writes memory that another thread may otherwise free.
struct EntryPointer: Equatable {
    let head: UnsafeMutablePointer<EntryHead>

    /// What an entry takes beside its key and record: the head, the allocator's own, the slot of a table that is three
    /// quarters full at most.
    static let overheadBytes = MemoryLayout<EntryHead>.size + 16 + 32

    /// Memory for a key and a record, with the key in place and no record yet.
    static func make(_ key: UnsafeRawBufferPointer, hash: Int, recordCount: Int) -> EntryPointer {
        let headSize = MemoryLayout<EntryHead>.size
        // The allocator gives memory in steps of 16 bytes: what it would round away is of use when the record grows.
        let total = (headSize + key.count + recordCount + 15) & ~15
        guard let memory = malloc(total) else { fatalError("out of memory: an entry of \(total) bytes") }
        let head = memory.bindMemory(to: EntryHead.self, capacity: 1)
        head.initialize(to: EntryHead(hash: hash, keyCount: key.count, capacity: total - headSize))
        let entry = EntryPointer(head: head)
        if let source = key.baseAddress { entry.bytes.copyMemory(from: source, byteCount: key.count) }
        return entry
    }

    /// Gives the memory back. The attachment, if there was one, was taken away before.
    func free() {
        guard head.pointee.pins == 0 else {
            head.pointee.isOrphan = true
            return
        }
        Self.free(head)
    }

    /// Has the key and the record stay where and as they are until ``unpin()``, whatever happens to the key: they can be read
    /// without the lock.
    /// - Returns: false when too many have it pinned already.
    func pin() -> Bool {
        guard head.pointee.pins < .max else { return false }
        head.pointee.pins += 1
        return true
    }

    /// Ends a ``pin()``. With the lock held again.
    func unpin() {
        head.pointee.pins -= 1
        if head.pointee.pins == 0, head.pointee.isOrphan { Self.free(head) }
    }

    private static func free(_ memory: UnsafeMutableRawPointer) {
        #if canImport(Glibc)
            Glibc.free(memory)
        #elseif canImport(Musl)
            Musl.free(memory)
        #else
            Darwin.free(memory)
        #endif
    }

    /// Behind the head: the key.
    private var bytes: UnsafeMutableRawPointer { UnsafeMutableRawPointer(head + 1) }

    var key: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: bytes, count: Int(head.pointee.keyCount)) }

    /// Header and payload; nil when there is no record.
    var record: UnsafeRawBufferPointer? {
        let count = Int(head.pointee.recordCount)
        guard count > 0 else { return nil }
        return UnsafeRawBufferPointer(start: bytes + Int(head.pointee.keyCount), count: count)
    }

    /// Whether a record of `count` bytes has room here, without wasting more than it takes.
    func fits(_ count: Int) -> Bool {
        if head.pointee.pins > 0 { return false }
        let needed = Int(head.pointee.keyCount) + count
        let capacity = Int(head.pointee.capacity)
        return needed <= capacity && (capacity <= 2 * needed || capacity <= 256)
    }

    /// The place for a record of `count` bytes, which must fit. What was there is gone.
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

    /// Bytes that count against the memory budget, without those of the attachment.
    var byteCount: Int { Self.overheadBytes + Int(head.pointee.capacity) }
    /// The bytes of an entry that is outsize; 0 for others.
    var outsizeByteCount: Int {
        let capacity = Int(head.pointee.capacity)
        return capacity >= Self.outsizeBytesMin ? capacity : 0
    }
    /// From how many bytes on an entry is outsize: 1 MiB.
    private static let outsizeBytesMin = 1 << 20
    var isDirty: Bool { head.pointee.place.rawValue >= EntryHead.Place.active.rawValue }
    /// The commit unit that wrote the entry; 0 for one that came from LevelDB.
    var sequence: UInt64 { head.pointee.version & EntryHead.loadedBit == 0 ? head.pointee.version : 0 }
}

/// Entries in a row, the newest at one end. Each entry is in one list at most.
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

    /// Puts an entry of this list at its end.
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

    /// Puts `new` in the place of `old`, with other memory.
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
