// Replies as a client reads them: valid, unusual and hostile ones, split in every way.

import Testing

@testable import LarderRESP

struct ReplyOutcome: Equatable {
    var replies: [RESPValue] = []
    var error: ProtocolError?
}

func parseReplies(_ pieces: [some Collection<UInt8>], limits: RESPLimits = RESPLimits()) -> ReplyOutcome {
    var parser = ReplyParser(limits: limits)
    var outcome = ReplyOutcome()
    for (index, piece) in pieces.enumerated() {
        if index.isMultiple(of: 2) {
            parser.append(Array(piece))
        } else {
            parser.writableSpace(atLeast: piece.count).copyBytes(from: piece)
            parser.didWrite(piece.count)
        }
        do {
            while let reply = try parser.next() { outcome.replies.append(reply) }
            if outcome.error != nil { outcome.error = ProtocolError("the parser went on after an error") }
        } catch {
            outcome.error = outcome.error ?? error
        }
    }
    return outcome
}

struct ReplyFixture: CustomStringConvertible, Sendable {
    var bytes: [UInt8]
    var expected: ReplyOutcome
    var limits: RESPLimits

    init(_ text: String, _ replies: [RESPValue], error: String? = nil, limits: RESPLimits = RESPLimits()) {
        bytes = Array(text.utf8)
        expected = ReplyOutcome(replies: replies, error: error.map { ProtocolError($0) })
        self.limits = limits
    }

    var description: String { String(decoding: bytes.prefix(60), as: UTF8.self).debugDescription }
}

private func bulk(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }

@Suite struct ReplyFixtureTests {
    // Computed, because LeakSanitizer does not recognize pointers in an enum's payload. It would report the memory of a
    // global value as a leak at exit.

    static var scalars: [ReplyFixture] {
        [
            ReplyFixture("", []),
            ReplyFixture("+OK\r\n", [.simpleString("OK")]),
            ReplyFixture("+\r\n-\r\n", [.simpleString(""), .error("")]),
            ReplyFixture("-ERR no such thing\r\n", [.error("ERR no such thing")]),
            ReplyFixture("!9\r\nERR a\r\nb!\r\n", [.error("ERR a\r\nb!")]),
            ReplyFixture(":0\r\n:-1\r\n:+5\r\n", [.integer(0), .integer(-1), .integer(5)]),
            ReplyFixture(":9223372036854775807\r\n:-9223372036854775808\r\n", [.integer(.max), .integer(.min)]),
            ReplyFixture("$3\r\nabc\r\n$0\r\n\r\n", [bulk("abc"), bulk("")]),
            ReplyFixture("$4\r\n\r\n\r\n\r\n", [bulk("\r\n\r\n")]),
            ReplyFixture("$-1\r\n*-1\r\n_\r\n", [.null, .null, .null]),
            ReplyFixture("#t\r\n#f\r\n", [.boolean(true), .boolean(false)]),
            ReplyFixture(",1.5\r\n,10\r\n,-1e-3\r\n", [.double(1.5), .double(10), .double(-0.001)]),
            ReplyFixture(",inf\r\n,-inf\r\n", [.double(.infinity), .double(-.infinity)]),
            ReplyFixture(
                "(123456789012345678901234567890\r\n(-1\r\n",
                [.bigNumber("123456789012345678901234567890"), .bigNumber("-1")]),
            ReplyFixture(
                "=8\r\ntxt:text\r\n=4\r\nmkd:\r\n",
                [
                    .verbatim(format: "txt", text: Array("text".utf8)), .verbatim(format: "mkd", text: []),
                ]),
        ]
    }

    static var aggregates: [ReplyFixture] {
        [
            ReplyFixture("*0\r\n%0\r\n~0\r\n>0\r\n", [.array([]), .map([]), .set([]), .push([])]),
            ReplyFixture("*3\r\n:1\r\n$1\r\na\r\n*-1\r\n", [.array([.integer(1), bulk("a"), .null])]),
            ReplyFixture(
                "*2\r\n*1\r\n*0\r\n*2\r\n:1\r\n:2\r\n",
                [.array([.array([.array([])]), .array([.integer(1), .integer(2)])])]),
            ReplyFixture(
                "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n",
                [
                    .map([
                        .init(key: .simpleString("a"), value: .integer(1)),
                        .init(key: .simpleString("b"), value: .array([.null])),
                    ])
                ]),
            ReplyFixture("~2\r\n:1\r\n:2\r\n:3\r\n", [.set([.integer(1), .integer(2)]), .integer(3)]),
            ReplyFixture(
                ">2\r\n+invalidate\r\n_\r\n+OK\r\n",
                [.push([.simpleString("invalidate"), .null]), .simpleString("OK")]),
            ReplyFixture("|1\r\n+ttl\r\n:3\r\n+OK\r\n", [.simpleString("OK")]),
            ReplyFixture("*2\r\n|1\r\n+a\r\n*1\r\n:0\r\n:1\r\n|0\r\n:2\r\n", [.array([.integer(1), .integer(2)])]),
            ReplyFixture("|1\r\n|1\r\n+x\r\n+y\r\n+a\r\n+b\r\n+OK\r\n", [.simpleString("OK")]),
            ReplyFixture("*2\r\n:1\r\n$5\r\nhal", []),
        ]
    }

