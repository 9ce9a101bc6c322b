// What both parsers share: the bytes that arrived, and a search for line ends that never starts over.

/// Bytes that arrived, of which those before ``cursor`` are understood. Single owner.
///
/// Positions count from the first byte that was not yet dropped. No byte is searched for a line end twice, however
/// the stream was cut into pieces.
struct IncomingBytes: ~Copyable {
    /// What was found out about the line at the cursor.
    enum Line {
        /// Its end did not arrive yet.
        case incomplete
        /// It is longer than allowed, whether or not its end arrived.
        case tooLong
        /// It ends in a lone CR or LF.
        case malformed
        /// It is complete, and this many bytes long without its line end.
        case complete(Int)
    }

    private(set) var buffer = GrowableBuffer()
    /// The first byte that is not yet understood.
    private(set) var cursor = 0
    /// Bytes of the line at the cursor that are known not to be its end.
    private var searched = 0
    /// Bytes looked at while searching and reading lines. Lets tests see that the work is linear.
    private(set) var bytesExamined = 0

    /// Number of bytes behind the cursor.
    var available: Int { buffer.count - cursor }

    /// The byte at the cursor. There must be one.
    var current: UnsafeMutableRawPointer { buffer.start + cursor }

    /// See ``GrowableBuffer/reserve(_:expected:)``.
    mutating func writableSpace(atLeast room: Int, expected: Int) -> UnsafeMutableRawBufferPointer {
        buffer.reserve(max(room, 0), expected: expected)
        return buffer.free
    }

    mutating func didWrite(_ count: Int) {
        buffer.commit(count)
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer, expected: Int) {
        buffer.append(bytes, expected: expected)
    }

    /// See ``GrowableBuffer/beginBorrowing(_:)``. Takes a copy where there are bytes already.
    mutating func borrow(_ bytes: UnsafeMutableRawBufferPointer, expected: Int) {
        if buffer.count == 0 {
            buffer.beginBorrowing(bytes)
        } else {
            buffer.append(UnsafeRawBufferPointer(bytes), expected: expected)
        }
    }

    /// See ``GrowableBuffer/endBorrowing(expected:)``. Positions stay what they are: they count from the first live byte.
    mutating func endBorrowing(expected: Int) {
        buffer.endBorrowing(expected: expected)
    }

    /// Counts bytes that a parser looked at itself.
    mutating func noteExamined(_ count: Int) { bytesExamined &+= count }

    /// Moves the cursor `count` bytes on.
    mutating func advance(_ count: Int) {
        cursor += count
        searched = 0
    }

    /// Forgets the bytes before the cursor.
    mutating func dropUnderstood() {
        buffer.consume(cursor)
        cursor = 0
    }

    mutating func shrink() {
        buffer.shrink()
    }

    /// Reads `prefix` digits CR LF at the cursor when all of it is there and looks as usual, and moves behind it.
    ///
    /// Nil says nothing about the line: ask ``crlfLine(limit:)``. Does nothing when the line was searched before, so
    /// that a line that comes in drops is not read again at each of them.
    @inline(__always)
    mutating func usualHeader() -> Int? {
        guard searched == 0 else { return nil }
        let text = current
        // Eighteen digits cannot overflow.
        let stop = min(available, 19)
        var index = 1
        var value = 0
        while index < stop {
            let digit = text.load(fromByteOffset: index, as: UInt8.self) &- ASCII.zero
            if digit > 9 { break }
            value = value &* 10 &+ Int(digit)
            index += 1
        }
        bytesExamined &+= index
        guard index > 1, index + 1 < available,
            text.load(fromByteOffset: index, as: UInt8.self) == ASCII.carriageReturn,
            text.load(fromByteOffset: index + 1, as: UInt8.self) == ASCII.lineFeed,
            index == 2 || text.load(fromByteOffset: 1, as: UInt8.self) != ASCII.zero
        else { return nil }
        cursor += index + 2
        return value
    }

    /// Looks for the end of the line at the cursor, which must be CR LF.
    mutating func crlfLine(limit: Int) -> Line {
        let text = current
        let end = available
        var index = searched
        while index < end {
            let byte = text.load(fromByteOffset: index, as: UInt8.self)
            if byte == ASCII.carriageReturn || byte == ASCII.lineFeed { break }
            index += 1
        }
        bytesExamined &+= index - searched
        searched = index
        if index > limit { return .tooLong }
        if index == end { return .incomplete }
        if text.load(fromByteOffset: index, as: UInt8.self) == ASCII.lineFeed { return .malformed }
        if index + 1 == end { return .incomplete }
        return text.load(fromByteOffset: index + 1, as: UInt8.self) == ASCII.lineFeed ? .complete(index) : .malformed
    }

    /// Looks for the end of the line at the cursor, which is LF. The length excludes the LF only.
    mutating func lfLine(limit: Int) -> Line {
        let text = current
        let end = available
        var index = searched
        while index < end, text.load(fromByteOffset: index, as: UInt8.self) != ASCII.lineFeed { index += 1 }
        bytesExamined &+= index - searched
        searched = index
        if index > limit { return .tooLong }
        return index == end ? .incomplete : .complete(index)
    }
}
