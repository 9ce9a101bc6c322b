// The buffer in which the parsers collect received bytes and ``ReplyBuffer`` collects replies.
//
//      base          head                 tail            base + capacity
//      | consumed    | live bytes         | free          |
//
// - 0 <= head <= tail <= capacity.
// - The users of the buffer store positions relative to `head`, so they stay valid when the live bytes move.
// - Moving the live bytes costs amortized O(1) for each appended byte. `n` live bytes are moved only if at least `n`
//   bytes were consumed since the last move, or into new memory with at least `n` free bytes.

/// A queue of bytes: they are appended at the tail and consumed at the head. For one thread at a time.
struct GrowableBuffer: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private(set) var capacity = 0
    private var head = 0
    private var tail = 0
    /// The buffer's own memory while `base` is borrowed memory; nil otherwise.
    private var own: (base: UnsafeMutableRawPointer, capacity: Int)?
    /// The total number of live bytes moved so far. Tests use it to check that the cost is linear.
    private(set) var bytesMoved = 0

    /// An empty buffer frees its memory if its capacity is larger than this, in bytes (1 MiB).
    private static let keptBytesMax = 1 << 20

    init() { base = .allocate(byteCount: 0, alignment: Self.alignment) }

    deinit {
        (own?.base ?? base).deallocate()
    }

    private static var alignment: Int { MemoryLayout<UInt>.alignment }

    /// The number of live bytes: those appended and not consumed yet.
    var count: Int { tail - head }

    /// The first live byte. Valid until the next mutating call.
    var start: UnsafeMutableRawPointer { base + head }

    /// The free bytes after the live bytes. Valid until the next mutating call.
    var free: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: base + tail, count: capacity - tail)
    }

    /// The first free byte. Valid until the next mutating call.
    var freeStart: UnsafeMutableRawPointer { base + tail }

    /// Reserves space for at least `room` bytes after the live bytes.
    ///
    /// Memory grows by doubling, but not beyond the size of the message being received (`expected`) until that message
    /// is complete. When at least 1 MiB and a 16th of a long message has arrived, memory for the whole message is
    /// allocated in one step. Moving hundreds of megabytes repeatedly would delay all clients of this thread, and
    /// memory pages that are not written cost nothing.
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
            // The two areas do not overlap, because `head >= live`.
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

    /// Makes the first `count` free bytes live, after the caller has written them.
    mutating func commit(_ count: Int) {
        precondition(count >= 0 && count <= capacity - tail, "more bytes committed than were free")
        tail += count
    }

    /// Removes the first `count` live bytes. Frees large memory when no bytes are left.
    mutating func consume(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "more bytes consumed than there are")
        head += count
        if head == tail {
            head = 0
            tail = 0
            // Do not keep the memory of a large message, because the next messages are probably smaller.
            if capacity > Self.keptBytesMax, own == nil { move(toCapacity: 0) }
        }
    }

    /// Removes the last `count` live bytes.
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

    /// Uses the caller's memory as live bytes, without copying it. The buffer must be empty. Until
    /// ``endBorrowing(expected:)``, the bytes may be consumed and changed in place, but nothing may be appended.
    ///
    /// Until then, the caller must keep the memory valid and must not change it.
    mutating func beginBorrowing(_ bytes: UnsafeMutableRawBufferPointer) {
        precondition(count == 0 && own == nil, "memory is borrowed only by an empty buffer")
        guard let start = bytes.baseAddress else { return }
        own = (base, capacity)
        base = start
        capacity = bytes.count
        head = 0
        tail = bytes.count
    }

    /// Copies the live bytes from borrowed memory into the buffer's own memory, and stops using the borrowed memory.
    /// Does nothing if no memory is borrowed.
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
