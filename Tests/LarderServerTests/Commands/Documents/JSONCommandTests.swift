import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that small requests for JSON cannot have large effects. The examples of the protocol show the replies.
@Suite struct JSONCommandTests {
    /// A value in which `$..a` finds 40 values within each other, together forty times as long.
    private static let nested =
        String(repeating: "{\"a\":", count: 40) + "\"" + String(repeating: "x", count: 2000) + "\""
        + String(repeating: "}", count: 40)

    private static let tooLong = "-ERR the values exceed 10000 bytes, the limit for one reply (--max-reply)\r\n"

    @Test(arguments: [
        ["JSON.GET", "k", "$..a"], ["JSON.GET", "k", ".a", ".a.a", ".a.a.a", ".a.a.a.a", ".a.a.a.a.a"],
        ["JSON.GET", "k", "INDENT", String(repeating: "y", count: 64), "NEWLINE", "\n"],
        ["JSON.MGET", "k", "k", "k", "k", "k", "k", "."], ["JSON.MGET", "k", "$..a"],
    ])
    func repliesThatExceedTheLimitAreErrors(command: [String]) throws {
        var limits = Limits()
        limits.replyBytesMax = 10_000
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let client = try server.connect()
        try client.send(["SET", "k", Self.nested])
        #expect(try client.receive() == Array(Wire.ok.utf8))
        try client.send(command)
        #expect(String(decoding: try client.receive(), as: UTF8.self) == Self.tooLong)
    }

    @Test("errors do not repeat long arguments, and name the limit of levels") func errorsAreShort() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        #expect(try client.call(["SET", "k", #"{"a":[1]}"#]) == Array(Wire.ok.utf8))
        let path = "a." + String(repeating: "x", count: 100_000)
        #expect(try client.call(["EDIT", "k", "INCR", path, "1"]).count < 300)
        let names = Array(repeating: "a", count: 513).joined(separator: ".")
        let refusal = String(decoding: try client.call(["EDIT", "k", "SET", names, "1"]), as: UTF8.self)
        #expect(refusal.hasPrefix("-ERR invalid path 'a.a.") && refusal.contains("expected at most 512 names"))
        let deep = String(repeating: "[", count: 512) + String(repeating: "]", count: 512)
        let reply = String(decoding: try client.call(["EDIT", "k", "SET", "$", deep]), as: UTF8.self)
        #expect(reply.hasSuffix("is not JSON of at most 511 levels\r\n"), "\(reply)")
    }

    @Test func pathsAreText() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        #expect(try client.call("SET k {}") == Wire.ok)
        for command in ["JSON.SET k \"$.\\xff\" 1", "EDIT k SET \"\\xff\" 1"] {
            try client.send(Array((command + "\r\n").utf8))
            let reply = String(decoding: try client.receive(), as: UTF8.self)
            #expect(reply.hasPrefix("-ERR invalid path "), "\(command)")
        }
        #expect(try client.call("GET k") == Wire.bulk("{}"))
    }
}
