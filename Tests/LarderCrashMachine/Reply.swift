import LarderTestSupport

/// Inspects replies as the daemon sends them, in RESP2.
enum Reply {
    static func isError(_ reply: [UInt8]) -> Bool { reply.first == UInt8(ascii: "-") }

    /// Whether the reply is an error, an array that contains one, or the null array of an aborted transaction.
    static func hasError(_ reply: [UInt8]) -> Bool {
        isError(reply) || elements(reply).contains { isError($0) } || reply == Array("*-1\r\n".utf8)
    }

    /// Whether an error says that the refused operation may still have happened.
    static func saysThatItMayCount(_ reply: [UInt8]) -> Bool {
        let text = String(decoding: reply, as: UTF8.self)
        return hasError(reply)
            && (text.contains("this write may or may not survive") || text.contains("it may count for a later process"))
    }

    /// The raw replies in an array.
    static func elements(_ reply: [UInt8]) -> [[UInt8]] {
        guard reply.first == UInt8(ascii: "*"), let end = reply.firstIndex(of: 0x0A) else { return [] }
        return RawReply.split(Array(reply[(end + 1)...]))
    }

    /// The bulk strings in an array; nil for null.
    static func bulks(_ reply: [UInt8]) -> [[UInt8]?] {
        elements(reply).map { $0.starts(with: Array("$-1".utf8)) ? nil : RawReply.bulk($0) }
    }

    static func text(_ reply: [UInt8]) -> String { String(decoding: reply.prefix(200), as: UTF8.self) }
}
