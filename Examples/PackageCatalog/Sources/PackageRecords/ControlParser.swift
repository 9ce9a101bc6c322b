/// Takes Debian's control format apart: records divided by empty lines, fields of the form `Name: value`, values that go
/// on in lines that begin with a blank.
///
/// Does no input of its own: give it bytes as they come, cut anywhere, and ask for records. A record that is wrong is
/// reported and passed over. Lines and records are limited in length, so that input of another kind does not fill the
/// memory. Single owner.
public struct ControlParser {
    public enum Step: Sendable {
        case stanza(Stanza)
        case problem(RecordProblem)
        /// Give it more bytes, or tell it that there are none.
        case needsMore
    }

    /// The longest line, in bytes.
    public static let lineBytesMax = 1 << 20
    /// The longest record, in bytes.
    public static let stanzaBytesMax = 8 << 20

    private var buffer: [UInt8] = []
    /// The first byte of the buffer that was not handled.
    private var start = 0
    /// Where to look for the end of the line; what stands before it was searched.
    private var searched = 0
    private var isFinished = false
    /// Inside a line that is too long, of which everything is dropped up to its end.
    private var isSkippingLine = false

    /// The line that comes next.
    private var line = 1
    private var stanza: Stanza?
    private var stanzaBytes = 0
    /// What is wrong with the current record.
    private var problem: RecordProblem?
    /// The field that the next continuation line belongs to.
    private var name: String?
    private var nameLine = 0
    private var value: [UInt8] = []

    public init() {}

    /// Adds bytes to be read.
    public mutating func append(_ bytes: some Sequence<UInt8>) {
        // What was handled goes once it is most of the buffer, so that each byte is moved about once.
        if start > 0, start >= buffer.count / 2 {
            buffer.removeSubrange(..<start)
            searched -= start
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Says that no more bytes come: what is unfinished is a line, and a record.
    public mutating func finish() { isFinished = true }

    /// The next record, or what is wrong with it.
    public mutating func next() -> Step {
        while let range = nextLine() {
            if let step = take(range) { return step }
        }
        guard isFinished else { return .needsMore }
        return endStanza() ?? .needsMore
    }

    // MARK: Lines

    /// The next whole line without its end; nil when there is none.
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

    /// - Returns: a step where the line ends a record.
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
            complain("neither a field nor the continuation of one")
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
        // The first blank only says that the line goes on; the others are the value's.
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

    /// Notes what is wrong with the current record; the first complaint counts.
    private mutating func complain(_ message: String, line: Int? = nil) {
        if problem == nil { problem = RecordProblem(line: line ?? self.line, message) }
    }
}
