// The common part of both parsers: the bytes that arrived, and a search for line ends that never starts over.

/// Bytes that arrived; those before ``cursor`` are parsed. Single owner.
///
/// Positions count from the first byte that was not yet dropped. No byte is searched for a line end twice, however the
/// stream was cut into pieces.
struct IncomingBytes: ~Copyable {
    /// The state of the line at the cursor.
    enum Line {
        /// Its end has not arrived yet.
        case incomplete
        /// It is longer than allowed, whether or not its end has arrived.
        case tooLong
        /// It ends in a lone CR or LF.
        case malformed
        /// It is complete, and this many bytes long without its line end.
        case complete(Int)
    }

    private(set) var buffer = GrowableBuffer()
    /// The first byte that is not parsed yet.
    private(set) var cursor = 0
    /// The number of bytes at the cursor that were searched without finding the line's end.
    private var searched = 0
    /// Bytes examined while searching and reading lines. For tests of linear cost.
    private(set) var bytesExamined = 0

    /// The number of bytes from the cursor on.
    var available: Int { buffer.count - cursor }

    /// The byte at the cursor, which must exist.
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

    /// See ``GrowableBuffer/beginBorrowing(_:)``. Copies if there are bytes already.
    mutating func borrow(_ bytes: UnsafeMutableRawBufferPointer, expected: Int) {
        if buffer.count == 0 {
            buffer.beginBorrowing(bytes)
        } else {
            buffer.append(UnsafeRawBufferPointer(bytes), expected: expected)
        }
    }

    /// See ``GrowableBuffer/endBorrowing(expected:)``. Positions do not change: they count from the first live byte.
    mutating func endBorrowing(expected: Int) {
        buffer.endBorrowing(expected: expected)
    }

    /// Counts bytes that a parser examined itself.
    mutating func noteExamined(_ count: Int) { bytesExamined &+= count }

    /// Moves the cursor `count` bytes on.
    mutating func advance(_ count: Int) {
        cursor += count
        searched = 0
    }

    /// Drops the bytes before the cursor.
    mutating func dropUnderstood() {
        buffer.consume(cursor)
        cursor = 0
    }

    mutating func shrink() {
        buffer.shrink()
    }

    /// Reads `prefix`, digits and CR LF at the cursor, and moves past them, if all of them have arrived in the usual
    /// form.
    ///
    /// Returns nil for any other line, which may still be valid: call ``crlfLine(limit:)``. Does nothing if the line
    /// was searched before, so a line that arrives in small pieces is not read again at each of them.
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
