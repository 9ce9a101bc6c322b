import LarderPlatform

/// The address of an entry in the ``EntryMemory`` of its table, in 32 bits. 0 is the address of no entry.
typealias EntryReference = UInt32

/// A pointer to an entry in memory:
///
/// ```
/// offset  bytes  field
///      0      4  the entry's position in the queue that contains it
///      4      4  bits 0-2 the queue, 3 room for an attachment, 4-5 hits, 6-9 flags,
///                10-20 the key's length, 21-31 the record's length
///      8      8  the attachment; only with "room for an attachment"
///                the key, then the record as a ``PackedRecord``
/// ```
///
/// A long entry has its own block of memory, with the lengths in front of the head: see ``EntryBlock``.
///
/// Valid until the table changes the entry, evicts entries or moves entries to free memory. Used only with the lock of
/// the entry's shard held. All accesses stay within the entry's cell or block, because ``EntryMemory`` allocates
/// ``byteCount(key:record:hasRoom:)`` bytes for the lengths that the head (or the block) stores.
struct EntryPointer: Equatable {
    /// The queue that contains an entry.
    enum Place: UInt32 {
        case nowhere
        /// Clean: LevelDB has the entry too. It is in the small or the main queue of the eviction.
        case small, main
        /// Dirty: LevelDB does not have the entry yet.
        /// - `active`: waits for the running checkpoint, or for the next one if the entry became dirty after the
        ///   freeze.
        /// - `written`: the running checkpoint has passed it to LevelDB, but has not finished.
        case active, written
        /// The cell contains no entry.
        case free = 7
    }

    let address: UnsafeMutableRawPointer

    /// The memory of a clean entry in addition to its key and record, in bytes: the head, its place in a queue (4) and
    /// in the table (about 10), and 2 for the rest of its cell and page.
    static let overheadBytes = headBytes + 16
    static let headBytes = 8
    /// The length of each part of an entry in a cell is less than this.
    static let lengthLimit = 1 << 11

    private static let roomFlag: UInt32 = 8
    private static let hitShift: UInt32 = 4
    private static let absentFlag: UInt32 = 1 << 6
    private static let foundExpiredFlag: UInt32 = 1 << 7
    private static let markFlag: UInt32 = 1 << 8
    private static let blockFlag: UInt32 = 1 << 9
    private static let keyShift: UInt32 = 10
    private static let recordShift: UInt32 = 21
    private static let lengthMask: UInt32 = 0x7FF

    // MARK: Head

    /// The entry's position in the queue ``place``.
    var position: UInt32 {
        get { address.load(as: UInt32.self) }
        nonmutating set { address.storeBytes(of: newValue, as: UInt32.self) }
    }

    private var word: UInt32 {
        get { address.load(fromByteOffset: 4, as: UInt32.self) }
        nonmutating set { address.storeBytes(of: newValue, toByteOffset: 4, as: UInt32.self) }
    }

    var place: Place {
        // A head has only values that were stored by the setter.
        get { Place(rawValue: word & 7) ?? .free }
        nonmutating set { word = word & ~7 | newValue.rawValue }
    }

    /// The number of recent hits, at most 3. The eviction decreases it.
    var hits: UInt32 {
        get { word >> Self.hitShift & 3 }
        nonmutating set { word = word & ~(3 << Self.hitShift) | newValue << Self.hitShift }
    }

    /// Whether LevelDB is known to have no record of the key.
    var isAbsentInLevelDB: Bool {
        get { word & Self.absentFlag != 0 }
        nonmutating set { set(Self.absentFlag, newValue) }
    }
    /// Whether a read has found the record expired, and has counted that.
    var isFoundExpired: Bool {
        get { word & Self.foundExpiredFlag != 0 }
        nonmutating set { set(Self.foundExpiredFlag, newValue) }
    }
    /// Of a dirty entry: whether it was in the main queue when it became dirty. It returns to that queue when it is
    /// clean again. Shares a bit with ``isIndexed``.
    var wasMain: Bool {
        get { word & Self.markFlag != 0 }
        nonmutating set { set(Self.markFlag, newValue) }
    }
    /// Of a clean entry: whether LevelDB is known to have the index key that the record should have.
    var isIndexed: Bool {
        get { word & Self.markFlag != 0 }
        nonmutating set { set(Self.markFlag, newValue) }
    }
    /// Whether the entry has a block of its own.
    var isBlock: Bool { word & Self.blockFlag != 0 }
    /// Whether there is space for an attachment.
    var hasRoom: Bool { word & Self.roomFlag != 0 }

    private func set(_ flag: UInt32, _ isSet: Bool) { word = isSet ? word | flag : word & ~flag }

    var isDirty: Bool { word & 7 >= Place.active.rawValue }

