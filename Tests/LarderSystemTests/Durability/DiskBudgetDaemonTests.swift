import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of larderd with a disk limit.
@Suite(.timeLimit(.minutes(10))) struct DaemonDiskBudgetTests {
    private static let options = ["--max-disk", "16M", "--memory", "1M", "--policy", "never", "--checkpoint", "1M"]
    private static let valueBytes = 8_000

    private static func value(_ number: Int) -> [UInt8] {
        var random = SeededGenerator(seed: UInt64(number))
        return Array("\(number) ".utf8) + Incompressible.bytes(count: valueBytes, &random)
    }

    private func set(_ client: SocketClient, _ keys: [(String, Int)]) throws {
        let words = keys.map { [Array("SET".utf8), Array($0.0.utf8), Self.value($0.1)] }
        try client.send(words.flatMap { encodeRequest($0) })
        for reply in try client.receive(keys.count) { #expect(reply == Array("+OK\r\n".utf8)) }
    }

    /// A field of INFO.
    private func field(_ client: SocketClient, _ name: String) throws -> Int {
        let info = try client.call("INFO everything")
        let line = info.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ":") }
        return try #require(line.flatMap { Int($0.dropFirst(name.count + 1)) }, "\(name)")
    }

    @Test func writesBeyondTheDiskLimitEvictEntries() throws {
        let daemon = try DaemonProcess(Self.options + ["--notify-keyspace-events", "Ee"])
        _ = try daemon.process.waitForErrorLine(containing: "at most 16777216 bytes")
        let (client, listener) = (try daemon.connect(), try daemon.connect())
        _ = try listener.call(["SUBSCRIBE", "__keyevent@0__:evicted"])
        try set(client, (0..<100).map { ("hot:\($0)", $0) })
        var most = 0
        for start in stride(from: 0, to: 8_000, by: 50) {
            try set(client, (start..<start + 50).map { ("key:\($0)", $0) })
            for hot in 0..<100 { _ = try client.call(["GET", "hot:\(hot)"]) }
            most = max(most, FileSystem.space(daemon.larder))
        }
        #expect(most <= 40 << 20, "\(most)")
        let hot = try (0..<100).filter { try client.call(["EXISTS", "hot:\($0)"]) == Array(":1\r\n".utf8) }.count
        #expect(hot >= 90, "\(hot)")
        let evicted = try field(client, "evicted_keys")
        #expect(evicted > 4_000)
        #expect(try field(client, "evicted_bytes") > evicted * Self.valueBytes)
        #expect(try field(client, "disk_limit") == 16 << 20)
        #expect(try listener.receive().starts(with: Array("*3\r\n$7\r\nmessage\r\n".utf8)))
        #expect(try client.call("CONFIG GET max-disk") == "*2\r\n$8\r\nmax-disk\r\n$8\r\n16777216\r\n")
        #expect(try client.call("CONFIG SET max-disk 1M").hasPrefix("-ERR CONFIG SET failed"))
        #expect(try client.call("CONFIG SET max-disk none") == "+OK\r\n")
        #expect(try field(client, "disk_limit") == 0)
        #expect(try daemon.stop() == .exited(0))
    }

    /// An eviction invalidates the entry in near caches: otherwise, another client could store a newer value without an
    /// invalidation.
    @Test func evictionsInvalidateTrackedKeys() throws {
        let daemon = try DaemonProcess(Self.options)
        let (client, tracker) = (try daemon.connect(), try daemon.connect())
        try set(client, [("tracked", 1)])
        try tracker.send(["HELLO", "3"])
        _ = try tracker.receive()
        #expect(try tracker.call(["CLIENT", "TRACKING", "ON"]) == Array("+OK\r\n".utf8))
        _ = try tracker.call(["GET", "tracked"])
        for start in stride(from: 0, to: 8_000, by: 50) {
            try set(client, (start..<start + 50).map { ("key:\($0)", $0) })
        }
        #expect(try client.call(["EXISTS", "tracked"]) == Array(":0\r\n".utf8))
        #expect(try tracker.receive() == Array(">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\ntracked\r\n".utf8))
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func limitSetsTheDiskLimitOfADatabase() throws {
        let daemon = try DaemonProcess(["--policy", "never"])
        let client = try daemon.connect()
        #expect(try client.call("SELECT small") == "+OK\r\n")
        #expect(try client.call("POLICY never") == "+OK\r\n")
        #expect(try client.call("LIMIT 6M") == "+OK\r\n")
        #expect(try client.call("LIMIT 12").hasPrefix("-ERR invalid limit '12'"))
        for start in stride(from: 0, to: 4_000, by: 50) {
            try set(client, (start..<start + 50).map { ("key:\($0)", $0) })
        }
        #expect(try client.call("LIMIT").hasPrefix("*6\r\n$5\r\nlimit\r\n:6291456\r\n$5\r\nbytes\r\n"))
        #expect(try client.call("DATABASES").contains("$5\r\nlimit\r\n:6291456\r\n"))
        #expect(try field(client, "evicted_keys") > 2_000)
        #expect(try daemon.stop() == .exited(0))
    }

    /// After SIGKILL, each entry has the last acknowledged value or a newer one, and removed entries stay removed. A
    /// missing entry may have been evicted, so it is not an error.
    @Test("a SIGKILL during evictions brings back no replaced value and no removed entry")
    func aKillDuringEvictionsRevivesNoOldValue() throws {
        let place = try TemporaryDirectory()
        var random = SeededGenerator(seed: testSeed())
        var floor: [Int: Int] = [:]
        var sent: [Int: Int] = [:]
        var number = 0
        for _ in 0..<(TestSetting.killRounds.number() ?? 6) {
            let daemon = try DaemonProcess(Self.options, in: place)
            let client = try daemon.connect()
            try verify(client, floor, sent)
            for _ in 0..<(20 + random.below(60)) {
                let keys = (0..<50).map { _ in random.below(6_000) }
                for key in keys where random.oneIn(10) {
                    // This number is never written. So any later entry must have a higher number.
                    number += 1
                    sent[key] = number
                    _ = try client.call(["DEL", "key:\(key)"])
                    floor[key] = number
                }
                let pairs = keys.map { key in
                    number += 1
                    sent[key] = number
                    return (key, number)
                }
                try set(client, pairs.map { ("key:\($0.0)", $0.1) })
                for (key, number) in pairs { floor[key] = number }
            }
            // Kill the daemon during further writes, whose outcome is unknown.
            for _ in 0..<50 {
                number += 1
                let key = random.below(6_000)
                sent[key] = number
                try client.send(encodeRequest([Array("SET".utf8), Array("key:\(key)".utf8), Self.value(number)]))
            }
            daemon.kill()
        }
        let daemon = try DaemonProcess(Self.options, in: place)
        let client = try daemon.connect()
        try verify(client, floor, sent)
        #expect(FileSystem.space(daemon.larder) <= 40 << 20)
        #expect(try daemon.stop() == .exited(0))
    }

    private func verify(_ client: SocketClient, _ floor: [Int: Int], _ sent: [Int: Int]) throws {
        for (key, last) in sent {
            let reply = try client.call(["GET", "key:\(key)"])
            guard reply != Array("$-1\r\n".utf8) else { continue }
            let text = reply.drop { $0 != 0x0A }.dropFirst().prefix { $0 != 0x20 }
            let found = try #require(Int(String(decoding: text, as: UTF8.self)))
            // Any number from the last acknowledged one to the last one sent is possible.
            #expect(found >= floor[key] ?? 0 && found <= last, "key:\(key)")
        }
    }
}
