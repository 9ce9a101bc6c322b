// Tests that the reply parser uses linear time and limited memory, and parses what the writer writes. Also tests the
// conversions by the accessors of ``RESPValue``.

import LarderTestSupport
import Testing

@testable import LarderRESP

@Suite struct ReplyParserTests {
    @Test func aProtocolErrorIsPermanent() throws {
        var parser = ReplyParser()
        parser.append(Array("*2\r\n:1\r\n?\r\n+OK\r\n".utf8))
        for _ in 0..<3 {
            #expect(throws: ProtocolError("unknown reply type '?'")) { try parser.next() }
            parser.append(Array("+OK\r\n".utf8))
        }
    }

    @Test func aParserIsIdleBetweenReplies() throws {
        var parser = ReplyParser()
        #expect(parser.isIdle == true)
        for (piece, idle) in [("*2\r\n", false), (":1\r\n", false), ("$1\r\n", false), ("a\r\n", true), (":", false)] {
            parser.append(Array(piece.utf8))
            _ = try parser.next()
            #expect(parser.isIdle == idle, "after \(piece.debugDescription)")
        }
        #expect(parser.bufferedBytes == 1)
    }

    @Test func parsingRepliesFromSmallPiecesTakesLinearWork() throws {
        let elements = 3_000
        var buffer = ReplyBuffer(version: .three)
        buffer.array(count: elements)
        for index in 0..<elements {
            buffer.map(count: 1)
            buffer.bulk("key \(index)")
            buffer.simple("value of key \(index)")
        }
        buffer.bulk([UInt8](repeating: 0x0D, count: 100_000))
        let bytes = buffer.take()
        for step in [1, 7, 1_000] {
            var parser = ReplyParser()
            var replies = 0
            for start in stride(from: 0, to: bytes.count, by: step) {
                parser.append(Array(bytes[start..<min(start + step, bytes.count)]))
                while try parser.next() != nil { replies += 1 }
            }
            #expect(replies == 2)
            #expect(parser.work.bytesExamined <= bytes.count, "pieces of \(step) bytes")
            #expect(parser.work.bytesMoved < 3 * bytes.count, "pieces of \(step) bytes")
        }
    }

    /// Regression test: a long string arrived slowly because the received part was copied each time memory was
    /// released.
    @Test func releasingMemoryCopiesNoIncompleteString() throws {
        let length = 8 << 20
        var parser = ReplyParser()
        parser.append(Array("$\(length)\r\n".utf8))
        let piece = [UInt8](repeating: 7, count: 1 << 16)
        for _ in 0..<(length / piece.count) {
            parser.append(piece)
            #expect(try parser.next() == nil)
            parser.reclaim()
        }
        parser.append([13, 10])
        #expect(try parser.next() == .bulk([UInt8](repeating: 7, count: length)))
        #expect(parser.work.bytesMoved < 3 * length)
    }

    @Test func memoryCanBeReleasedWithinAReply() throws {
        var parser = ReplyParser()
        var replies: [RESPValue] = []
        for byte in Array("*2\r\n$3\r\nabc\r\n:12\r\n".utf8) {
            parser.append([byte])
            if let reply = try parser.next() { replies.append(reply) }
            parser.reclaim()
        }
        #expect(replies == [.array([.bulk(Array("abc".utf8)), .integer(12)])])
    }

    @Test func repliesNestedDeeperThanTheLimitAreErrors() {
        let opened = String(repeating: "*1\r\n", count: 256)
        let limits = RESPLimits(depthMax: 256)
        let outcome = parseReplies([Array((opened + ":1\r\n").utf8)], limits: limits)
        var value = outcome.replies.first
        var depth = 0
        while let inner = value?.elements?.first {
            value = inner
            depth += 1
        }
        #expect(depth == 256)
        #expect(parseReplies([Array((opened + "*1\r\n").utf8)], limits: limits).error == .tooDeepReply)
        #expect(parseReplies([Array(opened.utf8)]).error == .tooDeepReply)
    }