    /// The block of a long entry. Valid only if ``isBlock``.
    var block: UnsafeMutablePointer<EntryBlock> {
        (address - EntryBlock.byteCount).assumingMemoryBound(to: EntryBlock.self)
    }

    /// Writes the head and the key into new memory, which must have space for them.
    init(
        at address: UnsafeMutableRawPointer, _ key: UnsafeRawBufferPointer, recordCount: Int, isBlock: Bool,
        hasRoom: Bool
    ) {
        self.address = address
        position = 0
        if isBlock {
            word = Self.blockFlag | (hasRoom ? Self.roomFlag : 0)
            block.pointee.keyCount = UInt32(key.count)
            block.pointee.recordCount = UInt32(recordCount)
        } else {
            precondition(key.count < Self.lengthLimit && recordCount < Self.lengthLimit, "an entry is too long")
            word =
                UInt32(key.count) << Self.keyShift | UInt32(recordCount) << Self.recordShift
                | (hasRoom ? Self.roomFlag : 0)
        }
        if hasRoom { attachment = nil }
        if let source = key.baseAddress { content.copyMemory(from: source, byteCount: key.count) }
    }

    init(_ address: UnsafeMutableRawPointer) { self.address = address }

    /// Copies what does not depend on the entry's memory from the head of another one.
    func takeState(from other: EntryPointer) {
        position = other.position
        let lengths = (Self.lengthMask << Self.keyShift) | (Self.lengthMask << Self.recordShift)
        let own = Self.roomFlag | Self.blockFlag | lengths
        word = word & own | other.word & ~own
    }

    // MARK: Key and record

    static func byteCount(key: Int, record: Int, hasRoom: Bool) -> Int { headBytes + (hasRoom ? 8 : 0) + key + record }

    /// The key, and then the record. The flag "room for an attachment" has the value of the room's size.
    private var content: UnsafeMutableRawPointer { address + Int(UInt32(Self.headBytes) + word & Self.roomFlag) }

    var keyCount: Int { isBlock ? Int(block.pointee.keyCount) : Int(word >> Self.keyShift & Self.lengthMask) }

    /// The length of the packed record; 0 if there is none. A dirty entry without a record is a removal. A clean entry
    /// without a record means that LevelDB has no record of the key.
    var recordCount: Int { isBlock ? Int(block.pointee.recordCount) : Int(word >> Self.recordShift) }

    var key: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: content, count: keyCount) }

    var hasRecord: Bool { recordCount > 0 }

    private var packed: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: content + keyCount, count: recordCount) }

    /// Returns the record; nil if there is none.
    /// - Parameter purges: see ``RecordHeader/init(parsing:_:)``.
    @inline(__always)
    func record(_ purges: TagPurges?) throws(RecordHeader.Defect) -> RecordView? {
        let packed = packed
        return packed.isEmpty ? nil : try PackedRecord.read(packed, purges)
    }

    /// Returns the record's header; nil if there is no record, or its header cannot be read.
    func header(_ purges: TagPurges?) -> RecordHeader? { (try? record(purges))?.header }

    func appendStored(to bytes: inout [UInt8]) { if hasRecord { PackedRecord.appendStored(packed, to: &bytes) } }

    /// The record of a pinned entry as stored; nil for other records, which may be contained in another form.
    var pinnedRecord: UnsafeRawBufferPointer? { hasRecord ? PackedRecord.stored(packed) : nil }

    /// The place of the packed record, for `recordCount` bytes.
    var recordPlace: UnsafeMutableRawPointer { content + keyCount }

    /// Changes the length of the record. The new length must fit the entry's memory. The caller overwrites the record.
    func setRecordCount(_ count: Int) {
        if isBlock {
            let needed = Self.byteCount(key: keyCount, record: count, hasRoom: hasRoom)
            precondition(count >= 0 && needed <= Int(block.pointee.capacity), "a record does not fit its block")
            block.pointee.recordCount = UInt32(count)
        } else {
            precondition(count >= 0 && count < Self.lengthLimit, "a record does not fit its cell")
            word = word & ~(Self.lengthMask << Self.recordShift) | UInt32(count) << Self.recordShift
        }
    }

    @inline(__always)
    func hasKey(_ other: UnsafeRawBufferPointer) -> Bool {
        guard keyCount == other.count else { return false }
        guard let start = other.baseAddress else { return true }
        return memcmp(content, start, other.count) == 0
    }

    /// An object that a reader has attached for later readers, such as a decoded model. The next change of the entry
    /// drops it. Set only with ``hasRoom``.
    var attachment: Unmanaged<Attachment>? {
        get {
            guard hasRoom, let object = (address + Self.headBytes).load(as: UnsafeRawPointer?.self) else { return nil }
            return .fromOpaque(object)
        }
        nonmutating set {
            precondition(hasRoom, "an entry has no room for an attachment")
            (address + Self.headBytes).storeBytes(of: newValue?.toOpaque(), as: UnsafeMutableRawPointer?.self)
        }
    }

    // MARK: Size

    /// The size of the entry's cell or block, in bytes.
    var byteCount: Int {
        if isBlock { return Int(block.pointee.capacity) + EntryBlock.overheadBytes }
        return CellSize.bytes(Self.byteCount(key: keyCount, record: recordCount, hasRoom: hasRoom))
    }

    /// The size of an outsize (very large) entry in bytes; 0 for other entries.
    var outsizeByteCount: Int {
        guard isBlock else { return 0 }
        let byteCount = byteCount
        return byteCount >= Self.outsizeBytesMin ? byteCount : 0
    }
    /// The smallest size of an outsize entry: 1 MiB.
    private static let outsizeBytesMin = 1 << 20

    // MARK: Pins

    /// Keeps the key and the record unchanged until ``unpin()``, even if the key is written or removed. So the caller
    /// can read them without the lock. For records of at least ``EngineOptions/pinnedBytesMin``.
    /// - Returns: false if the entry has no block of its own, or too many pins already.
    func pin() -> Bool {
        guard isBlock, block.pointee.pins < .max else { return false }
        block.pointee.pins += 1
        return true
    }

    /// Ends a ``pin()``. Called with the lock held.
    func unpin() {
        block.pointee.pins -= 1
        if block.pointee.pins == 0, block.pointee.isOrphan { systemFree(block) }
    }
}

