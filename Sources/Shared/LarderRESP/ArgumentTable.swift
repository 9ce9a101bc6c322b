// The table of the positions of a request's arguments.

/// The position and the length of an argument, in bytes.
@usableFromInline package struct ArgumentSlice {
    @usableFromInline var offset: UInt32
    @usableFromInline var length: UInt32

    init(offset: Int, length: Int) {
        (self.offset, self.length) = (UInt32(truncatingIfNeeded: offset), UInt32(truncatingIfNeeded: length))
    }
}

/// The position and the length of each argument of a request, in order. Positions count from the start of the request.
/// For one thread at a time.
///
/// The table grows with the arguments that arrive. Positions have 32 bits, which halves the memory; ``RESPLimits``
/// allows only requests that are small enough for that.
struct ArgumentTable: ~Copyable {
    private var slices: UnsafeMutablePointer<ArgumentSlice>
    private(set) var capacity = 0
    private(set) var count = 0

    /// The smallest capacity, in arguments. Freeing such a small table would save less than allocating it again costs.
    private static let keptCapacity = 8

    init() { slices = .allocate(capacity: 0) }

    deinit {
        slices.deallocate()
    }

    subscript(index: Int) -> ArgumentSlice {
        precondition(index >= 0 && index < count, "no such argument")
        return slices[index]
    }

    /// A pointer to the positions. Valid until the next mutating call.
    var start: UnsafePointer<ArgumentSlice> { UnsafePointer(slices) }

    mutating func append(offset: Int, length: Int) {
        if count == capacity { move(toCapacity: max(Self.keptCapacity, capacity * 2)) }
        (slices + count).initialize(to: ArgumentSlice(offset: offset, length: length))
        count += 1
    }

    mutating func removeAll() { count = 0 }

    mutating func shrink() {
        let wanted = max(count, Self.keptCapacity)
        if capacity > wanted { move(toCapacity: wanted) }
    }

    private mutating func move(toCapacity newCapacity: Int) {
        let moved = UnsafeMutablePointer<ArgumentSlice>.allocate(capacity: newCapacity)
        moved.initialize(from: slices, count: count)
        slices.deallocate()
        slices = moved
        capacity = newCapacity
    }
}

/// The beginning of a request up to its name, as in `*2\r\n$3\r\nGET\r\n`, to find requests with the same name and
/// number of arguments quickly. Only for names of at most six bytes.
package struct RequestHead {
    private var first: UInt64 = 0
    private var last: UInt64 = 0
    /// The length of the head; 0 if the name is longer, so that no request has the same head.
    fileprivate(set) var byteCount = 0
    fileprivate(set) var argumentCount = 0
    static var nameOffset: Int { 8 }
    /// Whether the last request that was found has the same head as the one before.
    package internal(set) var isRepeated = false

    package init() {}

    /// Whether a request, of which there are at least 16 bytes, begins with this head.
    @inline(__always)
    func isEqual(_ text: UnsafeRawPointer) -> Bool {
        byteCount > 0 && text.loadUnaligned(as: UInt64.self) == first
            && text.loadUnaligned(fromByteOffset: byteCount - 8, as: UInt64.self) == last
    }

    /// Reads the head of a request, of which there are at least 16 bytes.
    /// - Returns: false if the request does not have the usual form.
    mutating func read(_ text: UnsafeRawPointer, argumentsMax: Int) -> Bool {
        byteCount = 0
        argumentCount = Int(text.load(fromByteOffset: 1, as: UInt8.self) &- ASCII.zero)
        guard text.load(as: UInt8.self) == UInt8(ascii: "*"), argumentCount >= 1, argumentCount <= argumentsMax,
            text.loadUnaligned(fromByteOffset: 2, as: UInt16.self) == Self.lineEnd
        else { return false }
        let nameLength = Int(text.load(fromByteOffset: 5, as: UInt8.self) &- ASCII.zero)
        guard nameLength >= 1, nameLength <= 6, text.loadUnaligned(fromByteOffset: 6, as: UInt16.self) == Self.lineEnd
        else { return true }
        byteCount = Self.nameOffset + nameLength + 2
        first = text.loadUnaligned(as: UInt64.self)
        last = text.loadUnaligned(fromByteOffset: byteCount - 8, as: UInt64.self)
        return true
    }

    /// The bytes CR LF as a number in the machine's byte order.
    static var lineEnd: UInt16 { UInt16(littleEndian: UInt16(ASCII.lineFeed) << 8 | UInt16(ASCII.carriageReturn)) }
}

// Fast access to the arguments of a command, for callers that read several of them.

/// The arguments of a parser's current command. Valid until the next mutating call of the parser. After such a call,
/// call ``RequestParser/currentArguments()`` again.
///
/// Returns the same bytes as ``RequestParser/argument(_:)``, but faster: an access reads only two values from memory.
@usableFromInline package struct RequestArguments {
    @usableFromInline let start: UnsafeRawPointer
    @usableFromInline let slices: UnsafePointer<ArgumentSlice>
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
