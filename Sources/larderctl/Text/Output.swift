// Standard output and standard error.

import LarderClient
import LarderPlatform

/// Standard output, written in large pieces. Single owner.
final class Output {
    private static let flushBytes = 65_536

    private var buffer: [UInt8] = []
    /// Whether the output is a terminal.
    let isTerminal = isatty(STDOUT_FILENO) == 1
    /// Whether keys and values are written to a terminal unchanged, with all control characters.
    var isRaw = false

    private var escapes: Bool { isTerminal && !isRaw }

    /// Writes larderctl's own text, or a part of a document.
    func bytes(_ bytes: some Sequence<UInt8>) {
        buffer.append(contentsOf: bytes)
    }

    /// Writes a value, followed by a line break on a terminal.
    func value(_ bytes: [UInt8]) {
        append(bytes, keepsLines: true)
        if isTerminal { buffer.append(UInt8(ascii: "\n")) }
    }

    func line(_ text: String) { line(Array(text.utf8)) }

    /// Writes one or more lines; line breaks are kept.
    func line(_ bytes: [UInt8]) {
        append(bytes, keepsLines: true)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Prints a value on one line; on a terminal, escapes line breaks in it.
    func oneLine(_ bytes: [UInt8]) {
        append(bytes, keepsLines: false)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Prints two values separated by a tab on one line.
    func oneLine(_ first: [UInt8], _ second: [UInt8]) {
        append(first, keepsLines: false)
        buffer.append(UInt8(ascii: "\t"))
        oneLine(second)
    }

    private func append(_ bytes: [UInt8], keepsLines: Bool) {
        buffer.append(contentsOf: escapes ? TerminalText.escaped(bytes, keepsLines: keepsLines) : bytes)
    }

    /// Writes a document and ends its line.
    func json(_ value: JSONText) {
        jsonPart(value)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// Writes a part of a document that is too long for memory.
    func jsonPart(_ value: JSONText) {
        value.write(to: &buffer)
    }

    /// Writes the buffer if it is large, so that memory does not grow with the output.
    func flushIfLarge() throws(InputOutputError) {
        if buffer.count >= Self.flushBytes { try flush() }
    }

    /// Writes the buffer.
    func flush() throws(InputOutputError) {
        var start = 0
        while start < buffer.count {
            let count = buffer.withUnsafeBytes { bytes in
                systemWrite(STDOUT_FILENO, bytes.baseAddress.map { $0 + start }, bytes.count - start)
            }
            if count >= 0 {
                start += count
            } else if errno == EAGAIN {
                // The terminal or pipe is non-blocking. Wait until it is writable.
                var entry = pollfd(fd: STDOUT_FILENO, events: Int16(truncatingIfNeeded: POLLOUT), revents: 0)
                _ = poll(&entry, 1, -1)
            } else if errno != EINTR {
                let reason = SystemErrorText.of(errno)
                buffer.removeAll()
                throw InputOutputError(message: "standard output could not be written: \(reason)")
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Writes to standard error at once. A failure cannot be reported anywhere.
    static func standardError(_ text: String) {
        // Escape the text: the daemon's error may quote words of the request.
        writeToStandardError(TerminalText.escaped(Array(text.utf8), keepsLines: true))
    }

    /// Writes to the terminal, which is standard output, at once.
    static func writeToTerminal(_ text: String) {
        TerminalOutput.write(TerminalText.escaped(Array(text.utf8), keepsLines: true), to: STDOUT_FILENO)
    }

    /// Writes larderctl's own bytes to standard error unchanged, including control characters.
    static func writeToStandardError(_ bytes: [UInt8]) { TerminalOutput.write(bytes, to: STDERR_FILENO) }
}
