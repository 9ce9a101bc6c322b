// Replies: bytes in, values out. No I/O.
//
// - Open aggregates are kept on a stack: nothing is parsed twice, however the stream was cut into pieces.
// - Lengths are compared with their limits before they are used in arithmetic.
// - Memory grows with the bytes that arrived, not with the lengths in headers.

/// Splits a stream of bytes into replies, in RESP2 and RESP3. Attributes are skipped. Strings and aggregates of unknown
/// length ("streamed") are refused; no server sends them.
///
/// Feed it with ``writableSpace(atLeast:)`` and ``didWrite(_:)``, or with ``append(_:)-(UnsafeRawBufferPointer)``; then
/// call ``next()`` until it returns nil.
///
/// Single owner: one thread at a time. `@unchecked Sendable`: it cannot be copied, and no pointer to its memory is used
/// after a mutating call.
package struct ReplyParser: ~Copyable, @unchecked Sendable {
    private enum Kind {
        case array, map, set, push, attribute
    }

    /// An incomplete aggregate.
    private struct Frame {
        var kind: Kind
        /// Values still to come; a pair counts as two.
        var missing: Int
        var values: [RESPValue]
    }

    private enum StringKind {
        case bulk, error, verbatim
        /// The string is longer than allowed, and a part of it was already dropped. The value is its length.
        case skipped(of: Int)
    }

    /// The result of one step of reading.
    private enum Step {
        /// More bytes are needed.
        case incomplete
        /// Something other than a complete value was read.
        case progress
        case value(RESPValue)
    }

    package let limits: RESPLimits
    /// Whether bulk strings above ``RESPLimits/bulkBytesMax`` are dropped as they arrive, and appear as null in the
    /// reply, instead of being an error.
    private let skipsLongStrings: Bool
    /// The length of the longest string that was dropped from the reply that ``next()`` has just returned; 0 for none.
    package private(set) var skippedBytes = 0
    private var skippedSoFar = 0
    private var input = IncomingBytes()
    private var stack: [Frame] = []
    /// The string whose header was read and whose bytes are still to come.
    private var string: (kind: StringKind, length: Int)?
    /// Bytes of the current reply that were parsed and dropped.
    private var replyBytes = 0
    /// Elements of the current reply's aggregates, including those still to come.
    private var replyElements = 0
    private var failure: ProtocolError?

    package init(limits: RESPLimits = RESPLimits(), skipsLongStrings: Bool = false) {
        self.limits = limits
        self.skipsLongStrings = skipsLongStrings
    }

    // MARK: Bytes in

    /// Free memory to read into, at least `room` bytes. Call ``didWrite(_:)`` with the number of bytes written. The
    /// memory is valid until the next mutating call.
    package mutating func writableSpace(atLeast room: Int) -> UnsafeMutableRawBufferPointer {
        input.writableSpace(atLeast: room, expected: stringEnd)
    }

    /// Marks the first `count` bytes of ``writableSpace(atLeast:)`` as received.
    package mutating func didWrite(_ count: Int) {
        input.didWrite(count)
    }

    /// Adds a copy of received bytes.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        input.append(bytes, expected: stringEnd)
    }

    /// Adds a copy of received bytes.
    package mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    private var stringEnd: Int {
        guard let string else { return 0 }
        if case .skipped = string.kind { return 0 }
        return input.cursor + string.length + 2
    }

    // MARK: Replies out

    /// The next reply, or nil when more bytes are needed. After an error the parser reads nothing more, and throws the
    /// same error again.
    package mutating func next() throws(ProtocolError) -> RESPValue? {
        if let failure { throw failure }
        do {
            return try parse()
        } catch {
            failure = error
            stack = []
            throw error
        }
    }

    /// Bytes that arrived and are not parsed yet.
    package var bufferedBytes: Int { input.available }

    /// True between replies: false when a part of one was parsed, or waits to be parsed.
    package var isIdle: Bool { stack.isEmpty && string == nil && replyBytes == 0 && input.available == 0 }

    /// Frees unused memory. Costs a copy of the buffered bytes. Does nothing in the middle of a string, which would be
    /// copied again and again.
    package mutating func reclaim() {
        if string == nil { input.shrink() }
    }

    /// Bytes examined to find lines, and bytes moved to free space: both stay proportional to the bytes that arrived.
    package var work: (bytesExamined: Int, bytesMoved: Int) {
        (input.bytesExamined, input.buffer.bytesMoved)
    }
}

