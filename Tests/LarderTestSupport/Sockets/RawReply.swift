/// Finds the ends of replies in a stream of bytes, without decoding them, because tests compare replies byte by byte.
package enum RawReply {
    /// Returns the length of the first reply in `bytes`, in RESP2 or RESP3.
    /// - Returns: nil if the reply is incomplete.
    package static func length(_ bytes: [UInt8], from start: Int = 0) -> Int? {
        var position = start
        var missing = 1
        while missing > 0 {
            guard let end = lineEnd(bytes, position) else { return nil }
            let number = Int(String(decoding: bytes[(position + 1)..<end], as: UTF8.self)) ?? 0
            let type = bytes[position]
            position = end + 2
            missing -= 1
            switch type {
            case UInt8(ascii: "$"), UInt8(ascii: "="), UInt8(ascii: "!"):
                if number >= 0 { position += number + 2 }
                guard position <= bytes.count else { return nil }
            case UInt8(ascii: "*"), UInt8(ascii: "~"), UInt8(ascii: ">"): missing += max(0, number)
            case UInt8(ascii: "%"): missing += 2 * max(0, number)
            default: break
            }
        }
        return position - start
    }

    private static func lineEnd(_ bytes: [UInt8], _ start: Int) -> Int? {
        var index = start
        while index + 1 < bytes.count {
            if bytes[index] == 0x0D, bytes[index + 1] == 0x0A { return index }
            index += 1
        }
        return nil
    }

    /// Returns the replies in `bytes`; the last one may be incomplete.
    package static func split(_ bytes: [UInt8]) -> [[UInt8]] {
        var replies: [[UInt8]] = []
        var position = 0
        while position < bytes.count {
            let count = length(bytes, from: position) ?? bytes.count - position
            replies.append(Array(bytes[position..<(position + count)]))
            position += count
        }
        return replies
    }
}

extension RawReply {
    /// Returns the bytes of a bulk string; empty for null and for other replies.
    package static func bulk(_ reply: [UInt8]) -> [UInt8] {
        guard reply.first == UInt8(ascii: "$"), let end = lineEnd(reply, 0), reply.count >= end + 4 else { return [] }
        return Array(reply[(end + 2)...].dropLast(2))
    }

    /// Returns the value of an integer; nil for other replies.
    package static func integer(_ reply: [UInt8]) -> Int? {
        guard reply.first == UInt8(ascii: ":") else { return nil }
        return Int(String(decoding: reply.dropFirst().dropLast(2), as: UTF8.self))
    }

    /// Returns the elements of an array of bulk strings. An element that is not a bulk string, such as null, is
    /// returned as an empty one. If the reply is not an array, the result is empty.
    package static func bulks(_ reply: [UInt8]) -> [[UInt8]] {
        guard reply.first == UInt8(ascii: "*"), let end = lineEnd(reply, 0) else { return [] }
        return split(Array(reply[(end + 2)...])).map(bulk)
    }
}

/// Returns a request, encoded as an array of bulk strings.
package func encodeRequest(_ words: [[UInt8]]) -> [UInt8] {
    var bytes = Array("*\(words.count)\r\n".utf8)
    for word in words { bytes += Array("$\(word.count)\r\n".utf8) + word + [0x0D, 0x0A] }
    return bytes
}

package func encodeRequest(_ words: [String]) -> [UInt8] { encodeRequest(words.map { Array($0.utf8) }) }

/// Returns the words of `line`, split at its spaces, as an encoded request.
package func encodeRequest(_ line: String) -> [UInt8] {
    encodeRequest(line.split(separator: " ", omittingEmptySubsequences: false).map(String.init))
}
