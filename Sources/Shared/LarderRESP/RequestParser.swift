// Parses requests. Does no I/O.
//
// - After missing bytes have arrived, the parser continues where it stopped, so no byte is parsed twice.
// - Lengths are compared with their limits before they are used in arithmetic.
// - Memory is limited to 16 times the received bytes, whatever lengths the headers have.

/// Splits a stream of bytes into commands: inline commands and arrays of bulk strings, as in Redis.
///
/// Add bytes with ``writableSpace(atLeast:)`` and ``didWrite(_:)``, or with ``append(_:)-(UnsafeRawBufferPointer)``.
/// Then call ``next()`` until it returns false. The arguments of the current command are not copied. Memory is
/// allocated only until the buffers are large enough.
///
/// For one thread at a time. `@unchecked Sendable`: it cannot be copied, and pointers to its memory are not kept.
package struct RequestParser: ~Copyable, @unchecked Sendable {
    private enum Phase {
        case start
        case inline
        /// In the line `*<count>`.
        case countHeader
        /// In the line `$<length>`.
        case bulkHeader
        /// In the bytes of a bulk string, or in the CR LF after them.
        case bulkBody
        /// A command is complete, and its arguments can be read.
        case complete
    }

    package let limits: RESPLimits
    /// Whether the client is not authenticated. If so, 10 arguments of up to 16,384 bytes are allowed, as in Redis.
    package var isUnauthenticated = false
    private var input = IncomingBytes()
    private var arguments = ArgumentTable()
    private var phase = Phase.start
    /// The number of the current request's bulk strings that have not been read yet.
    private var bulksLeft = 0
    /// The length of the current bulk string in bytes.
    private var bulkLength = 0
    private var failure: ProtocolError?

    private static let unauthenticatedArgumentsMax = 10
    private static let unauthenticatedBulkBytesMax = 16_384

    package init(limits: RESPLimits = RESPLimits()) { self.limits = limits }

    // MARK: Bytes in

    /// Returns at least `room` bytes of free memory. Write received bytes into it, and then call ``didWrite(_:)`` with
    /// the number of bytes. The memory is valid until the next mutating call.
    package mutating func writableSpace(atLeast room: Int) -> UnsafeMutableRawBufferPointer {
        input.writableSpace(atLeast: room, expected: requestEnd)
    }

    /// Adds the first `count` bytes of the memory from ``writableSpace(atLeast:)`` to the received bytes.
    package mutating func didWrite(_ count: Int) { input.buffer.commit(count) }

    /// Adds a copy of received bytes.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) { input.buffer.append(bytes, expected: requestEnd) }

    /// Adds a copy of received bytes.
    package mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    /// Adds received bytes, without copying them if the parser has no other bytes. Until ``endBorrowing()``, the caller
    /// must not change the memory or add other bytes. The parser itself replaces escapes in this memory.
    package mutating func borrow(_ bytes: UnsafeMutableRawBufferPointer) { input.borrow(bytes, expected: requestEnd) }

    /// Copies the bytes from ``borrow(_:)`` that are not consumed yet, including the current command. Pointers to the
    /// command's arguments become invalid. Does nothing if no bytes are borrowed.
    package mutating func endBorrowing() { input.buffer.endBorrowing(expected: requestEnd) }

    /// The position of the end of the current bulk string; 0 if none is being read.
    private var requestEnd: Int { phase == .bulkBody ? input.cursor + bulkLength + 2 : 0 }

    // MARK: Commands out

    /// The number of arguments of the current command, including its name; 0 if there is no current command.
    package var argumentCount: Int { phase == .complete ? arguments.count : 0 }

    /// Returns an argument of the current command; index 0 is its name. Valid until the next mutating call.
    package func argument(_ index: Int) -> UnsafeRawBufferPointer {
        precondition(phase == .complete, "there is no current command")
        let slice = arguments[index]
        return UnsafeRawBufferPointer(start: input.buffer.start + Int(slice.offset), count: Int(slice.length))
    }

    /// Returns all arguments of the current command, which must exist. Changes nothing, but is declared as mutating: to
    /// call a function that is not mutating, the compiler would copy the whole parser.
    package mutating func currentArguments() -> RequestArguments {
        precondition(phase == .complete, "there is no current command")
        return RequestArguments(
            start: UnsafeRawPointer(input.buffer.start), slices: arguments.start, count: arguments.count)
    }

    /// Moves to the next command.
    ///
    /// Skips empty lines and empty arrays. After an error, each call throws the same error again.
    /// - Returns: true if there is a complete command; false if more bytes are needed.
    package mutating func next() throws(ProtocolError) -> Bool {
        if let failure { throw failure }
        do {
            return try parse()
        } catch {
            phase = .start
            failure = error
            throw error
        }
    }

    /// Whether bytes follow the current command.
    package var hasNext: Bool { input.available > 0 }

    /// Returns the head of the current command, for comparison with the requests behind it.
    package mutating func currentHead() -> RequestHead {
        var head = RequestHead()
        // The current command starts at the first byte of the buffer.
        if phase == .complete, input.cursor >= 16 {
            _ = head.read(UnsafeRawPointer(input.buffer.start), argumentsMax: arguments.count)
        }
        return head
    }

    /// Finds the next request without consuming it, if the request has the usual form: `*`, one digit, CR LF, and
    /// strings of less than 10,000 bytes. Its arguments are valid until the next mutating call.
    /// - Parameters:
    ///   - place: where to look, in bytes from the end of the current command; is moved behind the request.
    ///   - head: the head of the previous request that was found; is set to the head of this one.
    ///   - slices: memory for the positions of the arguments, which limits their number.
    package mutating func requestAhead(
        _ place: inout Int, _ head: inout RequestHead, _ slices: UnsafeMutableBufferPointer<ArgumentSlice>
    ) -> RequestArguments? {
        guard failure == nil, phase == .complete, !isUnauthenticated, let start = slices.baseAddress else { return nil }
        let text = UnsafeRawPointer(input.current)
        let end = input.available
        guard end - place >= 16 else { return nil }
        var (at, index) = (place + head.byteCount, 1)
        head.isRepeated = head.isEqual(text + place)
        if head.isRepeated {
            let name = RequestHead.nameOffset
            start[0] = ArgumentSlice(offset: place + name, length: head.byteCount - name - 2)
        } else {
            guard head.read(text + place, argumentsMax: slices.count) else { return nil }
            (at, index) = (place + 4, 0)
        }
        while index < head.argumentCount {
            guard at < end, text.load(fromByteOffset: at, as: UInt8.self) == UInt8(ascii: "$") else { return nil }
            at += 1
            let length = Self.usualNumber(text, &at, end)
            guard length >= 0, length <= min(9999, limits.bulkBytesMax), end - at >= length + 2,
                text.loadUnaligned(fromByteOffset: at + length, as: UInt16.self) == RequestHead.lineEnd
            else { return nil }
            start[index] = ArgumentSlice(offset: at, length: length)
            at += length + 2
            index += 1
        }
        place = at
        return RequestArguments(start: text, slices: UnsafePointer(start), count: index)
    }

    /// Consumes the current command, and the requests behind it up to a place that ``requestAhead(_:_:)`` returned.
    package mutating func skip(to place: Int) {
        precondition(
            phase == .complete && place >= 0 && place <= input.available, "more bytes are skipped than are available")
        input.noteExamined(place)
        input.advance(place)
        finish()
    }

    // MARK: Memory

    /// The number of received bytes that are not part of a command returned by ``next()``.
    package var bufferedBytes: Int { phase == .complete ? input.available : input.buffer.count }

    /// The size of the allocated memory, in bytes.
    package var capacity: Int { input.buffer.capacity + arguments.capacity * MemoryLayout<ArgumentSlice>.stride }

    /// Frees unused memory. Copies the buffered bytes, so call it only for idle connections.
    package mutating func reclaim() {
        input.buffer.shrink()
        arguments.shrink()
    }

    /// The number of bytes read to find lines, and the number of bytes moved in the buffer. Tests check that both are
    /// proportional to the number of received bytes.
    package var work: (bytesExamined: Int, bytesMoved: Int) { (input.bytesExamined, input.buffer.bytesMoved) }
}

