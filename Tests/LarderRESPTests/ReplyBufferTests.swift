// Replies, byte for byte, in both versions of the protocol.

import Testing

@testable import LarderRESP

/// Returns the output of `body` as text.
private func written(_ version: RESPVersion, _ body: (inout ReplyBuffer) -> Void) -> String {
    var buffer = ReplyBuffer(version: version)
    body(&buffer)
    return String(decoding: buffer.take(), as: UTF8.self)
}

@Suite struct ReplyBufferTests {
    /// Writes with both versions and compares with the texts.
    private func expect(
        two: String, three: String, _ location: SourceLocation = #_sourceLocation, _ body: (inout ReplyBuffer) -> Void
    ) {
        #expect(written(.two, body) == two, sourceLocation: location)
        #expect(written(.three, body) == three, sourceLocation: location)
    }

    @Test func theDefaultProtocolVersionIsRESP2() {
        #expect(ReplyBuffer().version == .two)
    }

    @Test func simpleStringsAndErrorsAreWrittenInOneLine() {
        expect(two: "+OK\r\n", three: "+OK\r\n") { $0.simple("OK") }
        expect(two: "+\r\n", three: "+\r\n") { $0.simple("") }
        expect(two: "-ERR no\r\n", three: "-ERR no\r\n") { $0.error("ERR no") }
        expect(two: "-ERR a b  c\r\n", three: "-ERR a b  c\r\n") { $0.error("ERR a\nb\r\nc") }
        expect(two: "+a b\r\n", three: "+a b\r\n") { $0.simple("a\rb") }
        expect(two: "-ERR 'é'\r\n", three: "-ERR 'é'\r\n") { $0.error("ERR 'é'") }
    }

    @Test func errorsMayContainBytesThatAreNotText() {
        var buffer = ReplyBuffer()
        buffer.error(Array("ERR '".utf8) + [0xFF, 0x0A, 0x00] + Array("'".utf8))
        #expect(buffer.take() == Array("-ERR '".utf8) + [0xFF, 0x20, 0x00] + Array("'\r\n".utf8))
    }

    @Test func integersAreWrittenInDecimal() {
        var values: [Int64] = [.min, .min + 1, .max, .max - 1, 0, -1]
        var power: Int64 = 1
        while power < .max / 10 {
            values += [power - 1, power, power + 1, -power, 1 - power]
            power *= 10
        }
        values += [power - 1, power]
        for value in values {
            expect(two: ":\(value)\r\n", three: ":\(value)\r\n") { $0.integer(value) }
        }
        expect(two: ":7\r\n", three: ":7\r\n") { $0.integer(Int(7)) }
    }

    @Test func bulkAndVerbatimStringsAreWrittenWithTheirLength() {
        expect(two: "$0\r\n\r\n", three: "$0\r\n\r\n") { $0.bulk("") }
        expect(two: "$3\r\na\r\n\r\n", three: "$3\r\na\r\n\r\n") { $0.bulk("a\r\n") }
        expect(two: "$6\r\n王五\r\n", three: "$6\r\n王五\r\n") { $0.bulk("王五") }
        expect(two: "$0\r\n\r\n", three: "$0\r\n\r\n") { $0.bulk(UnsafeRawBufferPointer(start: nil, count: 0)) }
        let long = String(repeating: "x", count: 12_345)
        expect(two: "$12345\r\n\(long)\r\n", three: "$12345\r\n\(long)\r\n") { $0.bulk(long) }
        expect(two: "$2\r\nhi\r\n", three: "=6\r\ntxt:hi\r\n") { $0.verbatim("hi") }
        expect(two: "$0\r\n\r\n", three: "=4\r\nmkd:\r\n") { $0.verbatim("", format: "mkd") }
    }

    @Test func nullsAreWrittenAsInTheProtocolVersion() {
        expect(two: "$-1\r\n", three: "_\r\n") { $0.null() }
        expect(two: "*-1\r\n", three: "_\r\n") { $0.nullArray() }
    }

