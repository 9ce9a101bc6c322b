// The memory under the parsers and the reply writer.
//
//      base          head                 tail            base + capacity
//      | consumed    | live bytes         | free          |
//
// - 0 <= head <= tail <= capacity.
// - Users' positions are relative to `head`, so moving the live bytes does not affect them.
// - Moving costs O(1) per byte appended, amortized: the live bytes move only when at least as many bytes were consumed
//   since the last move, or into memory that leaves at least as many bytes free.

/// A queue of bytes: appended at the tail, consumed at the head. Single owner.
struct GrowableBuffer: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private(set) var capacity = 0
    private var head = 0
    private var tail = 0
    /// Its own memory while it uses borrowed memory.
    private var own: (base: UnsafeMutableRawPointer, capacity: Int)?
    /// Bytes copied to free space, over the life of the buffer. For tests of linear cost.
    private(set) var bytesMoved = 0

    /// The capacity above which an empty buffer frees its memory instead of keeping it for the next request.
    private static let keptBytesMax = 1 << 20

    init() {
        base = .allocate(byteCount: 0, alignment: Self.alignment)
    }

    deinit {
        (own?.base ?? base).deallocate()
    }

    private static var alignment: Int { MemoryLayout<UInt>.alignment }

    /// Number of live bytes.
    var count: Int { tail - head }

    /// The first live byte. Valid until the next mutating call.
    var start: UnsafeMutableRawPointer { base + head }

    /// The free bytes after the live ones. Valid until the next mutating call.
    var free: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: base + tail, count: capacity - tail)
    }

    /// The first free byte. Valid until the next mutating call.
    var freeStart: UnsafeMutableRawPointer { base + tail }

    /// Reserves space for at least `room` bytes after the live ones.
    ///
    /// Memory grows by doubling. Until the live bytes reach `expected`, the size of the message that has begun, memory
    /// does not grow beyond that size. Once a 16th of a long message has arrived, memory for all of it is allocated:
    /// moving hundreds of megabytes again and again would delay every client of this thread, and unwritten pages cost
    /// nothing.
    mutating func reserve(_ room: Int, expected: Int = 0) {
        if capacity - tail >= room {
            if count > 0 || capacity <= Self.keptBytesMax { return }
        }
        relocate(room, expected: expected)
    }

    private mutating func relocate(_ room: Int, expected: Int) {
        precondition(own == nil, "borrowed memory cannot grow")
        let live = count
        let needed = live + room
        if live == 0, capacity > Self.keptBytesMax, needed <= Self.keptBytesMax {
            move(toCapacity: needed)
        } else if needed <= capacity, head >= live {
            // The areas do not overlap; memmove would be right even if they did.
            base.copyMemory(from: base + head, byteCount: live)
            bytesMoved &+= live
            head = 0
            tail = live
        } else {
            let doubled = live * 2
            let isWellUnderWay = live >= Self.keptBytesMax && live >= expected / 16
            let target = live < expected ? isWellUnderWay ? expected + room : min(doubled, expected + room) : doubled
            move(toCapacity: max(needed, target))
        }
    }

    private mutating func move(toCapacity newCapacity: Int) {
        let live = count
        let moved = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: Self.alignment)
        moved.copyMemory(from: base + head, byteCount: live)
        bytesMoved &+= live
        base.deallocate()
        base = moved
        capacity = newCapacity
        head = 0
        tail = live
    }

    /// Counts the first `count` free bytes as live. The caller has written them.
    mutating func commit(_ count: Int) {
        precondition(count >= 0 && count <= capacity - tail, "more bytes committed than were free")
        tail += count
    }

    /// Drops the first `count` live bytes.
    mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "more bytes consumed than there are")
        head += count
        if head == tail {
            head = 0
            tail = 0
            // The memory of a large message is not kept until the next one: its bytes may have been copied elsewhere.
            if capacity > Self.keptBytesMax, own == nil { move(toCapacity: 0) }
        }
    }

    /// Drops the last `count` live bytes.
    mutating func removeLast(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "more bytes dropped than there are")
        tail -= count
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer, expected: Int = 0) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count, expected: expected)
        (base + tail).copyMemory(from: source, byteCount: bytes.count)
        tail += bytes.count
    }

    /// Keeps the live bytes and frees all other memory.
    mutating func shrink() {
        if own == nil, capacity > count { move(toCapacity: count) }
    }

    // MARK: Borrowing

    /// Uses `bytes` in place as its live bytes, without copying. There must be no live bytes. Until
    /// ``endBorrowing(expected:)`` they may be consumed and changed in place, and nothing may be appended.
    ///
    /// The lender keeps the memory valid, and does not touch it, until then.
    mutating func beginBorrowing(_ bytes: UnsafeMutableRawBufferPointer) {
        precondition(count == 0 && own == nil, "memory is borrowed only by an empty buffer")
        guard let start = bytes.baseAddress else { return }
        own = (base, capacity)
        base = start
        capacity = bytes.count
        head = 0
        tail = bytes.count
    }

    /// Copies the rest of the borrowed bytes into its own memory, and releases the borrowed memory. Does nothing when
    /// none is borrowed.
    mutating func endBorrowing(expected: Int = 0) {
        guard let own else { return }
        let rest = UnsafeRawBufferPointer(start: base + head, count: count)
        self.own = nil
        base = own.base
        capacity = own.capacity
        head = 0
        tail = 0
        append(rest, expected: expected)
    }
}
