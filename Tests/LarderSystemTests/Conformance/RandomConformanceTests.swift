import LarderTestSupport
import Testing

/// Random commands, sent to redis-server and larderd, must return the same replies. The seed is printed.
@Suite struct RandomConformanceTests {
    private func start() throws -> (redis: RedisProcess, daemon: DaemonProcess, pair: ConformancePair) {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--durability", "os"])
        return (redis, daemon, ConformancePair(redis: try redis.connect(), larder: try daemon.connect()))
    }

    /// Omits DBSIZE, which ``ConformanceScript`` compares. It counts expired entries that are not removed yet, and the
    /// servers remove them at different times. Redis also keeps an entry with a past deadline from SET for a while.
    @Test("random commands get the same replies as from Redis") func commands() throws {
        var generator = RandomCommands(seed: testSeed())
        let servers = try start()
        for _ in 0..<60 {
            let steps = (0..<100).map { _ in generator.next() }
            try servers.pair.send(steps.flatMap { encodeRequest($0.words) })
            for step in steps { servers.pair.expectSame(try servers.pair.replies(), step) }
        }
    }

    /// Random commands on bits and parts of values, most of them well-formed.
    @Test("random bit commands get the same replies as from Redis") func bits() throws {
        var generator = RandomBitCommands(seed: testSeed())
        let servers = try start()
        for _ in 0..<60 {
            let steps = (0..<100).map { _ in generator.next() }
            try servers.pair.send(steps.flatMap { encodeRequest($0.words) })
            for step in steps { servers.pair.expectSame(try servers.pair.replies(), step) }
        }
    }

    /// DUMP of both servers returns the same payload for all kinds of values, compressed or not. RESTORE of each server
    /// accepts the other server's payload.
    @Test("DUMP payloads are the same as in Redis, and each server restores the other's") func dumps() throws {
        var generator = SeededGenerator(seed: testSeed())
        let servers = try start()
        let pair = servers.pair
        for _ in 0..<150 {
            let value = randomValue(&generator)
            try pair.send(encodeRequest([Array("SET".utf8), Array("k".utf8), value]))
            _ = try pair.replies()
            let dump = try pair.call(ConformanceStep("DUMP k"))
            #expect(dump.larder == dump.redis, "a value of \(value.count) bytes")
            let payload = RawReply.bulk(dump.redis)
            try pair.send(
                encodeRequest([Array("RESTORE".utf8), Array("r".utf8), [0x30], payload, Array("REPLACE".utf8)]))
            pair.expectSame(try pair.replies(), ConformanceStep("RESTORE r"))
            let restored = try pair.call(ConformanceStep("GET r"))
            #expect(RawReply.bulk(restored.larder) == value)
            #expect(RawReply.bulk(restored.redis) == value)
        }
    }

    /// Returns bytes with more or less repetition: literals, and references that are near or far, long or short.
    private func randomValue(_ generator: inout SeededGenerator) -> [UInt8] {
        let count = Int.random(in: 1...(generator.oneIn(4) ? 30_000 : 400), using: &generator)
        let letters = [1, 2, 4, 16, 256][Int.random(in: 0..<5, using: &generator)]
        var value: [UInt8] = []
        while value.count < count {
            if value.isEmpty || generator.oneIn(2) {
                for _ in 0..<Int.random(in: 1...40, using: &generator) {
                    value.append(UInt8(Int.random(in: 0..<letters, using: &generator)))
                }
            } else {
                let start = Int.random(in: 0..<value.count, using: &generator)
                let end = min(value.count, start + Int.random(in: 1...300, using: &generator))
                value += Array(value[start..<end])
            }
        }
        return Array(value.prefix(count))
    }

    /// Matches random patterns against random keys.
    @Test("patterns match the same keys as in Redis") func patterns() throws {
        var generator = SeededGenerator(seed: testSeed())
        let servers = try start()
        let pair = servers.pair
        let bytes = Array("aab]-^[\\*?".utf8) + [0x00, 0xFF]
        // Do not use the empty key, for which the servers differ: see the list of differences.
        func text(_ longest: Int) -> [UInt8] {
            (0..<Int.random(in: 1...longest, using: &generator)).map { _ in
                bytes[Int.random(in: 0..<bytes.count, using: &generator)]
            }
        }
        for _ in 0..<300 {
            try pair.send(encodeRequest([Array("SET".utf8), text(5), [0x76]]))
            _ = try pair.replies()
        }
        let pieces = [
            "*", "?", "[", "[^", "]", "a-b", "\\", "a", "b", "^", "-", "[ab]", "[^ab]", "[]", "[\\]a-]", "**",
        ]
        for _ in 0..<1500 {
            let count = Int.random(in: 0...5, using: &generator)
            let pattern = (0..<count).map { _ in pieces[Int.random(in: 0..<pieces.count, using: &generator)] }.joined()
            try pair.send(encodeRequest(["KEYS", pattern]))
            let replies = try pair.replies()
            #expect(
                ConformancePair.sorted(replies.larder) == ConformancePair.sorted(replies.redis), "pattern '\(pattern)'")
        }
    }
}
