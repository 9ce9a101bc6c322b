import LarderServer
import TestSupport
import Testing

/// larderd and redis-server side by side: the same commands must get the same bytes.
///
/// Both run with nothing that expires by itself: `--policy never` here, as in Redis.
@Suite struct ConformanceTests {
    private struct Pair {
        let redis: SocketClient
        let larder: SocketClient

        func send(_ bytes: [UInt8]) throws {
            try redis.send(bytes)
            try larder.send(bytes)
        }

        func replies() throws -> (redis: [UInt8], larder: [UInt8]) { (try redis.receive(), try larder.receive()) }

        func call(_ step: ConformanceStep) throws -> (redis: [UInt8], larder: [UInt8]) {
            try send(encodeRequest(step.words))
            return try replies()
        }
    }

    private func expectSame(_ replies: (redis: [UInt8], larder: [UInt8]), _ step: ConformanceStep) {
        let redis = normalized(replies.redis, step.comparison)
        let larder = normalized(replies.larder, step.comparison)
        #expect(larder == redis, "\(step.line): redis \(shown(replies.redis)), larder \(shown(replies.larder))")
    }

    private func shown(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.prefix(300), as: UTF8.self).debugDescription
    }

    private func normalized(_ reply: [UInt8], _ comparison: ConformanceStep.Comparison) -> [[UInt8]] {
        switch comparison {
        case .exact: return [reply]
        case .unordered:
            guard reply.first == UInt8(ascii: "*"), let end = reply.firstIndex(of: 0x0A) else { return [reply] }
            let elements = RawReply.split(Array(reply[(end + 1)...]))
            return [Array(reply[...end])] + elements.sorted { $0.lexicographicallyPrecedes($1) }
        case .near:
            let text = String(decoding: reply.dropFirst().dropLast(2), as: UTF8.self)
            guard reply.first == UInt8(ascii: ":"), let value = Int(text), value > 0 else { return [reply] }
            // The same within five seconds, at one of two roundings.
            // Halved, because the greatest numbers leave no room for a sum.
            return [Array("about \((value / 2 + 1250) / 50_000)".utf8)]
        }
    }

    @Test(arguments: [2, 3], [1, 2]) func theScript(_ version: Int, _ threads: Int) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--threads", "\(threads)"])
        let pair = Pair(redis: try redis.connect(), larder: try daemon.connect())
        if version == 3 {
            // Their numbers of connections and versions differ.
            let replies = try pair.call(ConformanceStep("HELLO 3"))
            #expect(RawReply.split(replies.redis).count == 1 && RawReply.split(replies.larder).count == 1)
            #expect(replies.redis.prefix(40) == replies.larder.prefix(40))
        }
        for step in ConformanceScript.steps { expectSame(try pair.call(step), step) }
    }

    /// All in one packet: the same replies in the same order.
    @Test func theScriptPipelined() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never"])
        let pair = Pair(redis: try redis.connect(), larder: try daemon.connect())
        try pair.send(ConformanceScript.steps.flatMap { encodeRequest($0.words) })
        for step in ConformanceScript.steps { expectSame(try pair.replies(), step) }
    }

    // MARK: Random commands

    private static let randomWords: [[String]] = [
        ["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "EXAT", "PXAT", "GT", "LT", "nx", "BAD", ""],
        [
            "100", "0", "-1", "abc", "9223372036854775807", "4102444800", "4102444800000", "1", "1.5",
            "99999999999999999999",
        ],
        ["a", "b", "c", "nothing"],
    ]

    private static let randomCommands = [
        "GET", "SET", "SET", "SET", "GETDEL", "MGET", "MSET", "DEL", "UNLINK", "EXISTS", "TYPE", "STRLEN", "EXPIRE",
        "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "PERSIST", "PERSIST", "ECHO", "PING", "CLIENT SETNAME",
        "CLIENT GETNAME", "@TTL", "@PTTL", "@EXPIRETIME", "@PEXPIRETIME", "~KEYS",
    ]

    private func randomStep(_ generator: inout SeededGenerator) -> ConformanceStep {
        func pick<Element>(_ list: [Element]) -> Element { list[Int.random(in: 0..<list.count, using: &generator)] }
        var words = [pick(Self.randomCommands)]
        let count = Int.random(in: 0...6, using: &generator)
        for index in 0..<count {
            // Mostly a key first, then words that mean something.
            let kind = index == 0 ? 2 : Int.random(in: 0...2, using: &generator)
            let word = pick(Self.randomWords[generator.oneIn(10) ? 0 : kind])
            words.append(word.isEmpty ? "\"\"" : word)
        }
        return ConformanceStep(words.joined(separator: " "))
    }

    /// Without DBSIZE, which the script compares: among random deadlines it counts what is expired and not yet removed,
    /// and the two servers remove at moments of their own (Redis also keeps, for a while, what SET gave a past deadline).
    @Test func randomCommands() throws {
        var generator = SeededGenerator(seed: testSeed())
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--durability", "os"])
        let pair = Pair(redis: try redis.connect(), larder: try daemon.connect())
        for _ in 0..<60 {
            let steps = (0..<100).map { _ in randomStep(&generator) }
            try pair.send(steps.flatMap { encodeRequest($0.words) })
            for step in steps { expectSame(try pair.replies(), step) }
        }
    }

    /// Patterns of all kinds against keys of all kinds.
    @Test func randomPatterns() throws {
        var generator = SeededGenerator(seed: testSeed())
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--durability", "os"])
        let pair = Pair(redis: try redis.connect(), larder: try daemon.connect())
        let bytes = Array("aab]-^[\\*?".utf8) + [0x00, 0xFF]
        // Not the empty key: see the differences.
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
            let redis = normalized(replies.redis, .unordered)
            #expect(normalized(replies.larder, .unordered) == redis, "pattern '\(pattern)'")
        }
    }

    // MARK: Requests as bytes

    /// What is sent; both servers then see the end of the stream, and close.
    private static let streams: [String] = [
        "", "\r\n", "\n\n\nPING\n", "PING\r\nPING\r\n", "  PING  \r\n", "PING \"a b\"\r\n", "PING 'a\\'b'\r\n",
        "SET k \"\\x41\\n\"\r\nGET k\r\n", "PING \"a\r\n", "PING \"a\"b\r\n", "set \"\"\"test-key\"\"\" test-value\r\n",
        "*0\r\nPING\r\n", "*-1\r\nPING\r\n", "*-10\r\nPING\r\n", "*3000000000\r\n", "*abc\r\nPING\r\n", "*\r\n",
        "*1\r\nPING\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n",
        "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "*1\r\n$0\r\n\r\n", "QUIT\r\nPING\r\n",
        "*1\r\n$4\r\nQUIT\r\n", "quit now\r\n", "PING\r\n*1\r\n$3000\r\nshort", "GET\tk\r\n", "nosuch\r\n",
        String(repeating: "A", count: 70_000), "*" + String(repeating: "1", count: 70_000),
        "*1\r\n$" + String(repeating: "1", count: 70_000),
    ]

    @Test(arguments: [1, 2]) func streams(_ threads: Int) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--threads", "\(threads)"])
        for stream in Self.streams {
            for piecewise in [false, true] where !piecewise || stream.utf8.count < 200 {
                let pair = Pair(redis: try redis.connect(), larder: try daemon.connect())
                if piecewise {
                    for byte in stream.utf8 { try? pair.send([byte]) }
                } else {
                    try? pair.send(Array(stream.utf8))
                }
                pair.redis.endSending()
                pair.larder.endSending()
                let expected = try pair.redis.receiveToEnd()
                #expect(try pair.larder.receiveToEnd() == expected, "\(stream.prefix(80).debugDescription)")
            }
        }
    }

    // MARK: Differences

    /// Each difference is there, and is what the list says.
    @Test(arguments: deliberateDifferences) func difference(_ difference: DeliberateDifference) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never"])
        let pair = Pair(redis: try redis.connect(), larder: try daemon.connect())
        for line in difference.before { _ = try pair.call(ConformanceStep(line)) }
        let long = String(repeating: "k", count: 65_537)
        let example = difference.example.split(separator: " ").map { $0.hasPrefix("<") ? long : String($0) }
        let words = difference.example.hasPrefix("GET <") ? ["GET", long] : example
        try pair.send(encodeRequest(words))
        let replies = try pair.replies()
        #expect(
            shown(replies.redis).hasPrefix(shown(Array(difference.redis.utf8)).dropLast()), "\(shown(replies.redis))")
        #expect(
            shown(replies.larder).hasPrefix(shown(Array(difference.larder.utf8)).dropLast()), "\(shown(replies.larder))"
        )
        #expect(replies.redis != replies.larder)
    }
}
