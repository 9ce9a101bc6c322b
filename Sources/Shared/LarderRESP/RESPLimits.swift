// The limits of the parsers for what a peer may send.

/// Limits on what a peer may send. The parsers compare each received length with its limit before they use it in
/// arithmetic or an allocation.
///
/// Values out of range are clamped, so that no number from the command line can crash the program.
package struct RESPLimits: Sendable, Equatable {
    /// The maximum length of an inline command in bytes, without its line end. The default is 65,536.
    package let inlineBytesMax: Int
    /// The maximum number of arguments of one request. The default is 1,048,576.
    package let argumentsMax: Int
    /// The maximum length of a bulk string in bytes. The default is 536,870,912 (512 MiB).
    package let bulkBytesMax: Int
    /// The maximum length, in bytes, of a line that contains a length, a number, a simple string or an error. The
    /// default is 65,536.
    package let headerBytesMax: Int
    /// The maximum size of a request or a reply in bytes. The default is 1,073,741,824 (1 GiB); at most 4,000,000,000.
    package let requestBytesMax: Int
    /// The maximum number of elements of one reply, including elements of nested aggregates. The default is 16,777,216.
    package let elementsMax: Int
    /// The maximum nesting depth of aggregates in one reply. The default is 32.
    package let depthMax: Int

    package init(
        inlineBytesMax: Int = 65_536,
        argumentsMax: Int = 1_048_576,
        bulkBytesMax: Int = 536_870_912,
        headerBytesMax: Int = 65_536,
        requestBytesMax: Int = 1_073_741_824,
        elementsMax: Int = 16_777_216,
        depthMax: Int = 32
    ) {
        // Argument positions have 32 bits: see ArgumentTable.
        let bytesCeiling = 4_000_000_000
        self.inlineBytesMax = min(max(inlineBytesMax, 1), 1 << 30)
        self.argumentsMax = min(max(argumentsMax, 1), 1 << 30)
        self.bulkBytesMax = min(max(bulkBytesMax, 0), bytesCeiling)
        self.headerBytesMax = min(max(headerBytesMax, 1), 1 << 30)
        self.requestBytesMax = min(max(requestBytesMax, 1), bytesCeiling)
        self.elementsMax = min(max(elementsMax, 1), 1 << 30)
        // Freeing a nested value recurses, so the depth must not be so large that the stack overflows.
        self.depthMax = min(max(depthMax, 1), 256)
    }
}

/// The error for a peer that violates the protocol. The rest of the stream cannot be parsed, so send `message` as error
/// reply and close the connection.
package struct ProtocolError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The text of the error reply after `ERR `. Errors in requests have the same text as in Redis, if Redis has one.
    package let message: String

    package init(_ message: String) { self.message = "Protocol error: " + message }

    package var description: String { message }
}

extension ProtocolError {
    // Requests.
    static let invalidMultibulkLength = ProtocolError("invalid multibulk length")
    static let invalidBulkLength = ProtocolError("invalid bulk length")
    static let unauthenticatedMultibulkLength = ProtocolError("unauthenticated multibulk length")
    static let unauthenticatedBulkLength = ProtocolError("unauthenticated bulk length")
    static let unbalancedQuotes = ProtocolError("unbalanced quotes in request")
    static let tooBigInline = ProtocolError("too big inline request")
    static let tooBigMultibulkHeader = ProtocolError("too big mbulk count string")
    static let tooBigBulkHeader = ProtocolError("too big bulk count string")
    static let tooBigRequest = ProtocolError("too big request")
    static let bulkWithoutLineEnd = ProtocolError("expected CRLF after bulk")

    static func expectedBulk(got byte: UInt8) -> ProtocolError {
        ProtocolError("expected '$', got '\(printable(byte))'")
    }

    // Replies.
    static let tooLongLine = ProtocolError("too long line in reply")
    static let malformedLine = ProtocolError("line of reply does not end in CRLF")
    static let invalidNumber = ProtocolError("invalid number in reply")
    static let invalidReply = ProtocolError("malformed reply")
    static let tooManyElements = ProtocolError("too many elements in reply")
    static let tooDeepReply = ProtocolError("too deeply nested reply")
    static let tooBigReply = ProtocolError("too big reply")

    static func unknownReplyType(_ byte: UInt8) -> ProtocolError {
        ProtocolError("unknown reply type '\(printable(byte))'")
    }
}

/// Returns a byte in printable form: a space for CR and LF, as in Redis, and `\xHH` for other unprintable bytes.
private func printable(_ byte: UInt8) -> String {
    if byte == ASCII.carriageReturn || byte == ASCII.lineFeed { return " " }
    if (0x20...0x7E).contains(byte) { return String(UnicodeScalar(byte)) }
    let digits = String(byte, radix: 16)
    return byte < 0x10 ? "\\x0" + digits : "\\x" + digits
}