// MARK: - Parsing

extension ReplyParser {
    private mutating func parse() throws(ProtocolError) -> RESPValue? {
        while true {
            let step = string == nil ? try readLine() : try readString()
            switch step {
            case .incomplete:
                return nil
            case .progress:
                break
            case .value(let value):
                guard let reply = deliver(value) else { break }
                replyBytes = 0
                replyElements = 0
                skippedBytes = skippedSoFar
                skippedSoFar = 0
                return reply
            }
        }
    }

    /// Adds a value to the innermost aggregate, which may complete that aggregate and the ones around it.
    /// - Returns: the outermost value, once it is complete.
    private mutating func deliver(_ value: RESPValue) -> RESPValue? {
        var value = value
        while let top = stack.indices.last {
            stack[top].values.append(value)
            stack[top].missing -= 1
            guard stack[top].missing == 0 else { return nil }
            let frame = stack.removeLast()
            guard let aggregate = Self.aggregate(frame.kind, frame.values) else { return nil }
            value = aggregate
        }
        return value
    }

    /// Returns nil for attributes, which are not values.
    private static func aggregate(_ kind: Kind, _ values: [RESPValue]) -> RESPValue? {
        switch kind {
        case .array: .array(values)
        case .set: .set(values)
        case .push: .push(values)
        case .attribute: nil
        case .map:
            .map(
                stride(from: 0, to: values.count - 1, by: 2).map {
                    RESPValue.Pair(key: values[$0], value: values[$0 + 1])
                })
        }
    }

    /// Reads one line: a simple value, or the header of a string or an aggregate.
    private mutating func readLine() throws(ProtocolError) -> Step {
        guard input.available > 0 else { return .incomplete }
        let type = input.current.load(as: UInt8.self)
        let length: Int
        switch input.crlfLine(limit: limits.headerBytesMax) {
        case .incomplete: return .incomplete
        case .tooLong: throw .tooLongLine
        case .malformed: throw .malformedLine
        case .complete(let bytes): length = bytes
        }
        guard length > 0 else { throw .invalidReply }
        let step = try interpret(type, UnsafeRawBufferPointer(start: input.current + 1, count: length - 1))
        try understood(length + 2)
        return step
    }

    private mutating func interpret(_ type: UInt8, _ text: UnsafeRawBufferPointer) throws(ProtocolError) -> Step {
        switch type {
        case UInt8(ascii: "+"): return .value(.simpleString(String(decoding: text, as: UTF8.self)))
        case UInt8(ascii: "-"): return .value(.error(String(decoding: text, as: UTF8.self)))
        case UInt8(ascii: ":"): return .value(.integer(try integer(text)))
        case UInt8(ascii: "$"): return try openString(.bulk, text)
        case UInt8(ascii: "!"): return try openString(.error, text)
        case UInt8(ascii: "="): return try openString(.verbatim, text)
        case UInt8(ascii: "*"): return try open(.array, text)
        case UInt8(ascii: "%"): return try open(.map, text)
        case UInt8(ascii: "~"): return try open(.set, text)
        case UInt8(ascii: ">"): return try open(.push, text)
        case UInt8(ascii: "|"): return try open(.attribute, text)
        case UInt8(ascii: "_"):
            guard text.isEmpty else { throw .invalidReply }
            return .value(.null)
        case UInt8(ascii: "#"): return .value(.boolean(try boolean(text)))
        case UInt8(ascii: ","):
            guard let value = DecimalText.double(String(decoding: text, as: UTF8.self)) else { throw .invalidNumber }
            return .value(.double(value))
        case UInt8(ascii: "("): return .value(.bigNumber(try bigNumber(text)))
        default: throw .unknownReplyType(type)
        }
    }

    private mutating func openString(_ kind: StringKind, _ text: UnsafeRawBufferPointer) throws(ProtocolError) -> Step {
        let length = try integer(text)
        let isBulk = if case .bulk = kind { true } else { false }
        if length == -1, isBulk { return .value(.null) }
        if skipsLongStrings, length > Int64(limits.bulkBytesMax), length <= Int64(UInt32.max), isBulk {
            string = (.skipped(of: Int(length)), Int(length))
            return .progress
        }
        guard length >= 0, length <= Int64(limits.bulkBytesMax) else { throw .invalidBulkLength }
        guard replyBytes + Int(length) <= limits.requestBytesMax else { throw .tooBigReply }
        string = (kind, Int(length))
        return .progress
    }

