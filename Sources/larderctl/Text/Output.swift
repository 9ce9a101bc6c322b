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
    let isTerminal = isatty(STDOUT_FILENO) == 1
    /// Whether keys and values are written to a terminal unchanged, including control characters.
    var isRaw = false

    private var escapes: Bool { isTerminal && !isRaw }

    /// - Parameter write: writes bytes at once; standard output by default.
    init(_ write: @escaping ([UInt8]) throws(InputOutputError) -> Void = Output.writeToStandardOutput) {
        self.write = write
    }

    private static func writeToStandardOutput(_ bytes: [UInt8]) throws(InputOutputError) {
        do throws(FileError) {
            try FileSystem.writeAll(bytes, descriptor: STDOUT_FILENO, path: "standard output")
        } catch {
            throw InputOutputError("standard output could not be written", number: error.number)
        }
    }

    /// Ends the program, as a write would, when the reader of standard output is gone. For output that may pause.
    func endWithReader() {
        WorkThread(name: "output") {
            var entry = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            while poll(&entry, 1, -1) < 0 {}
            if Int32(entry.revents) & Int32(POLLERR) != 0 { raise(SIGPIPE) }
        }.detach()
    }

    /// Writes bytes unchanged: a text of larderctl itself, or a part of a document.
    func bytes(_ bytes: some Sequence<UInt8>) { buffer.append(contentsOf: bytes) }

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
    /// - Parameter before: the value before it on the line, followed by a tab.
    func oneLine(_ bytes: [UInt8], after before: [UInt8]? = nil) {
        if let before {
            append(before, keepsLines: false)
            buffer.append(UInt8(ascii: "\t"))
        }
        append(bytes, keepsLines: false)
        buffer.append(UInt8(ascii: "\n"))
    }

    func oneLine(_ text: String) { oneLine(Array(text.utf8)) }

    private func append(_ bytes: [UInt8], keepsLines: Bool) {
        buffer.append(contentsOf: escapes ? TerminalText.escaped(bytes, keepsLines: keepsLines) : bytes)
    }

    /// Writes rows with aligned columns, each on one line. See ``Table/lines(_:rightAligned:)``.
    func table(_ rows: [[String]], rightAligned: Set<Int>) {
        let rows = escapes ? rows.map { $0.map(TerminalText.escaped) } : rows
        for row in Table.lines(rows, rightAligned: rightAligned) { line(row) }
    }

    /// Formats a size: with a unit if the output is a terminal, otherwise in bytes.
    func size(_ bytes: Int64) -> String { isTerminal ? NumberText.bytes(bytes) : "\(bytes)" }

    /// Writes a JSON document and a line break.
    func json(_ value: JSONText) {
        jsonPart(value)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Writes a JSON value without a line break: a part of a document that is too large to be built in memory.
    func jsonPart(_ value: JSONText) { value.write(to: &buffer) }

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
        let bytes = TerminalText.escaped(Array(text.utf8), keepsLines: true)
        try? FileSystem.writeAll(bytes, descriptor: STDOUT_FILENO, path: "the terminal")
    }

    /// Writes bytes to standard error unchanged, including control characters. Only for texts of larderctl itself.
    static func writeToStandardError(_ bytes: [UInt8]) {
        try? FileSystem.writeAll(bytes, descriptor: STDERR_FILENO, path: "standard error")
    }
}

enum Table {
    /// Returns the rows as lines with aligned columns.
    /// - Parameters:
    ///   - rightAligned: the indices of the columns to align on the right, such as numbers.
    ///   - width: the maximum length of a line; nil for none. Columns that do not fit are omitted. If necessary, the
    ///     first column is cut to a third of the width.
    static func lines(_ rows: [[String]], rightAligned: Set<Int> = [], width: Int? = nil) -> [String] {
        let columns = rows.map(\.count).max() ?? 0
        var widths = (0..<columns).map { column in
            rows.compactMap { column < $0.count ? $0[column].count : nil }.max() ?? 0
        }
        if let width, let first = widths.first {
            widths[0] = min(first, max(8, width / 3), width)
            var used = -2
            widths = Array(
                widths.prefix {
                    used += 2 + $0
                    return used <= width
                })
        }
        return rows.map { row in
            let cells = zip(row, widths).enumerated().map { column, cell in
                let isRight = rightAligned.contains(column)
                let text = cell.0.cut(cell.1)
                return !isRight && column == row.count - 1 ? text : text.padded(cell.1, isRight: isRight)
            }
            return cells.joined(separator: "  ")
        }
    }
}

extension String {
    /// Returns the text, or its beginning and `…` if it is longer than a width.
    func cut(_ width: Int) -> String {
        count <= width ? self : String(prefix(max(0, width - 1))) + (width > 0 ? "…" : "")
    }

    /// Returns the text with spaces after it (before it if `isRight` is true) up to a width. Longer text is unchanged.
    func padded(_ width: Int, isRight: Bool = false) -> String {
        let space = String(repeating: " ", count: max(0, width - count))
        return isRight ? space + self : self + space
    }
}

/// Makes bytes safe to show on a terminal. Otherwise a key or value could contain control sequences that move the
/// cursor, rename the window, or even enter text into the shell.
enum TerminalText {
    /// Escapes (`\n`, `\xHH`) control characters, changes of the text direction, and bytes that are not UTF-8.
    /// - Parameter keepsLines: whether line breaks and tabs are kept.
    static func escaped(_ bytes: [UInt8], keepsLines: Bool) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        var (parser, rest, index) = (Unicode.UTF8.ForwardParser(), bytes.makeIterator(), 0)
        while index < bytes.count {
            let (length, isSafe): (Int, Bool)
            switch parser.parseScalar(from: &rest) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                let isLineEnd = scalar == "\n" || scalar == "\r" && bytes.dropFirst(index + 1).first == 0x0A
                length = encoded.count
                isSafe = !scalar.steersTerminal || keepsLines && (isLineEnd || scalar == "\t")
            case .error(let count): (length, isSafe) = (count, false)
            case .emptyInput: return text
            }
            let part = bytes[index..<index + length]
            if isSafe { text += part } else { for byte in part { text += escape(byte).utf8 } }
            index += length
        }
        return text
    }

    private static func escape(_ byte: UInt8) -> String {
        switch byte {
        case 0x0A: "\\n"
        case 0x0D: "\\r"
        case 0x09: "\\t"
        default: "\\x" + HexText.text([byte])
        }
    }

    /// Escapes a text to be shown on one line.
    static func escaped(_ text: String) -> String {
        String(decoding: escaped(Array(text.utf8), keepsLines: false), as: UTF8.self)
    }
}
