import LarderTestSupport
import Testing

/// Sends random commands of all groups, and transactions, to redis-server and larderd. Both must send the same replies,
/// and the same events and invalidations to other clients. The seed is printed.
@Suite struct RandomSessionTests {
    private func start() throws -> (redis: RedisProcess, daemon: DaemonProcess) {
        (try RedisProcess(), try DaemonProcess(["--policy", "never", "--durability", "os"]))
    }

    @Test("random transactions get the same replies as from Redis", arguments: [2, 3])
    func transactions(_ version: Int) throws {
        var generator = RandomRequests(seed: testSeed())
        let (redis, daemon) = try start()
        for _ in 0..<40 {
            let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
            try pair.send(encodeRequest(["HELLO", "\(version)"]) + encodeRequest(["FLUSHALL"]))
            for _ in 0..<2 { _ = try pair.replies() }
            let steps = (0..<80).map { _ in ConformanceStep(generator.next()) }
            try pair.send(steps.flatMap { encodeRequest($0.words) })
            for (index, step) in steps.enumerated() {
                let replies = try pair.replies()
                guard replies.redis != replies.larder else { continue }
                // Show a long reply from the first difference on: everything after it would differ too.
                let same = zip(replies.redis, replies.larder).prefix { $0 == $1 }.count
                let shown = [replies.redis, replies.larder].map {
                    ConformancePair.shown(Array($0.dropFirst(max(0, same - 40))))
                }
                Issue.record(
                    "\(step): redis …\(shown[0]), larder …\(shown[1]), after \(steps[..<index].map(\.line).joined(separator: " ; "))"
                )
                return
            }
        }
    }

    // MARK: Messages to others

    /// The connections to one server: one writes, one receives all events, and one tracks the keys that it reads.
    private struct Side {
        let writer: SocketClient
        let listener: SocketClient
        let reader: SocketClient

        init(_ connect: () throws -> SocketClient) throws {
            writer = try connect()
            listener = try connect()
            reader = try connect()
        }

        /// Sends requests, and returns the replies up to the reply of the last request, including pushes between them.
        func call(_ client: SocketClient, _ lines: [String]) throws -> [[UInt8]] {
            let end = "the end of it"
            try client.send(lines.flatMap { encodeRequest(ConformanceStep($0).words) } + encodeRequest(["ECHO", end]))
            return try take(client, until: Array("$\(end.utf8.count)\r\n\(end)\r\n".utf8))
        }

        private func take(_ client: SocketClient, until end: [UInt8]) throws -> [[UInt8]] {
            var replies: [[UInt8]] = []
            while true {
                let reply = try client.receive()
                if reply.suffix(end.count) == end { return replies }
                replies.append(reply)
            }
        }

        /// Returns the messages about the writes so far, which must be committed.
        func notified() throws -> (events: [[UInt8]], invalidations: [[UInt8]]) {
            try writer.send(["PUBLISH", "end", "all"])
            _ = try writer.receive()
            let events = try take(listener, until: Array("$3\r\nend\r\n$3\r\nall\r\n".utf8))
            return (events, try call(reader, []).filter { $0.first == UInt8(ascii: ">") })
        }
    }

    @Test(
        "random commands send the same events and invalidations as Redis",
        arguments: [
            "CLIENT TRACKING ON", "CLIENT TRACKING ON NOLOOP", "CLIENT TRACKING ON OPTOUT", "CLIENT TRACKING ON BCAST",
            "CLIENT TRACKING ON BCAST PREFIX x: PREFIX a",
        ])
    func events(_ mode: String) throws {
        var generator = RandomRequests(seed: testSeed(), areObserved: true)
        let (redis, daemon) = try start()
        for events in ["KEA", "KEAn", "K$g", "Egx"] {
            let sides = [try Side { try redis.connect() }, try Side { try daemon.connect() }]
            for side in sides {
                _ = try side.call(
                    side.listener,
                    [
                        "HELLO 3", "FLUSHALL", "CONFIG SET notify-keyspace-events \(events)", "PSUBSCRIBE __key*",
                        "SUBSCRIBE end",
                    ])
                _ = try side.call(side.reader, ["HELLO 3", mode])
            }
            for _ in 0..<40 {
                let reads = (0..<3).map { _ in "GET \(generator.key())" }
                // An open transaction ends with the batch.
                let batch = (0..<8).map { _ in generator.next() } + ["EXEC", "UNWATCH"]
                let results = try sides.map { side in
                    _ = try side.call(side.reader, reads)
                    return (replies: try side.call(side.writer, batch), notified: try side.notified())
                }
                let what = "\(events), \(reads.joined(separator: " ; ")), then \(batch.joined(separator: " ; "))"
                try #require(shown(results[0].replies) == shown(results[1].replies), "replies, \(what)")
                try #require(
                    shown(results[0].notified.events) == shown(results[1].notified.events), "events, \(what)")
                // Redis notifies broadcasting clients once per iteration of its loop, larderd with each commit.
                let keys = results.map {
                    mode.contains("BCAST") ? notified($0.notified.invalidations) : shown($0.notified.invalidations)
                }
                try #require(keys[0] == keys[1], "invalidations, \(what)")
            }
        }
    }

    private func shown(_ messages: [[UInt8]]) -> [String] { messages.map { String(decoding: $0, as: UTF8.self) } }

    /// The distinct keys of invalidations, in their order.
    private func notified(_ messages: [[UInt8]]) -> [String] {
        let words = shown(messages).flatMap { message in
            message.split(separator: "\r\n", omittingEmptySubsequences: false).dropFirst(4).filter {
                !$0.hasPrefix("$")
            }
        }
        return Set(words.map(String.init)).sorted()
    }
}
