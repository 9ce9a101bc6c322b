// The common part of both parsers: the received bytes, and the search for line ends.

/// The received bytes. The bytes before ``cursor`` are parsed. For one thread at a time.
///
/// Positions count from the first byte that was not dropped yet. The search for a line end continues where it stopped,
/// so no byte is searched twice, even if the bytes arrive in many small pieces.
struct IncomingBytes: ~Copyable {
    /// The state of the line at the cursor.
    enum Line {
        /// The end of the line has not arrived yet.
        case incomplete
        /// The line is longer than allowed. Its end may not have arrived yet.
        case tooLong
        /// The line does not end with CR LF, but with CR or LF alone.
        case malformed
        /// The line is complete. The value is its length in bytes without the line end.
        case complete(Int)
    }

    var buffer = GrowableBuffer()
    /// The first byte that is not parsed yet.
    private(set) var cursor = 0
    /// The number of bytes at the cursor that were searched without finding the line's end.
    private var searched = 0
    /// The number of bytes read so far to find and parse lines. Tests use it to check that the cost is linear.
    private(set) var bytesExamined = 0

    /// The number of received bytes at and after the cursor.
    var available: Int { buffer.count - cursor }

    /// A pointer to the byte at the cursor. There must be such a byte.
    var current: UnsafeMutableRawPointer { buffer.start + cursor }

    /// See ``GrowableBuffer/reserve(_:expected:)``.
    mutating func writableSpace(atLeast room: Int, expected: Int) -> UnsafeMutableRawBufferPointer {
        buffer.reserve(max(room, 0), expected: expected)
        return buffer.free
    }

    /// See ``GrowableBuffer/beginBorrowing(_:)``. Copies the bytes instead if the buffer is not empty.
    mutating func borrow(_ bytes: UnsafeMutableRawBufferPointer, expected: Int) {
        if buffer.count == 0 {
            buffer.beginBorrowing(bytes)
        } else {
            buffer.append(UnsafeRawBufferPointer(bytes), expected: expected)
        }
    }

    /// Adds the number of bytes that a parser has read itself to ``bytesExamined``.
    mutating func noteExamined(_ count: Int) { bytesExamined &+= count }

    /// Moves the cursor forward by `count` bytes.
    mutating func advance(_ count: Int) {
        cursor += count
        searched = 0
    }

    /// Drops the bytes before the cursor.
    mutating func dropParsed() {
        buffer.consume(cursor)
        cursor = 0
    }

    /// Parses the line at the cursor if it has the usual form: one type byte, up to 18 digits without leading zeros, CR
    /// LF. Then moves the cursor past the line.
    ///
    /// Returns nil for any other line, which may still be valid: then call ``crlfLine(limit:)``. Also nil if
    /// ``crlfLine(limit:)`` has already searched the line: a line in many pieces must not be read again for each one.
    @inline(__always)
    mutating func usualHeader() -> Int? {
        guard searched == 0 else { return nil }
        let text = current
        // Read at most 18 digits, so that the number cannot overflow.
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

    /// Searches for the end of the line at the cursor. The line must end with CR LF.
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

    /// Searches for the end of the line at the cursor: the next LF. A CR before the LF counts as part of the line.
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
