import LarderPlatform

/// Reads a file or a pipe line by line. Text after the last line break is not a line. For one thread at a time.
final class LineReader {
    /// The maximum length of a line in bytes (1 GiB): more than the longest value needs in base 64.
    static let bytesMax = 1 << 30

    private static let readBytes = 262_144

    private let descriptor: Int32
    private let name: String
    private let memory = Memory()
    /// The range in ``memory`` of the bytes that were read from the file, but not returned yet.
    private var start = 0
    private var end = 0
    /// The number of bytes after `start` that were searched and contain no line break.
    private var searched = 0
    /// The offset of the next line in the file.
    private(set) var offset: Int
    /// The offset, in the file, of the line returned last.
    private(set) var lineStart = 0
    /// The number of the line returned last. The first line has the number 1.
    private(set) var number: Int

    /// - Parameters:
    ///   - offset: the current position of the descriptor in the file.
    ///   - number: the number of lines before that position.
    init(_ descriptor: Int32, name: String, offset: Int = 0, number: Int = 0) {
        self.descriptor = descriptor
        self.name = name
        self.offset = offset
        self.number = number
    }

    /// Whether there are bytes after the last line break. Valid at the end of the file.
    var hasHalfLine: Bool { end > start }

    /// Whether a complete line is in memory, so that ``next(_:)`` would not wait.
    var hasLine: Bool {
        let rest = UnsafeRawBufferPointer(rebasing: memory.bytes[start + searched..<end])
        return rest.baseAddress.flatMap { memchr($0, 0x0A, rest.count) } != nil
    }

    /// Returns and removes the text after the last line break, at the end of the file; nil if there is none.
    func takeHalfLine() -> [UInt8]? {
        guard hasHalfLine else { return nil }
        let line = Array(memory.bytes[start..<end])
        lineStart = offset
        offset += line.count
        (start, searched) = (end, 0)
        number += 1
        return line
    }

    /// Calls `body` with the next line, without its line break.
    /// - Returns: the result of `body`; nil if there is no further complete line.
    func next<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result? {
        while true {
            let rest = UnsafeRawBufferPointer(rebasing: memory.bytes[start + searched..<end])
            if let found = rest.baseAddress.flatMap({ memchr($0, 0x0A, rest.count) }), let base = rest.baseAddress {
                let length = searched + (UnsafeRawPointer(found) - base)
                let line = UnsafeRawBufferPointer(rebasing: memory.bytes[start..<start + length])
                start += length + 1
                lineStart = offset
                offset += length + 1
                searched = 0
                number += 1
                return try body(line)
            }
            searched = end - start
            guard searched < Self.bytesMax else {
                throw InputOutputError(message: "\(name): line \(number + 1) has more than \(Self.bytesMax) bytes")
            }
            guard try fill() else { return nil }
        }
    }

    /// Reads more bytes.
    /// - Returns: false at the end of the file.
    private func fill() throws(InputOutputError) -> Bool {
        memory.makeRoom(Self.readBytes, &start, &end)
        let count = Descriptor.read(
            descriptor, memory.bytes.baseAddress.map { $0 + end }, memory.bytes.count - end)
        guard count >= 0 else {
            throw InputOutputError(message: "\(name) could not be read: \(SystemErrorText.of(errno))")
        }
        end += count
        return count > 0
    }

    /// The buffer for the bytes that were read.
    private final class Memory {
        var bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: LineReader.readBytes * 2, alignment: 16)

        deinit { bytes.deallocate() }

        /// Makes space after `end`: moves the used bytes to the front, or into a larger buffer if necessary. Uses a
        /// smaller buffer again after a long line.
        func makeRoom(_ room: Int, _ start: inout Int, _ end: inout Int) {
            let used = end - start
            let usual = LineReader.readBytes * 2
            let isTooMuch = bytes.count > 64 * usual && used < usual
            if used + room > bytes.count || isTooMuch {
                let more = UnsafeMutableRawBufferPointer.allocate(
                    byteCount: isTooMuch ? used + usual : max(2 * bytes.count, used + room), alignment: 16)
                more.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                bytes.deallocate()
                bytes = more
            } else if end + room > bytes.count {
                bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            } else {
                return
            }
            (start, end) = (0, used)
        }
    }
}
