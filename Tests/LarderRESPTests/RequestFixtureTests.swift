// Every request of the list results in the same commands and the same error, however it is split.
//
// Where Redis answers, the results were compared with Redis 7.0.15. Comments mark the cases in which this codec is
// deliberately stricter.

import Testing

@testable import LarderRESP

private func times(_ count: Int, _ text: String) -> String { String(repeating: text, count: count) }

@Suite struct RequestFixtureTests {
    static let smallLines = RESPLimits(inlineBytesMax: 32, headerBytesMax: 32)

    static let inline: [RequestFixture] = [
        RequestFixture("PING\r\n", [["PING"]]),
        RequestFixture("PING\n", [["PING"]]),
        RequestFixture("\r\nPING\r\n", [["PING"]]),
        RequestFixture("\n\n \t \r\nPING\r\n\r\n", [["PING"]]),
        RequestFixture(" \t PING \t\r\n", [["PING"]]),
        RequestFixture("SET k v\r\nGET k\r\n", [["SET", "k", "v"], ["GET", "k"]]),
        RequestFixture("PING\rfoo\r\n", [["PING", "foo"]]),
        RequestFixture("PING a\u{0B}b\r\n", [["PING", "a\u{0B}b"]]),
        RequestFixture("PING \u{0B}\u{0C}a\r\n", [["PING", "a"]]),
        RequestFixture("PING \"a\"\u{0B}b\r\n", [["PING", "a", "b"]]),
        RequestFixture("SET schlüssel 一本书\r\n", [["SET", "schlüssel", "一本书"]]),
        RequestFixture("no end of line", []),
        RequestFixture("", []),
        // NUL is a byte like any other. Redis does not see a line end after a NUL, and would wait.
        RequestFixture("\0\r\nPING a\0b \"\0\"\r\n", [["\0"], ["PING", "a\0b", "\0"]]),
        RequestFixture(bytes: [0xFF, 0xFE, 0x20, 0x80, 0x0A], [[[0xFF, 0xFE], [0x80]]]),
    ]