    /// Reads the bytes of the string whose header was read.
    private mutating func readString() throws(ProtocolError) -> Step {
        if let string, case .skipped(let whole) = string.kind { return try skip(string.length, of: whole) }
        guard let (kind, length) = string, input.available >= length + 2 else { return .incomplete }
        let bytes = UnsafeRawBufferPointer(start: input.current, count: length)
        let end = input.current + length
        guard end.load(as: UInt8.self) == ASCII.carriageReturn,
            end.load(fromByteOffset: 1, as: UInt8.self) == ASCII.lineFeed
        else { throw .bulkWithoutLineEnd }
        let value: RESPValue
        switch kind {
        case .bulk: value = .bulk(Array(bytes))
        case .error: value = .error(String(decoding: bytes, as: UTF8.self))
        case .verbatim:
            guard length >= 4, bytes[3] == UInt8(ascii: ":") else { throw .invalidReply }
            value = .verbatim(format: String(decoding: bytes[..<3], as: UTF8.self), text: Array(bytes[4...]))
        case .skipped: value = .null
        }
        string = nil
        try understood(length + 2)
        return .value(value)
    }

    /// Drops the received bytes of a long string.
    private mutating func skip(_ missing: Int, of whole: Int) throws(ProtocolError) -> Step {
        let count = min(missing, input.available)
        input.advance(count)
        input.dropUnderstood()
        string = (.skipped(of: whole), missing - count)
        guard missing == count, input.available >= 2 else { return .incomplete }
        guard input.current.load(as: UInt8.self) == ASCII.carriageReturn,
            input.current.load(fromByteOffset: 1, as: UInt8.self) == ASCII.lineFeed
        else { throw .bulkWithoutLineEnd }
        string = nil
        skippedSoFar = max(skippedSoFar, whole)
        try understood(2)
        return .value(.null)
    }

    private mutating func open(_ kind: Kind, _ text: UnsafeRawBufferPointer) throws(ProtocolError) -> Step {
        let count = try integer(text)
        if count == -1, kind == .array { return .value(.null) }
        guard count >= 0 else { throw .invalidMultibulkLength }
        let perElement = kind == .map || kind == .attribute ? 2 : 1
        guard count <= Int64((limits.elementsMax - replyElements) / perElement) else { throw .tooManyElements }
        let values = Int(count) * perElement
        if values == 0 {
            guard let empty = Self.aggregate(kind, []) else { return .progress }
            return .value(empty)
        }
        guard stack.count < limits.depthMax else { throw .tooDeepReply }
        replyElements += values
        var frame = Frame(kind: kind, missing: values, values: [])
        frame.values.reserveCapacity(min(values, 64))
        stack.append(frame)
        return .progress
    }

    private mutating func understood(_ count: Int) throws(ProtocolError) {
        replyBytes += count
        guard replyBytes <= limits.requestBytesMax else { throw .tooBigReply }
        input.advance(count)
        input.dropUnderstood()
    }

    /// Allows leading zeros and a plus sign, as RESP does.
    private func integer(_ text: UnsafeRawBufferPointer) throws(ProtocolError) -> Int64 {
        guard let start = text.baseAddress else { throw .invalidNumber }
        if let value = DecimalText.integer(start, count: text.count) { return value }
        guard let value = Int64(String(decoding: text, as: UTF8.self)) else { throw .invalidNumber }
        return value
    }

    private func boolean(_ text: UnsafeRawBufferPointer) throws(ProtocolError) -> Bool {
        guard text.count == 1 else { throw .invalidReply }
        switch text[0] {
        case UInt8(ascii: "t"): return true
        case UInt8(ascii: "f"): return false
        default: throw .invalidReply
        }
    }

    private func bigNumber(_ text: UnsafeRawBufferPointer) throws(ProtocolError) -> String {
        var digits = text[...]
        if let sign = digits.first, sign == ASCII.minus || sign == ASCII.plus { digits = digits.dropFirst() }
        guard !digits.isEmpty, digits.allSatisfy({ $0 &- ASCII.zero <= 9 }) else { throw .invalidNumber }
        return String(decoding: text, as: UTF8.self)
    }
}