    static var malformed: [ReplyFixture] {
        [
            ReplyFixture("+OK\r\nhello\r\n", [.simpleString("OK")], error: "unknown reply type 'h'"),
            ReplyFixture("\r\n", [], error: "malformed reply"),
            ReplyFixture("+a\nb\r\n", [], error: "line of reply does not end in CRLF"),
            ReplyFixture("+a\rb\r\n", [], error: "line of reply does not end in CRLF"),
            ReplyFixture("$3\r\nabcd\r\n", [], error: "expected CRLF after bulk"),
            ReplyFixture("$-2\r\n", [], error: "invalid bulk length"),
            ReplyFixture("!-1\r\n", [], error: "invalid bulk length"),
            ReplyFixture("$536870913\r\n", [], error: "invalid bulk length"),
            ReplyFixture("$9223372036854775807\r\n", [], error: "invalid bulk length"),
            ReplyFixture("$9223372036854775808\r\n", [], error: "invalid number in reply"),
            ReplyFixture("$?\r\n", [], error: "invalid number in reply"),
            ReplyFixture("*?\r\n", [], error: "invalid number in reply"),
            ReplyFixture("*-2\r\n", [], error: "invalid multibulk length"),
            ReplyFixture("%-1\r\n", [], error: "invalid multibulk length"),
            ReplyFixture("*9223372036854775807\r\n", [], error: "too many elements in reply"),
            ReplyFixture("%9223372036854775807\r\n", [], error: "too many elements in reply"),
            ReplyFixture(":\r\n", [], error: "invalid number in reply"),
            ReplyFixture(":1a\r\n", [], error: "invalid number in reply"),
            ReplyFixture(",0x10\r\n", [], error: "invalid number in reply"),
            ReplyFixture(",infinity\r\n", [], error: "invalid number in reply"),
            ReplyFixture(",\r\n", [], error: "invalid number in reply"),
            ReplyFixture("(\r\n", [], error: "invalid number in reply"),
            ReplyFixture("(-\r\n", [], error: "invalid number in reply"),
            ReplyFixture("(1.0\r\n", [], error: "invalid number in reply"),
            ReplyFixture("#x\r\n", [], error: "malformed reply"),
            ReplyFixture("#\r\n", [], error: "malformed reply"),
            ReplyFixture("_x\r\n", [], error: "malformed reply"),
            ReplyFixture("=3\r\ntxt\r\n", [], error: "malformed reply"),
            ReplyFixture("=5\r\ntxt-a\r\n", [], error: "malformed reply"),
        ]
    }

    static var limits: [ReplyFixture] {
        [
            ReplyFixture("+1234567\r\n", [.simpleString("1234567")], limits: RESPLimits(headerBytesMax: 8)),
            ReplyFixture("+12345678", [], error: "too long line in reply", limits: RESPLimits(headerBytesMax: 8)),
            ReplyFixture("+12345678\r\n", [], error: "too long line in reply", limits: RESPLimits(headerBytesMax: 8)),
            ReplyFixture("*1\r\n*1\r\n:1\r\n", [.array([.array([.integer(1)])])], limits: RESPLimits(depthMax: 2)),
            ReplyFixture("*1\r\n*1\r\n*1\r\n", [], error: "too deeply nested reply", limits: RESPLimits(depthMax: 2)),
            ReplyFixture("|1\r\n|1\r\n|1\r\n", [], error: "too deeply nested reply", limits: RESPLimits(depthMax: 2)),
            ReplyFixture("*3\r\n:1\r\n*0\r\n*2\r\n:1\r\n", [], limits: RESPLimits(elementsMax: 5)),
            ReplyFixture(
                "*3\r\n:1\r\n*0\r\n*3\r\n:1\r\n", [], error: "too many elements in reply",
                limits: RESPLimits(elementsMax: 5)),
            ReplyFixture("%2\r\n", [], error: "too many elements in reply", limits: RESPLimits(elementsMax: 3)),
            ReplyFixture(
                "*1\r\n:1\r\n*1\r\n:1\r\n", [.array([.integer(1)]), .array([.integer(1)])],
                limits: RESPLimits(elementsMax: 1)),
            ReplyFixture(
                "+a\r\n*2\r\n:12345\r\n:1\r\n", [.simpleString("a")], error: "too big reply",
                limits: RESPLimits(requestBytesMax: 14)),
            ReplyFixture("$20\r\n", [], error: "too big reply", limits: RESPLimits(requestBytesMax: 14)),
        ]
    }

    static var all: [ReplyFixture] { scalars + aggregates + malformed + limits }

    @Test(arguments: all) func repliesReceivedAsAWholeAreParsed(_ fixture: ReplyFixture) {
        #expect(parseReplies([fixture.bytes], limits: fixture.limits) == fixture.expected)
    }

    @Test(arguments: all) func repliesReceivedByteByByteAreParsed(_ fixture: ReplyFixture) {
        #expect(parseReplies(fixture.bytes.drops, limits: fixture.limits) == fixture.expected)
    }

    @Test(arguments: all) func repliesReceivedInTwoPartsAreParsed(_ fixture: ReplyFixture) {
        for index in fixture.bytes.indices {
            let outcome = parseReplies(fixture.bytes.split(at: index), limits: fixture.limits)
            #expect(outcome == fixture.expected, "split at \(index)")
        }
    }

    @Test func nanIsParsedFromAReply() {
        for text in [",nan\r\n", ",-nan\r\n"] {
            guard case .double(let value)? = parseReplies([Array(text.utf8)]).replies.first else {
                Issue.record("\(text) is no double")
                continue
            }
            #expect(value.isNaN)
        }
    }
}
