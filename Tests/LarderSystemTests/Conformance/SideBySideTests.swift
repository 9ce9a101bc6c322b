import LarderServer
import LarderTestSupport
import Testing

/// Like ``ConformanceTests``, but with several connections: `2:` before a line selects the second connection, and so
/// on.
@Suite struct SideBySideTests {
    /// A connection to each of the servers.
    private struct Pair {
        let redis: SocketClient
        let larder: SocketClient
    }

    private func run(_ script: String, _ redis: RedisProcess, _ daemon: DaemonProcess) throws {
        var pairs: [Character: Pair] = [:]
        for text in script.split(separator: "\n") where !text.hasPrefix("#") {
            let hasNumber = text.dropFirst().first == ":"
            let number = hasNumber ? text[text.startIndex] : "1"
            if pairs[number] == nil { pairs[number] = Pair(redis: try redis.connect(), larder: try daemon.connect()) }
            guard let pair = pairs[number] else { continue }
            let step = ConformanceStep(String(hasNumber ? text.dropFirst(2) : text))
            let request = encodeRequest(step.words)
            try pair.redis.send(request)
            try pair.larder.send(request)
            let replies = (redis: try pair.redis.receive(), larder: try pair.larder.receive())
            #expect(replies.larder == replies.redis, "\(text): \(String(decoding: replies.larder, as: UTF8.self))")
        }
    }

    @Test("WATCH aborts the same transactions as in Redis", arguments: [1, 2]) func watching(_ threads: Int) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--threads", "\(threads)"])
        var script = ""
        for change in [
            "GET a", "SET a 1", "SET a 2", "DEL a", "DEL a", "DEL b", "MSET a 1 b 2", "SET c 1", "EXPIRE a 100",
            "EXPIRE a 0", "PERSIST a", "SET a 1", "PERSIST a", "FLUSHDB", "FLUSHDB", "SET a 1", "FLUSHALL",
            "SET a 1 NX", "SET a 1 NX", "SET nothing 1 XX", "GETDEL a", "GETDEL a", "SET a 1", "UNLINK a",
        ] {
            script += """
                WATCH a b
                2:\(change)
                MULTI
                SET d 1
                GET a
                EXEC
                2:GET d

                """
        }
        script += """
            WATCH a
            2:SET a 1
            2:DEL a
            MULTI
            EXEC
            SELECT 1
            WATCH a
            SELECT 0
            2:SELECT 1
            2:SET a 1
            MULTI
            EXEC
            WATCH a
            2:SET a 2
            MULTI
            EXEC
            MULTI
            SET a 1
            2:SET a 5
            GET a
            EXEC
            2:SELECT 0
            2:GET a
            """
        try run(script, redis, daemon)
    }
}
