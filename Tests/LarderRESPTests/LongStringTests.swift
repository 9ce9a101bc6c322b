import Testing

@testable import LarderRESP

/// Tests of parsers that skip strings longer than the limit: null replaces them, and parsing continues.
@Suite struct LongStringTests {
    private static func parser() -> ReplyParser {
        ReplyParser(limits: RESPLimits(bulkBytesMax: 4, requestBytesMax: 64), skipsLongStrings: true)
    }

    private static let stream = Array("$5\r\nabcde\r\n*2\r\n$9\r\n123456789\r\n$2\r\nab\r\n$4\r\nfits\r\n".utf8)

    private static func replies(_ bytes: [UInt8], inPiecesOf count: Int) throws -> [(RESPValue, Int)] {
        var parser = parser()
        var replies: [(RESPValue, Int)] = []
        for start in stride(from: 0, to: bytes.count, by: count) {
            parser.append(Array(bytes[start..<min(start + count, bytes.count)]))
            while let reply = try parser.next() { replies.append((reply, parser.skippedBytes)) }
        }
        let isIdle = parser.isIdle
        #expect(isIdle)
        return replies
    }

    @Test(arguments: [1, 2, 3, 7, 1000]) func stringsLongerThanTheLimitAreReturnedAsNull(_ count: Int) throws {
        let replies = try Self.replies(Self.stream, inPiecesOf: count)
        #expect(replies.map(\.0) == [.null, .array([.null, .bulk([97, 98])]), .bulk(Array("fits".utf8))])
        #expect(replies.map(\.1) == [5, 9, 0])
    }

    @Test func stringsLongerThanTheLimitUseNoMemory() throws {
        var parser = Self.parser()
        parser.append(Array("$100000000\r\n".utf8))
        let none = try parser.next()
        #expect(none == nil)
        let piece = [UInt8](repeating: 120, count: 100_000)
        for _ in 0..<1000 {
            parser.append(piece)
            let none = try parser.next()
            #expect(none == nil)
            let kept = parser.bufferedBytes
            #expect(kept == 0)
        }
        parser.append(Array("\r\n".utf8))
        let reply = try parser.next()
        #expect(reply == .null)
        let skipped = parser.skippedBytes
        #expect(skipped == 100_000_000)
    }

    @Test(arguments: ["$5\r\nabcdeXX", "$99999999999\r\n", "$-2\r\n", "!5\r\nabcde\r\n"])
    func malformedLongStringsAreErrors(_ text: String) {
        #expect(throws: ProtocolError.self) { try Self.replies(Array(text.utf8), inPiecesOf: 1000) }
    }
}
