import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of INCREX. Redis 7.0 does not have it; the expected results follow the documentation of Redis 8.8.
@Suite struct BoundedNumberTests {
    private static func integers(_ value: Int64, _ added: Int64) -> String { "*2\r\n:\(value)\r\n:\(added)\r\n" }
    private static func texts(_ value: String, _ added: String) -> String {
        "*2\r\n" + Wire.bulk(value) + Wire.bulk(added)
    }

    @Test(
        arguments: [
            ("-", "", 1, 1), ("-", "BYINT 7", 7, 7), ("10", "", 11, 1), ("10", "BYINT -15", -5, -15),
            ("10", "byint 0", 10, 0),
            // Without SATURATE, a sum outside the bounds changes nothing.
            ("99", "BYINT 5 UBOUND 100", 99, 0), ("95", "BYINT 5 UBOUND 100", 100, 5), ("3", "BYINT -4 LBOUND 0", 3, 0),
            ("4", "BYINT -4 LBOUND 0", 0, -4), ("50", "UBOUND 30", 50, 0), ("50", "BYINT -30 UBOUND 30", 20, -30),
            ("9223372036854775800", "BYINT 8", 9_223_372_036_854_775_800, 0),
            ("-", "BYINT 5 LBOUND 10", 0, 0), ("-", "BYINT 15 UBOUND 10", 0, 0),
            ("99", "BYINT 5 UBOUND 100 SATURATE", 100, 1), ("3", "SATURATE LBOUND 0 BYINT -4", 0, -3),
            ("50", "UBOUND 30 SATURATE", 30, -20), ("-50", "LBOUND -30 BYINT -5 SATURATE", -30, 20),
            ("9223372036854775800", "BYINT 9 SATURATE", .max, 7),
            ("-9223372036854775800", "BYINT -9 SATURATE", .min, -8),
            ("9223372036854775800", "BYINT 9 UBOUND 5 SATURATE", 5, -9_223_372_036_854_775_795),
            ("-", "BYINT 5 LBOUND 10 SATURATE", 10, 10),
        ] as [(String, String, Int64, Int64)])
    func integersStayWithinBounds(_ before: String, _ options: String, _ value: Int64, _ added: Int64) throws {
        let call = try SocketlessServer().connect()
        if before != "-" { #expect(call("SET k \(before)") == Wire.ok) }
        #expect(call("INCREX k \(options)") == Self.integers(value, added))
        #expect(call("GET k") == (before == "-" && added == 0 ? Wire.null : Wire.bulk("\(value)")))
    }

    @Test(arguments: [
        ("1.5", "BYFLOAT 0.25", "1.75", "0.25"), ("10", "BYFLOAT -2.5", "7.5", "-2.5"), ("-", "BYFLOAT 3", "3", "3"),
        ("10.0", "BYFLOAT 10 UBOUND 15.5", "10", "0"), ("10", "BYFLOAT 100 UBOUND 42.5 SATURATE", "42.5", "32.5"),
        ("0", "BYFLOAT -100 LBOUND -5.5 SATURATE", "-5.5", "-5.5"), ("50.5", "BYFLOAT 5.5 UBOUND 30", "50.5", "0"),
        ("50.5", "BYFLOAT 5.5 UBOUND 30 SATURATE", "30", "-20.5"), ("5", "BYFLOAT 5 UBOUND inf", "10", "5"),
    ])
    func decimalsStayWithinBounds(_ before: String, _ options: String, _ value: String, _ added: String) throws {
        let call = try SocketlessServer().connect()
        if before != "-" { #expect(call("SET k \(before)") == Wire.ok) }
        #expect(call("INCREX k \(options)") == Self.texts(value, added))
        #expect(call("GET k") == Wire.bulk(added == "0" ? before : value))
        #expect(call("HELLO 3").hasPrefix("%"))
        #expect(call("INCREX k BYFLOAT 0").hasPrefix("*2\r\n,\(value)\r\n,0\r\n"))
    }

    @Test(arguments: [
        ("INCREX", "ERR wrong number of arguments for 'increx' command"), ("INCREX k FOO", "ERR syntax error"),
        ("INCREX k BYINT", "ERR syntax error"), ("INCREX k BYINT 1 BYFLOAT 1", "ERR syntax error"),
        ("INCREX k EX 1 PX 1", "ERR syntax error"), ("INCREX k EX 1 EX 1", "ERR syntax error"),
        ("INCREX k EX 1 PERSIST", "ERR syntax error"), ("INCREX k PERSIST ENX", "ERR syntax error"),
        ("INCREX k LBOUND 1 LBOUND 1", "ERR syntax error"), ("INCREX k SATURATE SATURATE", "ERR syntax error"),
        ("INCREX k ENX", "ERR ENX flag requires an expiration: EX, PX, EXAT or PXAT"),
        ("INCREX k BYINT 1.5", "ERR Increment is not an integer or out of range"),
        ("INCREX k BYFLOAT a", "ERR Increment is not a valid float"),
        ("INCREX k BYFLOAT -inf", "ERR BYFLOAT increment cannot be Infinity"),
        ("INCREX k UBOUND 1.5", "ERR UBOUND is not an integer or out of range"),
        ("INCREX k BYFLOAT 1 LBOUND a", "ERR LBOUND is not a valid float"),
        ("INCREX k LBOUND 10 UBOUND 5", "ERR LBOUND can't be greater than UBOUND"),
        ("INCREX k EX 0", "ERR invalid expire time in 'increx' command"),
        ("INCREX k PX x", "ERR value is not an integer or out of range"),
        ("INCREX text", "ERR value is not an integer or out of range"),
        ("INCREX text BYFLOAT 1", "ERR value is not a valid float"),
        ("INCREX endless BYFLOAT 1", "ERR value cannot be Infinity"),
        ("INCREX big SATURATE UBOUND -9223372036854775808", "ERR applied increment would overflow"),
    ])
    func invalidCallsAreExplained(_ line: String, _ text: String) throws {
        let call = try SocketlessServer().connect()
        #expect(call("MSET text hello endless inf big 9223372036854775800") == Wire.ok)
        #expect(call(line) == Wire.error(text))
        #expect(
            call("MGET k text endless big") == "*4\r\n$-1\r\n$5\r\nhello\r\n$3\r\ninf\r\n$19\r\n9223372036854775800\r\n"
        )
    }

    @Test func theDeadlineChangesOnlyAsRequested() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("INCREX k EX 100 ENX") == Self.integers(1, 1))
        #expect(call("TTL k") == Wire.int(100))
        server.time.advance(milliseconds: 10_000)
        #expect(call("INCREX k EX 100 ENX") == Self.integers(2, 1))
        #expect(call("INCREX k") == Self.integers(3, 1))
        #expect(call("INCREX k UBOUND 3 EX 500") == Self.integers(3, 0), "outside the bounds")
        #expect(call("TTL k") == Wire.int(90))
        #expect(call("INCREX k PX 5000") == Self.integers(4, 1))
        #expect(call("PTTL k") == Wire.int(5000))
        #expect(call("INCREX k PERSIST") == Self.integers(5, 1))
        #expect(call("TTL k") == Wire.int(-1))
        #expect(call("INCREX k EX 9 ENX SATURATE UBOUND 5") == Self.integers(5, 0))
        #expect(call("TTL k") == Wire.int(9))
        // A deadline in the past removes the entry, but not if ENX keeps the present deadline.
        #expect(call("INCREX k EXAT 1 ENX") == Self.integers(6, 1))
        #expect(call("GET k") == Wire.bulk("6"))
        #expect(call("INCREX k EXAT 1") == Self.integers(7, 1))
        #expect(call("EXISTS k") == Wire.int(0))
        #expect(call("INCREX k PXAT 1") == Self.integers(1, 1))
        #expect(call("EXISTS k") == Wire.int(0))
    }
}
