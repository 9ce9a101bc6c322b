// Writes to standard output and standard error.

import LarderClient
import LarderPlatform

/// Standard output, or a file, with a buffer. For one thread at a time.
final class Output {
    private static let flushBytes = 65_536

    var buffer: [UInt8] = []
    /// The number of bytes that were written, including those still in the buffer.
    var byteCount: Int { flushedCount + buffer.count }
    private var flushedCount = 0
    private let write: ([UInt8]) throws(InputOutputError) -> Void
    /// Whether the output is a terminal.
    let isTerminal = isatty(STDOUT_FILENO) == 1
    /// Whether keys and values are written to a terminal unchanged, including control characters.
    var isRaw = false

    private var escapes: Bool { isTerminal && !isRaw }

    /// - Parameter write: writes bytes at once; standard output by default.
    init(_ write: @escaping ([UInt8]) throws(InputOutputError) -> Void = Output.writeToStandardOutput) {
        self.write = write
    }

    private static func writeToStandardOutput(_ bytes: [UInt8]) throws(InputOutputError) {
        let number = Descriptor.write(bytes, to: STDOUT_FILENO)
        guard number == 0 else {
            throw InputOutputError(message: "standard output could not be written: \(SystemErrorText.of(number))")
        }
    }

    /// Writes bytes unchanged: a text of larderctl itself, or a part of a document.
    func bytes(_ bytes: some Sequence<UInt8>) {
        buffer.append(contentsOf: bytes)
    }

    /// Writes a value. On a terminal, adds a line break.
    func value(_ bytes: [UInt8]) {
        append(bytes, keepsLines: true)
        if isTerminal { buffer.append(UInt8(ascii: "\n")) }
    }

    func line(_ text: String) { line(Array(text.utf8)) }

    /// Writes text and a line break. Line breaks in the text are kept.
    func line(_ bytes: [UInt8]) {
        append(bytes, keepsLines: true)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Writes a value on one line. On a terminal, escapes line breaks in the value.
    func oneLine(_ bytes: [UInt8]) {
        append(bytes, keepsLines: false)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Writes two values on one line, separated by a tab.
    func oneLine(_ first: [UInt8], _ second: [UInt8]) {
        append(first, keepsLines: false)
        buffer.append(UInt8(ascii: "\t"))
        oneLine(second)
    }

    private func append(_ bytes: [UInt8], keepsLines: Bool) {
        buffer.append(contentsOf: escapes ? TerminalText.escaped(bytes, keepsLines: keepsLines) : bytes)
    }

    /// Writes rows with aligned columns. See ``Table/lines(_:rightAligned:)``.
    func table(_ rows: [[String]], rightAligned: Set<Int>) {
        for row in Table.lines(rows, rightAligned: rightAligned) { line(row) }
    }

    /// Formats a size: with a unit if the output is a terminal, otherwise in bytes.
    func size(_ bytes: Int64) -> String { isTerminal ? ByteText.short(bytes) : "\(bytes)" }

    /// Writes a JSON document and a line break.
    func json(_ value: JSONText) {
        jsonPart(value)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Writes a JSON value without a line break: a part of a document that is too large to be built in memory.
    func jsonPart(_ value: JSONText) {
        value.write(to: &buffer)
    }

    /// Flushes the buffer if it is large, so that memory does not grow with the output.
    func flushIfLarge() throws(InputOutputError) {
        if buffer.count >= Self.flushBytes { try flush() }
    }

    /// Writes the contents of the buffer. Discards them even after an error.
    func flush() throws(InputOutputError) {
        defer {
            flushedCount += buffer.count
            buffer.removeAll(keepingCapacity: true)
        }
        try write(buffer)
    }

    /// Writes text to standard error at once. Ignores errors, because they could not be reported.
    static func standardError(_ text: String) {
        // Escape control characters, because an error of the daemon may contain words of the request.
        writeToStandardError(TerminalText.escaped(Array(text.utf8), keepsLines: true))
    }

    /// Writes text to standard output, which must be a terminal, at once.
    static func writeToTerminal(_ text: String) {
        Descriptor.write(TerminalText.escaped(Array(text.utf8), keepsLines: true), to: STDOUT_FILENO)
    }

    /// Writes bytes to standard error unchanged, including control characters. Only for texts of larderctl itself.
    static func writeToStandardError(_ bytes: [UInt8]) { Descriptor.write(bytes, to: STDERR_FILENO) }
}

/// Formats tables.
enum Table {
    /// Returns the rows as lines with aligned columns.
    /// - Parameter rightAligned: the indices of the columns to align on the right, such as numbers.
    static func lines(_ rows: [[String]], rightAligned: Set<Int> = []) -> [String] {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.compactMap { column < $0.count ? $0[column].count : nil }.max() ?? 0
        }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                let isRight = rightAligned.contains(column)
                return !isRight && column == row.count - 1 ? cell : cell.padded(widths[column], isRight: isRight)
            }
            return cells.joined(separator: "  ")
        }
    }
}

extension String {
    /// Returns the text with spaces after it (before it if `isRight` is true) up to a width. Longer text is unchanged.
    func padded(_ width: Int, isRight: Bool = false) -> String {
        let space = String(repeating: " ", count: max(0, width - count))
        return isRight ? space + self : self + space
    }
}
