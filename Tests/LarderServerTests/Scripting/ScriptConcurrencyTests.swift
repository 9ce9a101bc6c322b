import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of scripts that run concurrently with other clients: the isolation of long scripts, and the clients that must
/// wait for them.
@Suite(.timeLimit(.minutes(10))) struct ScriptConcurrencyTests {
    private static let busy = "local x = 0 for i = 1, 200000 do x = x + i end "

    /// Runs long scripts and simple increments of one counter. No increment is lost, and no client sees the
    /// intermediate state of a script.
    @Test(arguments: [1, 2]) func longScriptsAreIsolated(threads: Int) async throws {
        let server = try InProcessServer(threads: threads, limits: Self.patient)
        defer { server.stop() }
        // Reads a number, works for a while, and writes the number plus one to two keys.
        let script =
            "local v = tonumber(redis.call('get','a') or '0') \(Self.busy)"
            + " redis.call('set','a',v + 1) redis.call('set','b',v + 1) return v + 1"
        let errors = Recorder<String>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let client = try server.connect()
                    for _ in 0..<10 {
                        let reply = try client.text(["EVAL", script, "0"])
                        if !reply.hasPrefix(":") { errors.add(reply) }
                    }
                }
            }
            group.addTask {
                let client = try server.connect()
                for _ in 0..<200 {
                    let reply = try client.text(["MGET", "a", "b"])
                    let values = reply.split(separator: "\r\n").filter { !$0.hasPrefix("$") && !$0.hasPrefix("*") }
                    if values.count == 2, values[0] != values[1] { errors.add("half: \(reply)") }
                }
            }
            try await group.waitForAll()
        }
        #expect(errors.all == [])
        #expect(try server.connect().call("MGET a b") == Wire.bulks("40", "40"))
    }

    /// Limits for scripts that run concurrently with all other tests, and so take longer than usual.
    private static var patient: Limits {
        var limits = Limits()
        limits.scriptMilliseconds = 600_000
        return limits
    }

    /// A script completes even if other clients keep changing its key.
    @Test func aScriptCompletesAlthoughItsKeyKeepsChanging() async throws {
        let server = try InProcessServer(limits: Self.patient)
        defer { server.stop() }
        let isDone = Guarded(false)
        _ = try server.connect().call("INCR hot")
        let script = "local v = redis.call('get','hot') \(Self.busy)\(Self.busy) redis.call('set','copy',v) return 1"
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                let client = try server.connect()
                while !isDone.value { _ = try client.call("INCR hot") }
            }
            group.addTask {
                let client = try server.connect()
                for _ in 0..<3 {
                    let reply = try client.text(["EVAL", script, "0"])
                    #expect(reply == Wire.int(1), "\(reply)")
                }
                isDone.value = true
            }
            try await group.waitForAll()
        }
    }

    /// While scripts run up to their time limit, other clients are served, on the same loop and with the same keys.
    /// SCRIPT KILL stops the scripts, and none of their changes is applied.
    @Test func otherClientsAreServedDuringLongScripts() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 600_000
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let (busy, other) = (try server.connect(), try server.connect())
        try busy.send(encodeRequest(["EVAL", "redis.call('set','a','never') while true do end", "0"]))
        while !(try other.call("INFO larder").contains("scripts_running:1\r\n")) { nap() }
        #expect(try other.call("SET a 1") == Wire.ok)
        #expect(try other.call("INCR a") == Wire.int(2))
        #expect(try other.text(["EVAL", "return redis.call('incr',KEYS[1])", "1", "a"]) == Wire.int(3))
        #expect(try other.call("SCRIPT KILL") == Wire.ok)
        #expect(
            String(decoding: try busy.receive(), as: UTF8.self)
                .hasPrefix("-ERR Script killed by user with SCRIPT KILL..."))
        #expect(try other.call("GET a") == Wire.bulk("3"))
        #expect(try other.call("SCRIPT KILL") == Wire.error("NOTBUSY No scripts in execution right now."))
        #expect(try busy.call("PING") == "+PONG\r\n")
    }

    /// If a client disconnects, its script is stopped. Otherwise, this test would wait for the script's limit of ten
    /// minutes.
    @Test func theScriptOfADisconnectedClientIsStopped() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 600_000
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let other = try server.connect()
        do {
            let busy = try server.connect()
            try busy.send(encodeRequest(["EVAL", "while true do end", "0"]))
            while !(try other.call("INFO larder").contains("scripts_running:1\r\n")) { nap() }
            busy.close()
        }
        while !(try other.call("INFO larder").contains("scripts_running:0\r\n")) { nap() }
        #expect(try other.call("SET a 1") == Wire.ok)
    }

    /// The shutdown does not wait for running scripts. Otherwise, `stop` would block for the script's limit of ten
    /// minutes.
    @Test func theShutdownStopsRunningScripts() throws {
        var limits = Limits()
        limits.scriptMilliseconds = 600_000
        let server = try InProcessServer(limits: limits)
        let (busy, other) = (try server.connect(), try server.connect())
        try busy.send(encodeRequest(["EVAL", "while true do end", "0"]))
        while !(try other.call("INFO larder").contains("scripts_running:1\r\n")) { nap() }
        server.stop()
    }
}

extension SocketClient {
    func text(_ words: [String]) throws -> String { String(decoding: try call(words), as: UTF8.self) }
}
