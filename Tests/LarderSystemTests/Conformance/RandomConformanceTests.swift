import LarderTestSupport
import Testing

/// Random commands, sent to redis-server and to larderd: the same replies, the seed printed.
@Suite struct RandomConformanceTests {
    private func start() throws -> (redis: RedisProcess, daemon: DaemonProcess, pair: ConformancePair) {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--durability", "os"])
        return (redis, daemon, ConformancePair(redis: try redis.connect(), larder: try daemon.connect()))
    }

    /// Without DBSIZE, which the script compares: with random deadlines it counts expired entries that are not yet
    /// removed, and the two servers remove them at different times. Redis also keeps, for a while, an entry that SET
    /// gave a past deadline.
    @Test func commands() throws {
        var generator = RandomCommands(seed: testSeed())
        let servers = try start()
        for _ in 0..<60 {
            let steps = (0..<100).map { _ in generator.next() }
            try servers.pair.send(steps.flatMap { encodeRequest($0.words) })
            for step in steps { servers.pair.expectSame(try servers.pair.replies(), step) }
        }
    }

    /// Commands on bits and parts of values, most of them well-formed.
    @Test func bits() throws {
        var generator = RandomBitCommands(seed: testSeed())
        let servers = try start()
        for _ in 0..<60 {
            let steps = (0..<100).map { _ in generator.next() }
            try servers.pair.send(steps.flatMap { encodeRequest($0.words) })
            for step in steps { servers.pair.expectSame(try servers.pair.replies(), step) }
        }
    }

    /// Values of all kinds as DUMP gives them, compressed or not, and back through RESTORE of the other server.
    @Test func dumps() throws {
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

    /// Bytes that repeat themselves more or less: literals, near and far references, long and short ones.
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

    /// Patterns of all kinds against keys of all kinds.
    @Test func patterns() throws {
        var generator = SeededGenerator(seed: testSeed())
        let servers = try start()
        let pair = servers.pair
        let bytes = Array("aab]-^[\\*?".utf8) + [0x00, 0xFF]
        // Except for the empty key: see the differences.
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
