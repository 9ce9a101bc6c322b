import LarderPlatform

/// Reads a file or a pipe line by line. Text after the last line break is not a line. For one thread at a time.
final class LineReader {
    /// The maximum length of a line in bytes (1 GiB): more than the longest value needs in base 64.
    static let bytesMax = 1 << 30

    private static let readBytes = 262_144

    private let descriptor: Int32
    private let name: String
    private var piece = [UInt8](repeating: 0, count: LineReader.readBytes)
    /// The bytes that were read from the file. Those before ``start`` were returned already.
    private var bytes: [UInt8] = []
    private var start = 0
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
        (self.descriptor, self.name, self.offset, self.number) = (descriptor, name, offset, number)
    }

    /// Whether there are bytes after the last line break. Valid at the end of the file.
    var hasHalfLine: Bool { bytes.count > start }

    /// Whether a complete line is in memory, so that ``next(_:)`` would not wait.
    var hasLine: Bool { lineEnd != nil }

    /// The index of the next line break in ``bytes``; nil if there is none.
    private var lineEnd: Int? {
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            let from = start + searched
            return memchr(base + from, 0x0A, bytes.count - from).map { UnsafeRawPointer($0) - base }
        }
    }

    /// Returns and removes the text after the last line break, at the end of the file; nil if there is none.
    func takeHalfLine() -> [UInt8]? {
        guard hasHalfLine else { return nil }
        defer { pass(to: bytes.count) }
        return Array(bytes[start...])
    }

    /// Moves behind the line that ends at an index of ``bytes``.
    private func pass(to end: Int) {
        lineStart = offset
        offset += end - start
        (start, searched) = (end, 0)
        number += 1
    }

    /// Calls `body` with the next line, without its line break.
    /// - Returns: the result of `body`; nil if there is no further complete line.
    func next<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result? {
        while true {
            if let end = lineEnd {
                let line = start..<end
                pass(to: end + 1)
                return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[line])) }
            }
            searched = bytes.count - start
            guard searched < Self.bytesMax else {
                throw InputOutputError(message: "\(name): line \(number + 1) has more than \(Self.bytesMax) bytes")
            }
            guard try fill() else { return nil }
        }
    }

    /// Reads more bytes, after removing those of the lines that were returned.
    /// - Returns: false at the end of the file.
    private func fill() throws(InputOutputError) -> Bool {
        bytes.removeFirst(start)
        start = 0
        // After a long line, use a small buffer again.
        if bytes.capacity > 128 * Self.readBytes, bytes.count < 2 * Self.readBytes { bytes = bytes.map { $0 } }
        let count = Descriptor.read(descriptor, &piece, piece.count)
        guard count >= 0 else { throw InputOutputError("\(name) could not be read") }
        bytes += piece[..<count]
        return count > 0
    }
}