// MARK: - Parsing

extension RequestParser {
    private mutating func parse() throws(ProtocolError) -> Bool {
        while true {
            let advanced: Bool
            switch phase {
            case .complete:
                finish()
                advanced = true
            case .start:
                advanced = parseUsual() || start()
            case .inline:
                advanced = try parseInline()
            case .countHeader:
                advanced = try parseCount()
            case .bulkHeader:
                advanced = try parseBulkHeader()
            case .bulkBody:
                advanced = try parseBulkBody()
            }
            if phase == .complete { return true }
            if !advanced { return false }
        }
    }

    /// Drops the current command and all other bytes before the cursor.
    private mutating func finish() {
        input.dropParsed()
        arguments.removeAll()
        phase = .start
    }

    /// Parses an array of bulk strings in one pass, up to the first argument that is incomplete or unusual.
    ///
    /// The other phases parse the rest, starting with that argument, and detect errors.
    /// - Returns: whether anything was parsed.
    private mutating func parseUsual() -> Bool {
        let text = UnsafeRawPointer(input.current)
        let end = input.available
        guard end > 0, text.load(as: UInt8.self) == UInt8(ascii: "*") else { return false }
        var at = 1
        let count = Self.usualNumber(text, &at, end)
        guard count > 0, count <= limits.argumentsMax, !isUnauthenticated else { return false }
        let first = input.cursor
        var left = count
        var examined = at
        while left > 0 {
            var next = at + 1
            guard at < end, text.load(fromByteOffset: at, as: UInt8.self) == UInt8(ascii: "$") else { break }
            let length = Self.usualNumber(text, &next, end)
            examined += next - at
            // All terms are below 10^18, so the sum does not overflow.
            guard length >= 0, length <= limits.bulkBytesMax, first + next + length + 2 <= limits.requestBytesMax,
                end - next >= length + 2,
                text.loadUnaligned(fromByteOffset: next + length, as: UInt16.self) == RequestHead.lineEnd
            else { break }
            arguments.append(offset: first + next, length: length)
            at = next + length + 2
            left -= 1
        }
        input.noteExamined(examined)
        input.advance(at)
        bulksLeft = left
        phase = left == 0 ? .complete : .bulkHeader
        return true
    }