/// The start of the memory of a long entry. The entry's head follows it.
struct EntryBlock {
    /// The number of bytes for head, key and record.
    let capacity: UInt32
    var keyCount: UInt32 = 0
    var recordCount: UInt32 = 0
    /// The number of readers that use the record without the lock. While it is not 0, the memory is neither changed nor
    /// freed, even if the entry has left the table.
    var pins: UInt8 = 0
    /// Whether the entry has left the table while it is pinned. The last ``EntryPointer/unpin()`` then frees its
    /// memory.
    var isOrphan = false

    init(capacity: Int) { self.capacity = UInt32(capacity) }

    /// The size of this structure, rounded up so that the head is aligned.
    static let byteCount = 16
    /// The size of a block in addition to its capacity: this structure and the allocator's overhead.
    static let overheadBytes = 32

    /// Allocates the block of an entry, which belongs to no table yet. Writes the key, but not the record.
    static func make(_ key: UnsafeRawBufferPointer, recordCount: Int, hasRoom: Bool = false) -> EntryPointer {
        let capacity = (EntryPointer.byteCount(key: key.count, record: recordCount, hasRoom: hasRoom) + 15) & ~15
        guard let memory = malloc(byteCount + capacity) else { fatalError("out of memory: \(capacity) bytes") }
        memory.bindMemory(to: EntryBlock.self, capacity: 1).initialize(to: EntryBlock(capacity: capacity))
        return EntryPointer(
            at: memory + byteCount, key, recordCount: recordCount, isBlock: true, hasRoom: hasRoom)
    }

    /// Frees the block of an entry. If the entry is pinned, the last ``EntryPointer/unpin()`` frees it. The attachment
    /// must be detached first.
    static func free(_ entry: EntryPointer) {
        guard entry.block.pointee.pins == 0 else {
            entry.block.pointee.isOrphan = true
            return
        }
        systemFree(entry.block)
    }

    /// Returns whether a record of `count` bytes fits into the block of an entry without wasting more than half of it.
    static func fits(_ entry: EntryPointer, _ count: Int) -> Bool {
        if entry.block.pointee.pins > 0 { return false }
        let needed = EntryPointer.byteCount(key: entry.keyCount, record: count, hasRoom: entry.hasRoom)
        let capacity = Int(entry.block.pointee.capacity)
        return needed <= capacity && capacity <= 2 * needed
    }
}

/// The sizes of the cells that contain entries: steps of 8 bytes up to 512 bytes, and then such that a whole page
/// contains 31, 30, …, 8 cells.
enum CellSize {
    static let bytesMax = 2048
    /// The number of sizes, plus one: there are no cells of 0 bytes.
    static let classCount = 89
    private static let finestBytesMax = 512

    /// Returns the size of the cell for `count` bytes, at most ``bytesMax``.
    @inline(__always)
    static func bytes(_ count: Int) -> Int {
        let count = (count + 7) & ~7
        if count <= finestBytesMax { return count }
        return PageSource.pageBytes / (PageSource.pageBytes / count) & ~7
    }

    /// Returns the number of the size of a cell of `bytes` bytes, from 1 to ``classCount`` - 1.
    @inline(__always)
    static func index(_ bytes: Int) -> Int { bytes <= finestBytesMax ? bytes >> 3 : 96 - PageSource.pageBytes / bytes }
}
