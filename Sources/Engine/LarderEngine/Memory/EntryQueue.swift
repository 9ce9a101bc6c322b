/// A queue of trivial items, such as references of entries. The position of an item is a number that stays the same
/// while the item is in the queue, so that an entry can store it.
///
/// The items are in chunks. So the queue grows without copying them, and frees the memory of removed ones. Its owner
/// must call ``deallocate()`` at the end. All accesses are to positions from ``first`` to the newest.
struct EntryQueue<Item> {
    private static var chunkBits: UInt32 { 6 }
    private static var chunkCount: Int { 1 << chunkBits }

    /// The chunks from `firstChunk` to `endChunk`, in memory for `capacity` of them.
    private var chunks: UnsafeMutablePointer<UnsafeMutablePointer<Item>>
    private var capacity = 0
    private var firstChunk = 0
    private var endChunk = 0
    /// The position of the first item that would fit into the first chunk. Positions are numbers modulo 2^32.
    private var origin: UInt32 = 0
    /// The position of the oldest item.
    private(set) var first: UInt32 = 0
    private(set) var count = 0
    /// The total size of the entries of the items, and of the outsize (very large) ones among them, in bytes.
    private(set) var entryBytes = 0
    private(set) var outsizeBytes = 0

    init() { chunks = .allocate(capacity: 0) }

    /// The size of the queue's own memory, in bytes.
    var byteCount: Int { (endChunk - firstChunk) * (Self.chunkCount * MemoryLayout<Item>.stride + 16) }

    var isEmpty: Bool { count == 0 }

    /// A pointer to the item at a position, valid until the queue changes.
    @inline(__always)
    subscript(position: UInt32) -> UnsafeMutablePointer<Item> {
        assert(position &- first < UInt32(count), "there is no such item")
        let offset = position &- origin
        return chunks[firstChunk + Int(offset >> Self.chunkBits)] + Int(offset & (1 << Self.chunkBits - 1))
    }

    /// Calls `body` with each item, from the oldest on. `body` must not change the queue.
    func forEachItem(_ body: (UnsafeMutablePointer<Item>) -> Void) {
        for index in 0..<UInt32(count) { body(self[first &+ index]) }
    }

    /// Adds an item, and the size of its entry.
    /// - Returns: the item's position.
    mutating func append(_ item: Item, of entry: EntryPointer) -> UInt32 {
        precondition(_isPOD(Item.self), "items must need no reference counting")
        let position = first &+ UInt32(count)
        if Int((position &- origin) >> Self.chunkBits) == endChunk - firstChunk { addChunk() }
        count += 1
        self[position].initialize(to: item)
        add(entry)
        return position
    }

    /// Changes the sizes, because an entry got other memory.
    mutating func replace(_ old: EntryPointer, by new: EntryPointer) {
        subtract(old)
        add(new)
    }

    private mutating func add(_ entry: EntryPointer) {
        entryBytes += entry.byteCount
        if entry.isBlock { outsizeBytes += entry.outsizeByteCount }
    }

    private mutating func subtract(_ entry: EntryPointer) {
        entryBytes -= entry.byteCount
        if entry.isBlock { outsizeBytes -= entry.outsizeByteCount }
    }

    /// Removes the oldest item, and subtracts the size of its entry.
    mutating func removeFirst(of entry: EntryPointer) {
        subtract(entry)
        first &+= 1
        count -= 1
        if count == 0 {
            removeChunks()
        } else if first &- origin == UInt32(Self.chunkCount) {
            chunks[firstChunk].deallocate()
            firstChunk += 1
            origin = first
        }
    }

    /// Removes all items, and frees their memory.
    mutating func removeAll() {
        removeChunks()
        (count, entryBytes, outsizeBytes) = (0, 0, 0)
    }

    /// Frees everything. The queue must not be used again.
    mutating func deallocate() {
        removeChunks()
        chunks.deallocate()
    }

    private mutating func removeChunks() {
        for index in firstChunk..<endChunk { chunks[index].deallocate() }
        (firstChunk, endChunk, origin, first) = (0, 0, 0, 0)
    }

    private mutating func addChunk() {
        if endChunk == capacity { makeSpace() }
        (chunks + endChunk).initialize(to: .allocate(capacity: Self.chunkCount))
        endChunk += 1
    }

    /// Moves the list of chunks to the start of its memory, or to more memory.
    private mutating func makeSpace() {
        let used = endChunk - firstChunk
        let newCapacity = max(4, 2 * used)
        let moved = UnsafeMutablePointer<UnsafeMutablePointer<Item>>.allocate(capacity: newCapacity)
        moved.initialize(from: chunks + firstChunk, count: used)
        chunks.deallocate()
        (chunks, capacity, firstChunk, endChunk) = (moved, newCapacity, 0, used)
    }
}
