// Errors of the parsers, for bytes that violate the RESP protocol.

/// The error for a peer that violates the protocol. The rest of the stream cannot be parsed, so send `message` as error
/// reply and close the connection.
package struct ProtocolError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The text of the error reply after `ERR `. Errors in requests have the same text as in Redis, if Redis has one.
    package let message: String

    package init(_ message: String) {
        self.message = "Protocol error: " + message
    }

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
