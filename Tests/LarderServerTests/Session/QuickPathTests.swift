import LarderCommandCatalog
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that commands that change one entry in place have the same effect on the fast path as in their handlers.
@Suite struct QuickPathTests {
    private static let keys = ["number", "text", "brief", "tagged", "huge", "absent"]

    private static let commands: [[String]] =
        ["INCR", "DECR", "DEL", "UNLINK", "TTL", "PTTL", "EXISTS", "GET"].map { [$0] }
        + ["INCRBY", "DECRBY", "EXPIRE", "PEXPIRE"].flatMap { name in
            [
                "5", "-3", "0", "9223372036854775807", "-9223372036854775808", "1.5", "", "x", " 7", "+7",
                "9223372036854775808",
            ].map { [name, $0] }
        }
        + [
            ["EXPIRE", "10", "NX"], ["EXPIRE", "10", "XX"], ["EXPIRE", "10", "GT"], ["INCR", "1"], ["DEL", "number"],
        ]
        + [
            [], ["NX"], ["XX"], ["nx", "EX", "100"], ["PX", "100000", "NX"], ["EX", "100", "XX"], ["NX", "XX"],
            ["EX", "0"], ["EX", "-1"], ["EX", "x"], ["EX"], ["EX", "10", "PX", "10"], ["KEEPTTL"], ["NX", "GET"],
            ["GET"],
            ["NX", "NX"], ["PX", "9223372036854775807", "NX"], ["EX", "9223372036854775", "NX"],
        ].map { ["SET", "value"] + $0 }

    private func prepared() throws -> (SocketlessServer, TestClient) {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call(["MSET", "number", "41", "text", "abc", "huge", "9223372036854775807"])
        _ = call(["SET", "brief", "7", "EX", "100"])
        _ = call(["SET", "tagged", "1", "TAGS", "1", "a"])
        return (server, call)
    }

    /// Returns the numbers of calls, rejected calls and failed calls of each command, without the times.
    private func counts(_ statistics: String) -> [String] {
        statistics.split(separator: "\r\n").filter { $0.hasPrefix("cmdstat") }.map { line in
            let fields = line.split(separator: ",")
            return ([fields[0]] + fields.filter { $0.hasPrefix("rejected") || $0.hasPrefix("failed") })
                .joined(separator: ",")
        }
    }

    /// The fast path is used even for new keys: they do not require another thread.
    @Test func writesOfNewKeysTakeTheFastPath() throws {
        let (server, call) = try prepared()
        defer { withExtendedLifetime(server) {} }
        for number in 0..<50 {
            #expect(call(["INCR", "n\(number)"]) == Wire.int(1))
            #expect(call(["SET", "s\(number)", "1", "NX", "EX", "10"]) == "+OK\r\n")
            #expect(call(["DEL", "d\(number)"]) == Wire.int(0))
            #expect(call(["GET", "g\(number)"]) == Wire.null)
            #expect(call(["EXPIRE", "e\(number)", "10"]) == Wire.int(0))
        }
        #expect(call.colds == 0)
    }

    /// Compares the replies, the resulting data, and the counts of commands and errors.
    @Test func theFastPathHasTheSameResultsAsTheHandlers() throws {
        for command in Self.commands {
            for key in Self.keys {
                var results: [[String]] = []
                for isFast in [true, false] {
                    let (server, call) = try prepared()
                    defer { withExtendedLifetime(server) {} }
                    call.session.prechecks.areUsed = isFast
                    let reply = call([command[0], key] + command.dropFirst())
                    var left = Self.keys.map { call(["GET", $0]) + call(["PTTL", $0]) }
                    left.append(reply)
                    left += counts(call("INFO commandstats")) + [call("INFO errorstats")]
                    results.append(left)
                }
                #expect(results[0] == results[1], "\(command) \(key)")
            }
        }
    }
}