    static let quotes: [RequestFixture] = [
        RequestFixture(#""PING""# + "\r\n", [["PING"]]),
        RequestFixture(#"PING "" ''"# + "\r\n", [["PING", "", ""]]),
        RequestFixture(#""""# + "\r\n", [[""]]),
        RequestFixture(#"PING a"b c""# + "\r\n", [["PING", "ab c"]]),
        RequestFixture(#"PING "\x41\n\r\t\b\a\\\"\q""# + "\r\n", [["PING", "A\n\r\t\u{8}\u{7}\\\"q"]]),
        RequestFixture(#"PING "\x4" "\x4g" "\xg4" "\x""# + "\r\n", [["PING", "x4", "x4g", "xg4", "x"]]),
        RequestFixture(bytes: Array("PING \"\\xfF\\x00\"\n".utf8), [[Array("PING".utf8), [0xFF, 0]]]),
        RequestFixture(#"PING 'a\'b\n"c'"# + "\r\n", [["PING", #"a'b\n"c"#]]),
        RequestFixture(#"PING '\\ '"# + "\r\n", [["PING", #"\\ "#]]),
        RequestFixture(#"PING '\\'"# + "\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture(#"PING \x41 a\"# + "\r\n", [["PING", #"\x41"#, #"a\"#]]),
        RequestFixture("PING \"a\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING 'a\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING \"a\"b\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING 'a'b\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING 'a''b'\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING \"a\\\"\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING \"a\\\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING 'a\\'\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING \"\0\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("set \"\"\"key\"\"\" value\r\n", [], error: "unbalanced quotes in request"),
        RequestFixture("PING\r\nPING \"\r\nPING\r\n", [["PING"]], error: "unbalanced quotes in request"),
    ]

    static let arrays: [RequestFixture] = [
        RequestFixture("*1\r\n$4\r\nPING\r\n", [["PING"]]),
        RequestFixture("*2\r\n$4\r\nPING\r\n$0\r\n\r\n", [["PING", ""]]),
        RequestFixture("*1\r\n$0\r\n\r\n", [[""]]),
        RequestFixture(
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$11\r\na\r\nb\0 \"'$*\r\r\n", [["SET", "k", "a\r\nb\0 \"'$*\r"]]),
        RequestFixture("*-10\r\n*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", [["PING"]]),
        RequestFixture("*-9223372036854775808\r\nPING\r\n", [["PING"]]),
        RequestFixture("*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", [["PING"], ["PING"], ["QUIT"]]),
        RequestFixture("*2\r\n$3\r\nGET\r\n$1\r\n", []),
        RequestFixture("*2\r\n$3\r\nGET\r\n$100\r\nhalf a value", []),
    ]

    static let badCounts: [RequestFixture] = [
        "3000000000", "1048577", "9223372036854775808", "99999999999999999999999999", "-9223372036854775809",
        "", "-", "+1", "01", "00", "-0", "-01", " 1", "1 ", "1a", "blabla", "0x10", "1.0", "\0", "1\0", "١",
    ].map { RequestFixture("*\($0)\r\nPING\r\n", [], error: "invalid multibulk length") }

    static let badLengths: [RequestFixture] = [
        "-10", "-1", "2000000000", "536870913", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "blabla", "", "+4", "04", "4 ", "4\0",
    ].map {
        RequestFixture(
            "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$\($0)\r\n", [["PING"]], error: "invalid bulk length")
    }

    static let otherErrors: [RequestFixture] = [
        RequestFixture(
            "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", [], error: "expected '$', got 'f'"),
        RequestFixture("*1\r\nPING\r\n", [], error: "expected '$', got 'P'"),
        RequestFixture("*1\r\n\r\n", [], error: "expected '$', got ' '"),
        RequestFixture("*1\r\n*1\r\n", [], error: "expected '$', got '*'"),
        // Redis would wait forever for the end of this line.
        RequestFixture("*1\r\n\0\r\n", [], error: "expected '$', got '\\x00'"),
        RequestFixture(bytes: Array("*1\r\n".utf8) + [0xFF], [], error: "expected '$', got '\\xff'"),
        // Stricter than Redis, which checks neither the byte after a CR nor the two bytes after a bulk string.
        RequestFixture("*1\rx$4\r\nPING\r\n", [], error: "invalid multibulk length"),
        RequestFixture("*1\nPING\r\n", [], error: "invalid multibulk length"),
        RequestFixture("*1\r\n$4\rxPING\r\n", [], error: "invalid bulk length"),
        RequestFixture("*1\r\n$4\nPING\r\n", [], error: "invalid bulk length"),
        RequestFixture("*1\r\n$4\r\nPINGxxPING\r\n", [], error: "expected CRLF after bulk"),
        RequestFixture("*1\r\n$4\r\nPING\rxPING\r\n", [], error: "expected CRLF after bulk"),
        RequestFixture("*1\r\n$3\r\nPING\r\nPING\r\n", [], error: "expected CRLF after bulk"),
    ]

    static let limits: [RequestFixture] = [
        RequestFixture(
            times(32, "A") + "\nPING\n", [[times(32, "A")], ["PING"]],
            limits: smallLines),
        RequestFixture(
            times(33, "A") + "\nPING\n", [], error: "too big inline request", limits: smallLines),
        RequestFixture(times(33, "A"), [], error: "too big inline request", limits: smallLines),
        RequestFixture(times(33, " "), [], error: "too big inline request", limits: smallLines),
        RequestFixture(
            "\0" + times(5, "payload"), [], error: "too big inline request", limits: smallLines),
        RequestFixture(
            "*" + times(31, "1") + "\r\n", [], error: "invalid multibulk length", limits: smallLines),
        RequestFixture(
            "*" + times(32, "1"), [], error: "too big mbulk count string", limits: smallLines),
        RequestFixture(
            "*" + times(32, "1") + "\r\n", [], error: "too big mbulk count string",
            limits: smallLines),
        RequestFixture(
            "*\0" + times(5, "payload"), [], error: "too big mbulk count string", limits: smallLines),
        RequestFixture(
            "*1\r\n$" + times(31, "1") + "\r\n", [], error: "invalid bulk length", limits: smallLines
        ),
        RequestFixture(
            "*1\r\n$" + times(32, "1"), [], error: "too big bulk count string", limits: smallLines),
        RequestFixture("*4\r\n$1\r\na\r\n", [], error: "invalid multibulk length", limits: RESPLimits(argumentsMax: 3)),
        RequestFixture(
            "a b c\r\na b c d\r\n", [["a", "b", "c"]], error: "invalid multibulk length",
            limits: RESPLimits(argumentsMax: 3)),
        RequestFixture(
            "*1\r\n$3\r\nabc\r\n*1\r\n$4\r\n", [["abc"]], error: "invalid bulk length",
            limits: RESPLimits(bulkBytesMax: 3)),
        RequestFixture(
            "*2\r\n$4\r\nPING\r\n$6\r\nabcdef\r\n", [["PING", "abcdef"]], limits: RESPLimits(requestBytesMax: 26)),
        RequestFixture(
            "*2\r\n$4\r\nPING\r\n$7\r\nabcdefg\r\n", [], error: "too big request",
            limits: RESPLimits(requestBytesMax: 26)),
    ]

    static let all = inline + quotes + arrays + badCounts + badLengths + otherErrors + limits

    @Test(arguments: all) func requestsReceivedAsAWholeAreParsed(_ fixture: RequestFixture) {
        #expect(parse([fixture.bytes], limits: fixture.limits) == fixture.expected)
    }

    @Test(arguments: all) func requestsReceivedByteByByteAreParsed(_ fixture: RequestFixture) {
        #expect(parse(fixture.bytes.drops, limits: fixture.limits) == fixture.expected)
    }

    @Test(arguments: all) func requestsReceivedInTwoPartsAreParsed(_ fixture: RequestFixture) {
        for index in fixture.bytes.indices {
            let outcome = parse(fixture.bytes.split(at: index), limits: fixture.limits)
            #expect(outcome == fixture.expected, "split at \(index)")
        }
    }

    /// The bytes after an empty line, a skipped array or a command must not be parsed differently because of what came
    /// before.
    @Test(arguments: all) func requestsReceivedAfterOtherCommandsAreParsed(_ fixture: RequestFixture) {
        let before = Array("\r\n*0\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".utf8)
        let commands = [[Array("PING".utf8)], [Array("GET".utf8), Array("k".utf8)]] + fixture.commands
        let bytes = before + fixture.bytes
        let expected = RequestOutcome(commands: commands, error: fixture.error)
        #expect(parse([bytes], limits: fixture.limits) == expected)
        #expect(parse(bytes.drops, limits: fixture.limits) == expected)
    }

    @Test func linesLongerThanTheDefaultLimitsAreErrors() {
        let longest = [UInt8](repeating: UInt8(ascii: "A"), count: 65_536)
        #expect(parse([longest + [10]]) == RequestOutcome(commands: [[longest]]))
        #expect(parse([longest + [65]]).error == ProtocolError("too big inline request"))
        #expect(parse([longest + [65, 10]]).error == ProtocolError("too big inline request"))
        #expect(parse(longest.split(at: 16_384) + [[65]]).error == ProtocolError("too big inline request"))
        let digits = [UInt8](repeating: UInt8(ascii: "1"), count: 65_536)
        #expect(parse([Array("*".utf8) + digits]).error == ProtocolError("too big mbulk count string"))
        #expect(parse([Array("*1\r\n$".utf8) + digits]).error == ProtocolError("too big bulk count string"))
        #expect(parse([Array("*1\r\n$".utf8) + digits.dropLast()]) == RequestOutcome())
    }
}
