import Foundation
import LarderCommandCatalog
import LarderServer
import LarderTestSupport
import Testing

/// Runs larderd and redis-server side by side: the same commands must return the same bytes.
///
/// No entry expires by itself on either server: larderd runs with `--policy never`.
@Suite struct ConformanceTests {
    @Test("the conformance script gets the same replies as from Redis", arguments: [2, 3], [1, 2])
    func theScript(_ version: Int, _ threads: Int) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--threads", "\(threads)"])
        let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
        if version == 3 {
            // The connection IDs and versions of the servers differ.
            let replies = try pair.call(ConformanceStep("HELLO 3"))
            #expect(RawReply.split(replies.redis).count == 1 && RawReply.split(replies.larder).count == 1)
            #expect(replies.redis.prefix(40) == replies.larder.prefix(40))
        }
        for step in ConformanceScript.steps { pair.expectSame(try pair.call(step), step) }
    }

    /// ``ConformanceScript/absentTypes`` contains a call of each command for values that are not strings.
    @Test("the conformance script contains every command for types that are not stored")
    func everyReadOfATypeThatIsNotStoredIsCompared() {
        let compared = Set(
            ConformanceScript.steps.compactMap { $0.words.first.map { String(decoding: $0, as: UTF8.self) } })
        let names = CommandMetadata.all.filter { $0.absent != nil }.map { $0.name.uppercased() }
        #expect(names.count > 60)
        #expect(Set(names).subtracting(compared).isEmpty)
    }

    /// If the whole script is sent at once, the replies are the same, in the same order.
    @Test("the conformance script, sent at once, gets the same replies as from Redis")
    func theScriptPipelined() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never"])
        let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
        try pair.send(ConformanceScript.steps.flatMap { encodeRequest($0.words) })
        for step in ConformanceScript.steps { pair.expectSame(try pair.replies(), step) }
    }

    // MARK: Passwords

    /// Tests the commands that a connection may run before it has given the password, and after a wrong password.
    @Test("authentication gets the same replies as from Redis") func passwords() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/password"
        try Data("sesame\n".utf8).write(to: URL(fileURLWithPath: file))
        let redis = try RedisProcess(["--requirepass", "sesame"])
        let daemon = try DaemonProcess(["--policy", "never", "--password-file", file])
        let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
        for step in ConformanceScript.passwords { pair.expectSame(try pair.call(step), step) }
        for stream in [
            "*11\r\n$4\r\nPING\r\n", "*10\r\n$4\r\nPING\r\n", "*1\r\n$16385\r\n", "*1\r\n$16384\r\n",
            "PING a b c d e f g h i j k l\r\n", "*2\r\n$4\r\nAUTH\r\n$6\r\nsesame\r\n*11\r\n$4\r\nMGET\r\n",
        ] {
            let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
            try? pair.send(Array(stream.utf8))
            pair.redis.endSending()
            pair.larder.endSending()
            let expected = try pair.redis.receiveToEnd()
            #expect(try pair.larder.receiveToEnd() == expected, "\(stream.debugDescription)")
        }
    }

    // MARK: Requests as bytes

    /// The bytes to send. After them, both servers see the end of the stream, and close the connection.
    private static let streams: [String] = [
        "", "\r\n", "\n\n\nPING\n", "PING\r\nPING\r\n", "  PING  \r\n", "PING \"a b\"\r\n", "PING 'a\\'b'\r\n",
        "SET k \"\\x41\\n\"\r\nGET k\r\n", "PING \"a\r\n", "PING \"a\"b\r\n", "set \"\"\"test-key\"\"\" test-value\r\n",
        "*0\r\nPING\r\n", "*-1\r\nPING\r\n", "*-10\r\nPING\r\n", "*3000000000\r\n", "*abc\r\nPING\r\n", "*\r\n",
        "*1\r\nPING\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n",
        "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n",
        "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "*1\r\n$0\r\n\r\n", "QUIT\r\nPING\r\n",
        "*1\r\n$4\r\nQUIT\r\n", "quit now\r\n", "PING\r\n*1\r\n$3000\r\nshort", "GET\tk\r\n", "nosuch\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\n\r\n", "host: x\r\n", "SET k \"\\x41\\x4g\\a\\b\"\r\nGET k\r\n",
        String(repeating: "A", count: 70_000), "*" + String(repeating: "1", count: 70_000),
        "*1\r\n$" + String(repeating: "1", count: 70_000),
    ]

    @Test("malformed requests get the same replies as from Redis", arguments: [1, 2])
    func streams(_ threads: Int) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--threads", "\(threads)"])
        for stream in Self.streams {
            for piecewise in [false, true] where !piecewise || stream.utf8.count < 200 {
                let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
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

    /// Checks that each difference is as the list describes it.
    @Test("each deliberate difference from Redis is as described", arguments: deliberateDifferences)
    func difference(_ difference: DeliberateDifference) throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never"])
        let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
        for line in difference.before { _ = try pair.call(ConformanceStep(line)) }
        let long = String(repeating: "k", count: 65_537)
        let words = ConformanceStep(difference.example).words.map { word in
            difference.example.hasPrefix("GET <") && word != Array("GET".utf8) ? Array(long.utf8) : word
        }
        try pair.send(encodeRequest(difference.example.hasPrefix("GET <") ? Array(words.prefix(2)) : words))
        let replies = try pair.replies()
        for (reply, beginning) in [(replies.redis, difference.redis), (replies.larder, difference.larder)] {
            #expect(reply.starts(with: Array(beginning.utf8)), "\(ConformancePair.shown(reply))")
        }
        #expect(replies.redis != replies.larder)
    }
}
