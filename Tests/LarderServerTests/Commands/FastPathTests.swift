import LarderEngine
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that the fast path for the most frequent commands gives the same replies as the handlers in the command table.
@Suite struct FastPathTests {
    @Test("each constant of ShortWord equals its text") func shortWordsMatchTheirText() {
        let words: [(ShortWord, String)] = [
            (.nx, "nx"), (.xx, "xx"), (.ex, "ex"), (.px, "px"), (.exat, "exat"), (.pxat, "pxat"),
        ]
        for (word, text) in words { #expect(word == ShortWord(text), "\(text)") }
    }

    /// Every command of the table is found by its name, in upper or lower case. Other words are not found.
    @Test func fastPathCommandsAreFoundByNameInAnyCase() {
        for spec in CommandTable.all {
            #expect(CommandTable.find(spec.name) === spec)
            #expect(CommandTable.find(spec.name.uppercased()) === spec)
            #expect(CommandTable.find(spec.name + "\0") == nil)
            #expect(CommandTable.find(String(spec.name.dropLast())) == nil)
        }
        #expect(CommandTable.find("") == nil)
        #expect(CommandTable.find(String(repeating: "get", count: 11)) == nil)
    }

    /// The same random commands, some of them invalid, run on a session with the fast path and on a session without it.
    @Test(arguments: [0, 1 << 20]) func theFastPathRepliesLikeTheHandlers(_ memoryBytes: Int) throws {
        var random = SeededGenerator(seed: testSeed())
        let quick = try SocketlessServer { $0.memoryBytes = memoryBytes }
        let general = try SocketlessServer { $0.memoryBytes = memoryBytes }
        let one = quick.connect()
        let other = general.connect()
        other.session.prechecks.areUsed = false
        for step in 0..<3000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) { bytes += encodeRequest(command(&random)) }
            if random.oneIn(50) { bytes += encodeRequest(["HELLO", random.oneIn(2) ? "2" : "3"]) }
            if random.oneIn(40) { bytes += encodeRequest(["SNAPSHOT", random.oneIn(2) ? "OPEN" : "CLOSE"]) }
            let commitsEarly = random.oneIn(2)
            for (client, server) in [(one, quick), (other, general)] {
                client.feed(bytes)
                if commitsEarly { server.commit() }
            }
            let advance = random.oneIn(3) ? Int64.random(in: 0...1500, using: &random) : 0
            for server in [quick, general] {
                server.commit()
                server.time.advance(milliseconds: advance)
            }
            let text = String(decoding: bytes, as: UTF8.self)
            let (left, right) = (one.takeSendable(), other.takeSendable())
            #expect(left == right, "step \(step): \(text)")
            if left != right { return }
        }
    }

    private func command(_ random: inout SeededGenerator) -> [String] {
        func key() -> String {
            random.oneIn(200)
                ? String(repeating: "k", count: Key.bytesMax + 1) : "k\(Int.random(in: 0..<12, using: &random))"
        }
        func value() -> String { String(repeating: "v", count: Int.random(in: 0...40, using: &random)) }
        func expiry() -> [String] {
            let word = ["EX", "px", "Px", "EXAT", "KEEPTTL", "NX"].randomElement(using: &random) ?? "EX"
            let number =
                ["1", "2", "0", "-1", "x", "9223372036854775807", "9223372036854775", "1000"]
                .randomElement(using: &random) ?? "1"
            return [word, number]
        }
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2: return [random.oneIn(2) ? "GET" : "gEt", key()]
        case 3...4: return ["SET", key(), value()]
        case 5: return ["set", key(), value()] + expiry()
        case 6: return ["MGET"] + (0..<Int.random(in: 0...5, using: &random)).map { _ in key() }
        case 7: return ["EXISTS"] + (0..<Int.random(in: 0...2, using: &random)).map { _ in key() }
        case 8: return ["DEL", key()]
        case 9: return ["PING"] + (random.oneIn(2) ? [] : ["x"]) + (random.oneIn(9) ? ["y"] : [])
        case 10: return random.oneIn(2) ? ["GET"] : ["GET", key(), key()]
        default: return ["PTTL", key()]
        }
    }
}
