// Encodes replies. Does no I/O.

/// The version of the RESP protocol on a connection: ``two`` until the client sends `HELLO 3`.
package enum RESPVersion: Int, Sendable {
    case two = 2
    case three = 3
}

/// Encodes replies and collects the bytes to send, in order.
///
/// RESP2 lacks some types. RESP2 clients get the same forms as from Redis: for a map an array of alternating keys and
/// values, for a double or a big number a bulk string, for a boolean 1 or 0.
///
/// For one thread at a time. `@unchecked Sendable`: it cannot be copied, and pointers to its memory are not kept.
package struct ReplyBuffer: ~Copyable, @unchecked Sendable {
    /// The protocol version of the encoded replies. The default is ``RESPVersion/two``.
    package var version: RESPVersion
    private var buffer = GrowableBuffer()

    package init(version: RESPVersion = .two) { self.version = version }

    // MARK: Bytes out

    /// The number of bytes that are still to be sent.
    package var count: Int { buffer.count }

    package var isEmpty: Bool { buffer.count == 0 }

    /// The size of the allocated memory, in bytes.
    package var capacity: Int { buffer.capacity }

    /// Calls `body` with the bytes to send. They are valid during the call only.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: buffer.start, count: buffer.count))
    }

    /// Removes the first `count` bytes after they were sent. Does not copy the rest.
    package mutating func removeFirst(_ count: Int) { buffer.consume(count) }

    /// Removes the last `count` bytes, so that they are not sent.
    package mutating func removeLast(_ count: Int) { buffer.removeLast(count) }

    /// Removes all bytes.
    package mutating func clear() { buffer.consume(buffer.count) }

    /// Removes all bytes and returns a copy of them.
    package mutating func take() -> [UInt8] {
        let bytes = withBytes { Array($0) }
        clear()
        return bytes
    }

    /// Frees unused memory. Copies the unsent bytes, so call it only for idle connections.
    package mutating func reclaim() { buffer.shrink() }

    // MARK: Simple types

    /// Appends the simple string `+text`. Replaces CR and LF in the text by spaces.
    package mutating func simple(_ text: String) {
        var text = text
        text.withUTF8 { line(UInt8(ascii: "+"), UnsafeRawBufferPointer($0)) }
    }

    /// Appends the error `-text`; an example of a text is `ERR syntax error`. Replaces CR and LF in the text by spaces.
    package mutating func error(_ text: String) {
        var text = text
        text.withUTF8 { line(UInt8(ascii: "-"), UnsafeRawBufferPointer($0)) }
    }

    /// Like ``error(_:)-(String)``, for texts that quote bytes of a request: such bytes may not be UTF-8.
    package mutating func error(_ text: [UInt8]) {
        text.withUnsafeBytes { line(UInt8(ascii: "-"), $0) }
    }

    package mutating func integer(_ value: Int64) { header(UInt8(ascii: ":"), value) }

    package mutating func integer(_ value: Int) { header(UInt8(ascii: ":"), Int64(value)) }

    // MARK: Strings

    package mutating func bulk(_ bytes: UnsafeRawBufferPointer) { string(UInt8(ascii: "$"), format: nil, bytes) }

    package mutating func bulk(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bulk($0) }
    }

    package mutating func bulk(_ text: String) {
        var text = text
        text.withUTF8 { bulk(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a verbatim string: a text with its format, `txt` or `mkd`. A bulk string in RESP2.
    package mutating func verbatim(_ text: String, format: StaticString = "txt") {
        precondition(format.utf8CodeUnitCount == 3, "the format of a verbatim string has three letters")
        var text = text
        text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            if version == .two { bulk(bytes) } else { string(UInt8(ascii: "="), format: format, bytes) }
        }
    }

    // MARK: Nothing

    /// Appends null in place of a value: the null bulk string in RESP2.
    package mutating func null() { raw(version == .two ? "$-1\r\n" : "_\r\n") }

    /// Appends null in place of an array: the null array in RESP2.
    package mutating func nullArray() { raw(version == .two ? "*-1\r\n" : "_\r\n") }

    // MARK: Aggregates

    /// Appends the header of an array. `count` values must follow.
    package mutating func array(count: Int) { aggregate(UInt8(ascii: "*"), count) }

    /// Appends the header of a map. `count` keys must follow, each followed by its value. An array in RESP2.
    package mutating func map(count: Int) {
        precondition(count >= 0 && count <= Int.max / 2, "the count of a map is out of range")
        if version == .two { aggregate(UInt8(ascii: "*"), count * 2) } else { aggregate(UInt8(ascii: "%"), count) }
    }

    /// Appends the header of a set. `count` values must follow. An array in RESP2.
    package mutating func set(count: Int) { aggregate(version == .two ? UInt8(ascii: "*") : UInt8(ascii: "~"), count) }

    /// Appends the header of a push message. `count` values must follow. An array in RESP2.
    package mutating func push(count: Int) { aggregate(version == .two ? UInt8(ascii: "*") : UInt8(ascii: ">"), count) }

    /// Appends a complete push message that is already encoded in RESP3. Its elements must be of types that RESP2 has
    /// too. An array in RESP2.
    package mutating func push(encoded bytes: [UInt8]) {
        precondition(bytes.first == UInt8(ascii: ">"), "a push must begin with a push header")
        raw(version == .two ? "*" : ">")
        bytes.withUnsafeBytes { raw(UnsafeRawBufferPointer(rebasing: $0.dropFirst())) }
    }

    /// Appends a list of texts under a name, as an attribute of the reply that follows. Nothing in RESP2, which has no
    /// attributes, or if there are no texts.
    package mutating func attribute(_ name: String, _ texts: [String]) {
        guard version == .three, !texts.isEmpty else { return }
        aggregate(UInt8(ascii: "|"), 1)
        bulk(name)
        array(count: texts.count)
        for text in texts { bulk(text) }
    }

    // MARK: Numbers and booleans

    /// Appends a double, as the shortest text that parses as the same number. A bulk string in RESP2.
    package mutating func double(_ value: Double) {
        let text = DecimalText.text(value)
        if version == .two { bulk(text) } else { line(UInt8(ascii: ","), text) }
    }

    /// Appends a boolean. The integer 1 or 0 in RESP2.
    package mutating func boolean(_ value: Bool) {
        if version == .two { integer(value ? 1 : 0) } else { raw(value ? "#t\r\n" : "#f\r\n") }
    }

    /// Appends an integer of any size, given as decimal digits. A bulk string in RESP2.
    package mutating func bigNumber(_ digits: String) {
        if version == .two { bulk(digits) } else { line(UInt8(ascii: "("), digits) }
    }

    // MARK: Encoded bytes

    /// Appends encoded bytes.
    package mutating func raw(_ bytes: UnsafeRawBufferPointer) { buffer.append(bytes) }

    /// Appends encoded bytes.
    package mutating func raw(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { buffer.append($0) }
    }

    /// Appends encoded bytes, for example `"+OK\r\n"`.
    package mutating func raw(_ bytes: StaticString) {
        bytes.withUTF8Buffer { buffer.append(UnsafeRawBufferPointer($0)) }
    }
}

// MARK: - Writing

extension ReplyBuffer {
    /// The maximum length of a type byte, a number and a line end.
    private static let headerBytesMax = 1 + DecimalText.lengthMax + 2

    private mutating func aggregate(_ type: UInt8, _ count: Int) {
        precondition(count >= 0, "the count of an aggregate is negative")
        header(type, Int64(count))
    }

    private mutating func header(_ type: UInt8, _ number: Int64) {
        buffer.reserve(Self.headerBytesMax)
        buffer.commit(Self.writeHeader(type, number, to: buffer.freeStart))
    }

    private mutating func string(_ type: UInt8, format: StaticString?, _ bytes: UnsafeRawBufferPointer) {
        let formatBytes = format == nil ? 0 : 4
        buffer.reserve(Self.headerBytesMax + formatBytes + bytes.count + 2)
        var end = buffer.freeStart
        end += Self.writeHeader(type, Int64(formatBytes + bytes.count), to: end)
        if let format {
            end.copyMemory(from: format.utf8Start, byteCount: 3)
            end.storeBytes(of: UInt8(ascii: ":"), toByteOffset: 3, as: UInt8.self)
            end += formatBytes
        }
        if let source = bytes.baseAddress {
            end.copyMemory(from: source, byteCount: bytes.count)
            end += bytes.count
        }
        Self.writeLineEnd(to: end)
        buffer.commit(end + 2 - buffer.freeStart)
    }

    private mutating func line(_ type: UInt8, _ text: String) {
        var text = text
        text.withUTF8 { line(type, UnsafeRawBufferPointer($0)) }
    }

    private mutating func line(_ type: UInt8, _ text: UnsafeRawBufferPointer) {
        buffer.reserve(text.count + 3)
        let start = buffer.freeStart
        start.storeBytes(of: type, as: UInt8.self)
        for (index, byte) in text.enumerated() {
            let breaks = byte == ASCII.carriageReturn || byte == ASCII.lineFeed
            start.storeBytes(of: breaks ? ASCII.space : byte, toByteOffset: index + 1, as: UInt8.self)
        }
        Self.writeLineEnd(to: start + 1 + text.count)
        buffer.commit(text.count + 3)
    }

    /// - Returns: the number of bytes written, at most ``headerBytesMax``.
    @inline(__always)
    private static func writeHeader(_ type: UInt8, _ number: Int64, to start: UnsafeMutableRawPointer) -> Int {
        start.storeBytes(of: type, as: UInt8.self)
        let digits = DecimalText.write(number, to: start + 1)
        writeLineEnd(to: start + 1 + digits)
        return 1 + digits + 2
    }

    @inline(__always)
    private static func writeLineEnd(to end: UnsafeMutableRawPointer) {
        end.storeBytes(of: ASCII.carriageReturn, as: UInt8.self)
        end.storeBytes(of: ASCII.lineFeed, toByteOffset: 1, as: UInt8.self)
    }

    /// Appends another server's reply in this connection's version of the protocol. Writes a push as an array.
    package mutating func write(_ value: RESPValue) {
        switch value {
        case .simpleString(let text): simple(text)
        case .error(let text): error(text)
        case .integer(let number): integer(number)
        case .bulk(let bytes): bulk(bytes)
        case .null: null()
        case .array(let elements), .push(let elements):
            array(count: elements.count)
            for element in elements { write(element) }
        case .set(let elements):
            set(count: elements.count)
            for element in elements { write(element) }
        case .map(let pairs):
            map(count: pairs.count)
            for pair in pairs {
                write(pair.key)
                write(pair.value)
            }
        case .double(let number): double(number)
        case .boolean(let flag): boolean(flag)
        case .bigNumber(let digits): bigNumber(digits)
        case .verbatim(let format, let text):
            verbatim(String(decoding: text, as: UTF8.self), format: format == "mkd" ? "mkd" : "txt")
        }
    }
}
