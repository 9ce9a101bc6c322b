/// Parses Debian's control format: records separated by empty lines. A field is `Name: value`; a line that starts with
/// a space continues the previous field.
///
/// Does no input itself: add bytes in pieces of any size, and request records. An invalid record is reported and
/// skipped. Lines and records are limited in length, so that other input does not fill the memory. Not thread-safe.
public struct ControlParser {
    public enum Step: Sendable {
        case stanza(Stanza)
        case problem(RecordProblem)
        /// Add more bytes, or call ``finish()`` if there are none.
        case needsMore
    }

    /// The longest line, in bytes.
    public static let lineBytesMax = 1 << 20
    /// The longest record, in bytes.
    public static let stanzaBytesMax = 8 << 20

    private var buffer: [UInt8] = []
    /// The first byte of the buffer that was not parsed.
    private var start = 0
    /// Where to search for the end of the line: the bytes before that position do not contain it.
    private var searched = 0
    private var isFinished = false
    /// Whether the current position is in a line that is too long and is skipped up to its end.
    private var isSkippingLine = false

    /// The number of the next line.
    private var line = 1
    private var stanza: Stanza?
    private var stanzaBytes = 0
    /// The first problem of the current record.
    private var problem: RecordProblem?
    /// The field that a continuation line would be added to.
    private var name: String?
    private var nameLine = 0
    private var value: [UInt8] = []

    public init() {}

    /// Adds bytes to be read.
    public mutating func append(_ bytes: some Sequence<UInt8>) {
        // Remove parsed bytes only when they are most of the buffer, so that each byte is moved about once.
        if start > 0, start >= buffer.count / 2 {
            buffer.removeSubrange(..<start)
            searched -= start
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Marks the end of the input. An incomplete last line is then parsed as a line, and completes a record.
    public mutating func finish() { isFinished = true }

    /// Returns the next record, or its problem.
    public mutating func next() -> Step {
        while let range = nextLine() {
            if let step = take(range) { return step }
        }
        guard isFinished else { return .needsMore }
        return endStanza() ?? .needsMore
    }

    // MARK: Lines

    /// Returns the next complete line without its line break; nil if there is none.
    private mutating func nextLine() -> Range<Int>? {
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { move(to: end + 1) }
                if !isSkippingLine, end - start <= Self.lineBytesMax { return start..<end }
                tooLong()
                isSkippingLine = false
                line += 1
                continue
            }
            searched = buffer.count
            if buffer.count - start > Self.lineBytesMax {
                tooLong()
                isSkippingLine = true
                move(to: buffer.count)
            }
            guard isFinished, start < buffer.count else { return nil }
            defer { move(to: buffer.count) }
            return start..<buffer.count
        }
    }

    private mutating func move(to index: Int) {
        start = index
        searched = index
    }

    private mutating func tooLong() {
        complain("the line is longer than \(Self.lineBytesMax) bytes")
    }

    // MARK: Records

    /// Parses a line.
    /// - Returns: a step if the line completes a record.
    private mutating func take(_ range: Range<Int>) -> Step? {
        defer { line += 1 }
        guard let first = buffer[range].first else { return endStanza() }
        stanzaBytes += range.count
        if stanzaBytes > Self.stanzaBytesMax { complain("the record is longer than \(Self.stanzaBytesMax) bytes") }
        switch first {
        case UInt8(ascii: " "), UInt8(ascii: "\t"):
            if buffer[range].allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) {
                return endStanza()
            }
            continueField(range)
        case UInt8(ascii: "#"): break
        default: beginField(range)
        }
        return nil
    }

    private mutating func beginField(_ range: Range<Int>) {
        endField()
        guard problem == nil else { return }
        if stanza == nil { stanza = Stanza(line: line) }
        guard let colon = buffer[range].firstIndex(of: UInt8(ascii: ":")), colon > range.lowerBound,
            buffer[range.lowerBound..<colon].allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            complain("neither a field nor a continuation line")
            return
        }
        name = String(decoding: buffer[range.lowerBound..<colon], as: UTF8.self)
        nameLine = line
        value.append(contentsOf: trimmed(colon + 1..<range.upperBound))
    }

    private mutating func continueField(_ range: Range<Int>) {
        guard problem == nil else { return }
        guard name != nil else {
            complain("a continuation line without a field before it")
            return
        }
        value.append(UInt8(ascii: "\n"))
        // The first space only marks a continuation line; further spaces are part of the value.
        value.append(contentsOf: buffer[range].dropFirst())
    }

    private func trimmed(_ range: Range<Int>) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var slice = buffer[range].drop(while: isBlank)
        while let last = slice.last, isBlank(last) { slice.removeLast() }
        return slice
    }

    private mutating func endField() {
        guard let name else { return }
        self.name = nil
        defer { value.removeAll(keepingCapacity: true) }
        if stanza?.add(name, String(decoding: value, as: UTF8.self)) == false {
            complain("the field \(name) is there twice", line: nameLine)
        }
    }

    private mutating func endStanza() -> Step? {
        endField()
        defer {
            stanza = nil
            problem = nil
            stanzaBytes = 0
            value.removeAll(keepingCapacity: true)
        }
        if let problem { return .problem(problem) }
        guard let stanza, !stanza.isEmpty else { return nil }
        return .stanza(stanza)
    }

    /// Records a problem of the current record, unless the record has one already.
    private mutating func complain(_ message: String, line: Int? = nil) {
        if problem == nil { problem = RecordProblem(line: line ?? self.line, message) }
    }
}