    @Test func damagedRepliesAreParsedAlikeHoweverTheyAreSplit() {
        var random = SeededGenerator(seed: testSeed())
        let limits = RESPLimits(
            bulkBytesMax: 60, headerBytesMax: 30, requestBytesMax: 200, elementsMax: 20, depthMax: 4)
        let telling = Array("+-:$!=*%~>|_#,(\r\n0129tfi?\0".utf8)
        for _ in 0..<2_000 {
            var buffer = ReplyBuffer(version: .three)
            for _ in 0..<3 { write(randomValue(depth: 2, using: &random), to: &buffer) }
            var bytes = buffer.take()
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                guard let place = bytes.indices.randomElement(using: &random),
                    let byte = telling.randomElement(using: &random)
                else { continue }
                if random.oneIn(2) { bytes[place] = byte } else { bytes.insert(byte, at: place) }
            }
            // Compare descriptions, because the damage may create a NaN, which is not equal to itself.
            let whole = String(describing: parseReplies([bytes], limits: limits))
            #expect(String(describing: parseReplies(bytes.drops, limits: limits)) == whole)
            let pieces = bytes.randomPieces(upTo: 12, using: &random)
            #expect(String(describing: parseReplies(pieces, limits: limits)) == whole)
        }
    }

    // MARK: Round trips

    @Test func writtenRepliesAreParsedBack() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<400 {
            let values = (0..<5).map { _ in randomValue(depth: 3, using: &random) }
            for version in [RESPVersion.two, .three] {
                var buffer = ReplyBuffer(version: version)
                for value in values { write(value, to: &buffer) }
                let pieces = buffer.take().randomPieces(upTo: random.oneIn(2) ? 6 : 500, using: &random)
                let expected = version == .three ? values : values.map(asInTwo)
                #expect(parseReplies(pieces) == ReplyOutcome(replies: expected))
            }
        }
    }

    private func randomValue(depth: Int, using random: inout SeededGenerator) -> RESPValue {
        let count = Int.random(in: 0...4, using: &random)
        switch Int.random(in: 0..<(depth > 0 ? 13 : 9), using: &random) {
        case 0: return .simpleString(randomText(using: &random))
        case 1: return .error("ERR " + randomText(using: &random))
        case 2: return .integer(Int64(bitPattern: random.next() >> UInt64.random(in: 0...63, using: &random)))
        case 3: return .bulk(random.bytes(count: count * 7))
        case 4: return .null
        case 5:
            let value = Double(bitPattern: random.next())
            return .double(value.isNaN ? Double(count) : value)
        case 6: return .boolean(random.oneIn(2))
        case 7: return .bigNumber("-\(random.next())\(random.next())")
        case 8: return .verbatim(format: random.oneIn(2) ? "txt" : "mkd", text: Array(randomText(using: &random).utf8))
        case 9: return .array((0..<count).map { _ in randomValue(depth: depth - 1, using: &random) })
        case 10: return .set((0..<count).map { _ in randomValue(depth: depth - 1, using: &random) })
        case 11: return .push((0..<count).map { _ in randomValue(depth: depth - 1, using: &random) })
        default:
            return .map(
                (0..<count).map { _ in
                    RESPValue.Pair(
                        key: randomValue(depth: 0, using: &random),
                        value: randomValue(depth: depth - 1, using: &random))
                })
        }
    }

    private func randomText(using random: inout SeededGenerator) -> String {
        String(
            (0..<Int.random(in: 0...9, using: &random)).map { _ in "aZ9 é书\t\"".randomElement(using: &random) ?? "x" })
    }

    private func write(_ value: RESPValue, to buffer: inout ReplyBuffer) {
        switch value {
        case .simpleString(let text): buffer.simple(text)
        case .error(let text): buffer.error(text)
        case .integer(let value): buffer.integer(value)
        case .bulk(let bytes): buffer.bulk(bytes)
        case .null: buffer.null()
        case .double(let value): buffer.double(value)
        case .boolean(let value): buffer.boolean(value)
        case .bigNumber(let digits): buffer.bigNumber(digits)
        case .verbatim(let format, let text):
            buffer.verbatim(String(decoding: text, as: UTF8.self), format: format == "txt" ? "txt" : "mkd")
        case .array(let values):
            buffer.array(count: values.count)
            for value in values { write(value, to: &buffer) }
        case .set(let values):
            buffer.set(count: values.count)
            for value in values { write(value, to: &buffer) }
        case .push(let values):
            buffer.push(count: values.count)
            for value in values { write(value, to: &buffer) }
        case .map(let pairs):
            buffer.map(count: pairs.count)
            for pair in pairs {
                write(pair.key, to: &buffer)
                write(pair.value, to: &buffer)
            }
        }
    }

    /// Returns the equivalent value that a client of RESP2 gets.
    private func asInTwo(_ value: RESPValue) -> RESPValue {
        switch value {
        case .simpleString, .error, .integer, .bulk, .null: value
        case .double(let value): .bulk(Array(DecimalText.text(value).utf8))
        case .boolean(let value): .integer(value ? 1 : 0)
        case .bigNumber(let digits): .bulk(Array(digits.utf8))
        case .verbatim(_, let text): .bulk(text)
        case .array(let values), .set(let values), .push(let values): .array(values.map(asInTwo))
        case .map(let pairs): .array(pairs.flatMap { [asInTwo($0.key), asInTwo($0.value)] })
        }
    }
}

