// Standard output and standard error.

import LarderClient
import LarderPlatform

/// Standard output, written in large pieces. Single owner.
final class Output {
    private static let flushBytes = 65_536

    private var buffer: [UInt8] = []
    /// Whether a person is reading.
    let isTerminal = isatty(STDOUT_FILENO) == 1
    /// Whether keys and values are written to a terminal unchanged, with all control characters.
    var isRaw = false

    private var escapes: Bool { isTerminal && !isRaw }

    /// larderctl's own text, or a part of a document.
    func bytes(_ bytes: some Sequence<UInt8>) {
        buffer.append(contentsOf: bytes)
    }

    /// A value; a line end follows if a person reads it.
    func value(_ bytes: [UInt8]) {
        append(bytes, keepsLines: true)
        if isTerminal { buffer.append(UInt8(ascii: "\n")) }
    }

    func line(_ text: String) { line(Array(text.utf8)) }

    /// One or more lines: line ends stay.
    func line(_ bytes: [UInt8]) {
        append(bytes, keepsLines: true)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// A line with one value: on a terminal, line ends in it are escaped too.
    func oneLine(_ bytes: [UInt8]) {
        append(bytes, keepsLines: false)
        buffer.append(UInt8(ascii: "\n"))
    }

    /// A line with two values and a tab between them.
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

    /// Writes a part of a document that is too long to keep in memory.
    func jsonPart(_ value: JSONText) {
        value.write(to: &buffer)
    }

    /// Writes the buffer if it is large. For output of any length.
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
                // The terminal or pipe is non-blocking. Wait until it takes more.
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
        // The daemon's text about a request contains words of the request.
        writeToStandardError(TerminalText.escaped(Array(text.utf8), keepsLines: true))
    }

    /// Writes to the terminal at once, which is standard output.
    static func writeToTerminal(_ text: String) {
        TerminalOutput.write(TerminalText.escaped(Array(text.utf8), keepsLines: true), to: STDOUT_FILENO)
    }

    /// Writes larderctl's own bytes to standard error as they are, control characters too.
    static func writeToStandardError(_ bytes: [UInt8]) { TerminalOutput.write(bytes, to: STDERR_FILENO) }
}