    @Test func collectionsAreWrittenAsInTheProtocolVersion() {
        expect(two: "*0\r\n", three: "*0\r\n") { $0.array(count: 0) }
        expect(two: "*12\r\n", three: "*12\r\n") { $0.array(count: 12) }
        expect(two: "*4\r\n", three: "%2\r\n") { $0.map(count: 2) }
        expect(two: "*2\r\n", three: "~2\r\n") { $0.set(count: 2) }
        expect(two: "*3\r\n", three: ">3\r\n") { $0.push(count: 3) }
    }

    @Test func booleansAndNumbersAreWrittenAsInTheProtocolVersion() {
        expect(two: ":1\r\n", three: "#t\r\n") { $0.boolean(true) }
        expect(two: ":0\r\n", three: "#f\r\n") { $0.boolean(false) }
        expect(two: "$2\r\n42\r\n", three: "(42\r\n") { $0.bigNumber("42") }
        expect(two: "$3\r\n1.5\r\n", three: ",1.5\r\n") { $0.double(1.5) }
    }

    @Test(arguments: [
        (1.0, "1"), (-3.0, "-3"), (0.0, "0"), (-0.0, "-0"), (0.1, "0.1"), (1e15, "1000000000000000"), (1e300, "1e+300"),
        (.leastNonzeroMagnitude, "5e-324"), (.infinity, "inf"), (-.infinity, "-inf"), (.nan, "nan"), (-.nan, "nan"),
        (.signalingNaN, "nan"), (.pi, "3.141592653589793"),
    ])
    func doublesAreWrittenWithTheFewestDigits(_ value: Double, _ text: String) {
        #expect(written(.three) { $0.double(value) } == ",\(text)\r\n")
    }

    @Test func theLastReplyCanBeRemoved() {
        var replies = ReplyBuffer()
        replies.bulk("stays")
        let before = replies.count
        replies.bulk("goes")
        replies.removeLast(replies.count - before)
        replies.null()
        #expect(String(decoding: replies.take(), as: UTF8.self) == "$5\r\nstays\r\n$-1\r\n")
    }

    @Test func bytesAreRemovedFromTheFront() {
        var buffer = ReplyBuffer()
        #expect(buffer.isEmpty == true)
        buffer.simple("OK")
        buffer.raw("+PONG\r\n")
        Array("_\r\n".utf8).withUnsafeBytes { buffer.raw($0) }
        #expect(buffer.count == 15)
        buffer.removeFirst(5)
        #expect(buffer.withBytes { Array($0) } == Array("+PONG\r\n_\r\n".utf8))
        buffer.removeFirst(0)
        buffer.integer(1)
        #expect(buffer.take() == Array("+PONG\r\n_\r\n:1\r\n".utf8))
        #expect(buffer.isEmpty == true)
        #expect(buffer.take().isEmpty)
        buffer.null()
        buffer.clear()
        #expect(buffer.isEmpty == true)
    }

    @Test func memoryIsKeptWhileBusyAndReleasedWhenIdle() {
        var buffer = ReplyBuffer()
        for _ in 0..<1_000 { buffer.bulk("some value") }
        let capacity = buffer.capacity
        buffer.clear()
        for _ in 0..<1_000 { buffer.bulk("some value") }
        #expect(buffer.capacity == capacity)
        buffer.removeFirst(buffer.count - 10)
        buffer.reclaim()
        #expect(buffer.capacity == 10)
        #expect(buffer.take() == Array("ome value\r\n".utf8.suffix(10)))
    }

    /// A slow client reads a little at a time while more replies come.
    @Test func repliesReadInSmallPiecesAreComplete() {
        var buffer = ReplyBuffer()
        var out: [UInt8] = []
        var expected: [UInt8] = []
        for index in 0..<5_000 {
            buffer.integer(index)
            expected += Array(":\(index)\r\n".utf8)
            let count = min(5, buffer.count)
            out += buffer.withBytes { Array($0.prefix(count)) }
            buffer.removeFirst(count)
        }
        out += buffer.take()
        #expect(out == expected)
    }
}
