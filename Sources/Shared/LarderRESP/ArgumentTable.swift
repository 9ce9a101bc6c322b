// The table of the positions of a request's arguments.

/// The position and the length of each argument of a request, in order. Positions count from the start of the request.
/// For one thread at a time.
///
/// The table grows with the arguments that arrive. Positions have 32 bits, which halves the memory; ``RESPLimits``
/// allows only requests that are small enough for that.
@usableFromInline struct ArgumentTable: ~Copyable {
    @usableFromInline struct Slice {
        @usableFromInline var offset: UInt32
        @usableFromInline var length: UInt32
    }

    private var slices: UnsafeMutablePointer<Slice>
    private(set) var capacity = 0
    private(set) var count = 0

    /// The smallest capacity, in arguments. Freeing such a small table would save less than allocating it again costs.
    private static let keptCapacity = 8

    init() {
        slices = .allocate(capacity: 0)
    }

    deinit {
        slices.deallocate()
    }

    subscript(index: Int) -> Slice {
        precondition(index >= 0 && index < count, "no such argument")
        return slices[index]
    }

    /// A pointer to the positions. Valid until the next mutating call.
    var start: UnsafePointer<Slice> { UnsafePointer(slices) }

    mutating func append(offset: Int, length: Int) {
        if count == capacity { move(toCapacity: max(Self.keptCapacity, capacity * 2)) }
        let slice = Slice(offset: UInt32(truncatingIfNeeded: offset), length: UInt32(truncatingIfNeeded: length))
        (slices + count).initialize(to: slice)
        count += 1
    }

    mutating func removeAll() {
        count = 0
    }

    mutating func shrink() {
        let wanted = max(count, Self.keptCapacity)
        if capacity > wanted { move(toCapacity: wanted) }
    }

    private mutating func move(toCapacity newCapacity: Int) {
        let moved = UnsafeMutablePointer<Slice>.allocate(capacity: newCapacity)
        moved.initialize(from: slices, count: count)
        slices.deallocate()
        slices = moved
        capacity = newCapacity
    }
}

// Fast access to the arguments of a command, for callers that read several of them.

/// The arguments of a parser's current command. Valid until the next mutating call of the parser. After such a call,
/// call ``RequestParser/currentArguments()`` again.
///
/// Returns the same bytes as ``RequestParser/argument(_:)``, but faster: an access reads only two values from memory.
@usableFromInline package struct RequestArguments {
    @usableFromInline let start: UnsafeRawPointer
    @usableFromInline let slices: UnsafePointer<ArgumentTable.Slice>
    /// The number of arguments, including the command's name.
    @usableFromInline package let count: Int

    /// The length of the request in bytes, from the command's name to the end of the last argument.
    @inlinable package var byteCount: Int {
        let (first, last) = (slices[0], slices[count - 1])
        return Int(last.offset) + Int(last.length) - Int(first.offset)
    }

    /// The argument at an index; index 0 is the command's name.
    @inlinable package subscript(index: Int) -> UnsafeRawBufferPointer {
        precondition(index >= 0 && index < count, "no such argument")
        let slice = slices[index]
        return UnsafeRawBufferPointer(start: start + Int(slice.offset), count: Int(slice.length))
    }
}