@Suite struct RESPValueTests {
    @Test func stringIsNilForOtherTypesAndInvalidUTF8() {
        #expect(RESPValue.bulk(Array("abc".utf8)).string == "abc")
        #expect(RESPValue.bulk([0xFF]).string == nil)
        #expect(RESPValue.bulk([0xFF]).bytes == [0xFF])
        #expect(RESPValue.simpleString("OK").bytes == Array("OK".utf8))
        #expect(RESPValue.verbatim(format: "txt", text: [0x61]).string == "a")
        #expect(RESPValue.error("ERR").string == nil)
        #expect(RESPValue.error("ERR").errorMessage == "ERR")
        #expect(RESPValue.integer(1).string == nil)
    }

    @Test func numbersAreReadFromTextAndNilForOtherTypes() {
        #expect(RESPValue.integer(-5).int == -5)
        #expect(RESPValue.bulk(Array("-5".utf8)).int == -5)
        #expect(RESPValue.bulk([]).int == nil)
        #expect(RESPValue.bulk(Array("5x".utf8)).int == nil)
        #expect(RESPValue.bulk(Array("9223372036854775808".utf8)).int == nil)
        #expect(RESPValue.null.int == nil)
        #expect(RESPValue.double(1.5).double == 1.5)
        #expect(RESPValue.bulk(Array("1.5".utf8)).double == 1.5)
        #expect(RESPValue.integer(2).double == 2)
        #expect(RESPValue.boolean(true).bool == true)
        #expect(RESPValue.integer(0).bool == false)
        #expect(RESPValue.integer(2).bool == nil)
    }

    @Test func pairsAndElementsAreNilForOtherTypes() {
        let pair = RESPValue.Pair(key: .integer(1), value: .null)
        #expect(RESPValue.map([pair]).pairs == [pair])
        #expect(RESPValue.array([.integer(1), .null]).pairs == [pair])
        #expect(RESPValue.array([.integer(1)]).pairs == nil)
        #expect(RESPValue.array([]).pairs == [])
        #expect(RESPValue.set([.null]).elements == [.null])
        #expect(RESPValue.map([pair]).elements == nil)
        #expect(RESPValue.null.isNull)
        #expect(!RESPValue.integer(0).isNull)
    }
}