    /// Parses a number in the usual form (at most 18 digits without a leading zero, and CR LF) at `at`, and moves `at`
    /// behind it. Returns -1 if it is incomplete before `end` or has another form; then `at` is where parsing stopped.
    @inline(__always)
    private static func usualNumber(_ text: UnsafeRawPointer, _ at: inout Int, _ end: Int) -> Int {
        let start = at
        let stop = min(end, start + 18)
        var value = 0
        while at < stop {
            let digit = text.load(fromByteOffset: at, as: UInt8.self) &- ASCII.zero
            if digit > 9 { break }
            value = value &* 10 &+ Int(digit)
            at += 1
        }
        guard at > start, end - at >= 2, text.loadUnaligned(fromByteOffset: at, as: UInt16.self) == RequestHead.lineEnd,
            at - start == 1 || text.load(fromByteOffset: start, as: UInt8.self) != ASCII.zero
        else { return -1 }
        at += 2
        return value
    }

    private mutating func start() -> Bool {
        guard input.available > 0 else { return false }
        phase = input.current.load(as: UInt8.self) == UInt8(ascii: "*") ? .countHeader : .inline
        return true
    }

    private mutating func parseInline() throws(ProtocolError) -> Bool {
        switch input.lfLine(limit: limits.inlineBytesMax) {
        case .incomplete: return false
        case .tooLong, .malformed: throw .tooBigInline
        case .complete(let length):
            // A CR before the LF counts as white space. If quotes are still open there, the line is invalid anyway.
            let line = UnsafeMutableRawBufferPointer(start: input.current, count: length)
            let ok = InlineWords.split(line, offset: input.cursor, into: &arguments)
            guard ok else { throw .unbalancedQuotes }
            guard arguments.count <= limits.argumentsMax else { throw .invalidMultibulkLength }
            input.advance(length + 1)
            if arguments.count == 0 { finish() } else { phase = .complete }
            return true
        }
    }

    private mutating func parseCount() throws(ProtocolError) -> Bool {
        guard let count = try header(tooLong: .tooBigMultibulkHeader, invalid: .invalidMultibulkLength) else {
            return false
        }
        guard count <= limits.argumentsMax else { throw .invalidMultibulkLength }
        if isUnauthenticated, count > Self.unauthenticatedArgumentsMax { throw .unauthenticatedMultibulkLength }
        if count <= 0 {
            finish()
        } else {
            bulksLeft = count
            phase = .bulkHeader
        }
        return true
    }

    private mutating func parseBulkHeader() throws(ProtocolError) -> Bool {
        guard input.available > 0 else { return false }
        let first = input.current.load(as: UInt8.self)
        guard first == UInt8(ascii: "$") else { throw .expectedBulk(got: first) }
        guard let length = try header(tooLong: .tooBigBulkHeader, invalid: .invalidBulkLength) else { return false }
        guard length >= 0, length <= limits.bulkBytesMax else { throw .invalidBulkLength }
        if isUnauthenticated, length > Self.unauthenticatedBulkBytesMax { throw .unauthenticatedBulkLength }
        guard input.cursor + length + 2 <= limits.requestBytesMax else { throw .tooBigRequest }
        bulkLength = length
        phase = .bulkBody
        return true
    }

    private mutating func parseBulkBody() throws(ProtocolError) -> Bool {
        guard input.available >= bulkLength + 2 else { return false }
        let end = input.current + bulkLength
        guard end.load(as: UInt8.self) == ASCII.carriageReturn,
            end.load(fromByteOffset: 1, as: UInt8.self) == ASCII.lineFeed
        else { throw .bulkWithoutLineEnd }
        arguments.append(offset: input.cursor, length: bulkLength)
        input.advance(bulkLength + 2)
        bulksLeft -= 1
        phase = bulksLeft == 0 ? .complete : .bulkHeader
        return true
    }

    /// Parses the line `<type><number>` at the cursor, and moves the cursor behind it. Nil if the line is incomplete.
    private mutating func header(
        tooLong: @autoclosure () -> ProtocolError, invalid: @autoclosure () -> ProtocolError
    ) throws(ProtocolError) -> Int? {
        if let value = input.usualHeader() { return value }
        switch input.crlfLine(limit: limits.headerBytesMax) {
        case .incomplete: return nil
        case .tooLong: throw tooLong()
        case .malformed: throw invalid()
        case .complete(let length):
            guard let number = DecimalText.integer(input.current + 1, count: length - 1) else { throw invalid() }
            input.advance(length + 2)
            return Int(number)
        }
    }
}
