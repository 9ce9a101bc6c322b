import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that small requests for JSON cannot have large effects. The examples of the protocol show the replies.
@Suite struct JSONCommandTests {
    /// The reads of a transaction, and the reads of a long script when they are repeated, take long: others must not wait.
    @Test("a transaction that only reads long JSON holds no locks while it evaluates paths", arguments: [1, 2])
    func longReadsHoldNoLocks(threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let client = try server.connect()
        let text = "{\"n\":1,\"x\":[" + (0..<20_000).map { "\($0)" }.joined(separator: ",") + "]}"
        #expect(try client.text(["SET", "k", text]) == Wire.ok && client.text(["INCR", "n"]) == Wire.int(1))
        let (isDone, last) = (Guarded(false), Guarded(1))
        let writer = WorkThread(name: "writer") {
            guard let client = try? server.connect() else { return }
            while !isDone.value { if (try? client.text(["INCR", "n"])) != nil { last.with { $0 += 1 } } }
        }
        #expect(try client.text(["MULTI"]) == Wire.ok)
        let count = 60
        for command in [["GET", "n"]] + (0..<count).map({ _ in ["JSON.GET", "k", "$.n"] }) {
            #expect(try client.text(command) == "+QUEUED\r\n")
        }
        try client.send(["EXEC"])
        let reply = String(decoding: try client.receive(), as: UTF8.self)
        let during = last.value
        isDone.value = true
        writer.join()
        let lines = reply.split(separator: "\r\n")
        #expect(lines.count == 3 + 2 * count && lines.suffix(2) == ["$3", "[1]"])
        let read = try #require(lines.dropFirst(2).first.flatMap { Int($0) })
        #expect(during > read + 20, "\(read) \(during)")
    }

    @Test func longReadsOfTransactionsAndScriptsAreCountedOnce() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        let text = "{\"n\":1,\"x\":\"" + String(repeating: "x", count: 100_000) + "\"}"
        #expect(try client.text(["SET", "k", text]) == Wire.ok)
        func counts() throws -> [String] {
            let info = try client.text(["INFO", "stats"])
            let found = try #require(info.firstMatch(of: /keyspace_hits:([0-9]+)\r\nkeyspace_misses:([0-9]+)/))
            return [String(found.1), String(found.2)]
        }
        #expect(try client.text(["CONFIG", "RESETSTAT"]) == Wire.ok && client.text(["MULTI"]) == Wire.ok)
        for key in ["k", "no", "k"] { _ = try client.text(["JSON.GET", key, "$.n"]) }
        #expect(try client.text(["EXEC"]) == Wire.array(Wire.bulk("[1]"), Wire.null, Wire.bulk("[1]")))
        #expect(try counts() == ["2", "1"])
        // Runs long, so its reads are repeated.
        let script =
            "local x = 0 for i = 1, 3000000 do x = x + i end "
            + "redis.call('JSON.GET','k','$.n') redis.call('EXISTS','no') return redis.call('JSON.GET','k','$.n')"
        #expect(try client.text(["CONFIG", "RESETSTAT"]) == Wire.ok)
        #expect(try client.text(["EVAL", script, "0"]) == Wire.bulk("[1]"))
        #expect(try counts() == ["2", "1"])
        // With a write, the locks are needed.
        #expect(try client.text(["MULTI"]) == Wire.ok)
        for words in [["JSON.GET", "k", "$.n"], ["SET", "no", "2"], ["JSON.GET", "k", "$.n"]] {
            _ = try client.text(words)
        }
        #expect(try client.text(["EXEC"]) == Wire.array(Wire.bulk("[1]"), Wire.ok, Wire.bulk("[1]")))
        #expect(try client.text(["GET", "no"]) == Wire.bulk("2"))
    }

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
