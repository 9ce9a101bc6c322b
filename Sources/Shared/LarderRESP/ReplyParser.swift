// Parses replies. Does no I/O.
//
// - Incomplete aggregates are kept on a stack, so no byte is parsed twice, even if bytes arrive in small pieces.
// - Lengths are compared with their limits before they are used in arithmetic.
// - Memory grows with the received bytes, not with the lengths in headers, so a forged length cannot exhaust it.

/// Splits a stream of bytes into replies, in RESP2 and RESP3. Skips attributes. Throws for strings and aggregates
/// without a length ("streamed" types), which no server sends.
///
/// Add bytes with ``writableSpace(atLeast:)`` and ``didWrite(_:)``, or with ``append(_:)-(UnsafeRawBufferPointer)``.
/// Then call ``next()`` until it returns nil.
///
/// For one thread at a time. `@unchecked Sendable`: it cannot be copied, and pointers to its memory are not kept.
package struct ReplyParser: ~Copyable, @unchecked Sendable {
    private enum Kind {
        case array, map, set, push, attribute
    }

    /// An incomplete aggregate.
    private struct Frame {
        var kind: Kind
        /// The number of values that have not been read yet. A pair counts as two.
        var missing: Int
        var values: [RESPValue]
    }

    private enum StringKind {
        case bulk, error, verbatim
        /// A string that is longer than allowed, and is dropped. The value is the length of the whole string in bytes.
        case skipped(of: Int)
    }

    /// The result of one step of reading.
    private enum Step {
        /// More bytes are needed.
        case incomplete
        /// Something was read, but no value is complete yet.
        case progress
        case value(RESPValue)
    }

    package let limits: RESPLimits
    /// Whether bulk strings longer than ``RESPLimits/bulkBytesMax`` are dropped, and replaced by null in the reply,
    /// instead of causing an error.
    private let skipsLongStrings: Bool
    /// The length, in bytes, of the longest string dropped from the last reply of ``next()``; 0 if there was none.
    package private(set) var skippedBytes = 0
    private var skippedSoFar = 0
    private var input = IncomingBytes()
    private var stack: [Frame] = []
    /// The string that is being read: its header was parsed, but its bytes have not been read completely.
    private var string: (kind: StringKind, length: Int)?
    /// The number of bytes of the current reply that were parsed so far.
    private var replyBytes = 0
    /// The number of elements in the current reply's aggregates, including those that have not been read yet.
    private var replyElements = 0
    private var failure: ProtocolError?

    package init(limits: RESPLimits = RESPLimits(), skipsLongStrings: Bool = false) {
        (self.limits, self.skipsLongStrings) = (limits, skipsLongStrings)
    }

    // MARK: Bytes in

    /// Returns at least `room` bytes of free memory. Write received bytes into it, and then call ``didWrite(_:)`` with
    /// the number of bytes. The memory is valid until the next mutating call.
    package mutating func writableSpace(atLeast room: Int) -> UnsafeMutableRawBufferPointer {
        input.writableSpace(atLeast: room, expected: stringEnd)
    }

    /// Adds the first `count` bytes of the memory from ``writableSpace(atLeast:)`` to the received bytes.
    package mutating func didWrite(_ count: Int) { input.buffer.commit(count) }

    /// Adds a copy of received bytes.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) { input.buffer.append(bytes, expected: stringEnd) }

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

    /// Returns the next reply; nil if more bytes are needed. After an error, each call throws the same error again.
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

    /// The number of received bytes that are not parsed yet.
    package var bufferedBytes: Int { input.available }

    /// Whether all received bytes are parsed and no reply is incomplete.
    package var isIdle: Bool { stack.isEmpty && string == nil && replyBytes == 0 && input.available == 0 }

    /// Frees unused memory, and copies the buffered bytes for that. Does nothing while a string is being received,
    /// because its bytes would be copied repeatedly.
    package mutating func reclaim() {
        if string == nil { input.buffer.shrink() }
    }

    /// The number of bytes read to find lines, and the number of bytes moved in the buffer. Tests check that both are
    /// proportional to the number of received bytes.
    package var work: (bytesExamined: Int, bytesMoved: Int) { (input.bytesExamined, input.buffer.bytesMoved) }
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

    /// Adds a value to the innermost incomplete aggregate. This may complete this and the surrounding aggregates.
    /// - Returns: the whole reply if it is complete, else nil.
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

    /// Makes the value of a complete aggregate. Returns nil for attributes, because they are skipped.
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
        try consume(length + 2)
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

    /// Reads the bytes of the string whose header was parsed before.
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
        try consume(length + 2)
        return .value(value)
    }

    /// Drops the received bytes of a string that is too long.
    private mutating func skip(_ missing: Int, of whole: Int) throws(ProtocolError) -> Step {
        let count = min(missing, input.available)
        input.advance(count)
        input.dropParsed()
        string = (.skipped(of: whole), missing - count)
        guard missing == count, input.available >= 2 else { return .incomplete }
        guard input.current.load(as: UInt8.self) == ASCII.carriageReturn,
            input.current.load(fromByteOffset: 1, as: UInt8.self) == ASCII.lineFeed
        else { throw .bulkWithoutLineEnd }
        string = nil
        skippedSoFar = max(skippedSoFar, whole)
        try consume(2)
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

    private mutating func consume(_ count: Int) throws(ProtocolError) {
        replyBytes += count
        guard replyBytes <= limits.requestBytesMax else { throw .tooBigReply }
        input.advance(count)
        input.dropParsed()
    }

    /// Parses an integer. Also accepts leading zeros and a plus sign, unlike ``DecimalText/integer(_:count:)``.
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
