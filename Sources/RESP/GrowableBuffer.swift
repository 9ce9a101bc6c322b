// The memory under the parsers and the reply writer.
//
//      base          head                 tail            base + capacity
//      | consumed    | live bytes         | free          |
//
// - 0 <= head <= tail <= capacity.
// - Positions that users keep are relative to `head`, so that moving the live bytes does not disturb them.
// - Moving costs O(1) per byte appended, amortized: the live bytes move only when at least as many bytes were
//   consumed since the last move, or into memory that leaves at least as many bytes free.

/// A queue of bytes: appended at the tail, consumed at the head. Single owner.
struct GrowableBuffer: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private(set) var capacity = 0
    private var head = 0
    private var tail = 0
    /// Its own memory, while it works on somebody else's.
    private var own: (base: UnsafeMutableRawPointer, capacity: Int)?
    /// Bytes that were copied to make room, over the life of the buffer. Lets tests see that the work is linear.
    private(set) var bytesMoved = 0

    /// Above this an empty buffer gives its memory back rather than keep it for the next request.
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

    /// The free bytes behind the live ones. Valid until the next mutating call.
    var free: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: base + tail, count: capacity - tail)
    }

    /// The first free byte. Valid until the next mutating call.
    var freeStart: UnsafeMutableRawPointer { base + tail }

    /// Makes at least `room` bytes free behind the live ones.
    ///
    /// Memory grows by doubling. While `expected`, the number of live bytes at which a message that has begun
    /// will be complete, is not reached, it does not grow beyond what that message needs. Once a 16th of a message is
    /// there, and it is long, memory for all of it is asked for at once: moving hundreds of megabytes again and again
    /// holds up whoever waits for this thread, and pages that are not written to cost nothing.
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

    /// Counts the first `count` free bytes as live. The caller wrote them.
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
            // What a large message took is not kept until the next one: its bytes may have been copied elsewhere.
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

    /// Keeps the live bytes and gives back all other memory.
    mutating func shrink() {
        if own == nil, capacity > count { move(toCapacity: count) }
    }

    // MARK: Borrowing

    /// Takes `bytes` as its live bytes where they lie, instead of copying them. There must be no live bytes; until
    /// ``endBorrowing(expected:)`` they may be consumed and changed in place, and nothing may be appended.
    ///
    /// The lender keeps the memory valid, and touches it no more, until then.
    mutating func beginBorrowing(_ bytes: UnsafeMutableRawBufferPointer) {
        precondition(count == 0 && own == nil, "memory is borrowed only by an empty buffer")
        guard let start = bytes.baseAddress else { return }
        own = (base, capacity)
        base = start
        capacity = bytes.count
        head = 0
        tail = bytes.count
    }

    /// Copies what is left of the borrowed bytes into its own memory, and gives the borrowed memory back. Does nothing
    /// when none is borrowed.
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
