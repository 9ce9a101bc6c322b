import LarderTestSupport
import Testing

/// Random commands, called by scripts on redis-server and larderd, must return the same replies. The seed is printed.
@Suite struct RandomScriptTests {
    /// The script reads an undeclared key from the disk, on a thread that may block. PUBLISH runs on the event loop,
    /// and must not wait for that key.
    @Test(arguments: [true, false]) func aTransactionWithAColdScriptAndAMessageEnds(scriptIsFirst: Bool) throws {
        let daemon = try DaemonProcess(["--memory", "0"])
        let client = try daemon.connect()
        for line in ["SET k v", "SAVE", "MULTI"] { #expect(try client.call(line) == "+OK\r\n") }
        let lines = ["EVAL return(redis.call('STRLEN','k')) 0", "PUBLISH a b"]
        for line in scriptIsFirst ? lines : lines.reversed() { #expect(try client.call(line) == "+QUEUED\r\n") }
        #expect(try client.call("EXEC") == (scriptIsFirst ? "*2\r\n:1\r\n:0\r\n" : "*2\r\n:0\r\n:1\r\n"))
    }

    /// Returns a script that calls the commands in its arguments. Each command is its number of words, then the words.
    /// `call` raises errors, `pcall` does not.
    private static func script(_ function: String) -> String {
        """
        local out, i = {}, 1
        local function shown(x) if type(x) == 'boolean' or x == nil then return tostring(x) end return x end
        while i <= #ARGV do
          local words, n = {}, tonumber(ARGV[i])
          for j = 1, n do words[j] = ARGV[i + j] end
          i = i + n + 1
          out[#out + 1] = shown(redis.\(function)(unpack(words)))
        end
        return out
        """
    }

    /// Runs the same commands in scripts, one or several per script, with declared or undeclared keys.
    @Test("random commands called by scripts get the same replies as from Redis", arguments: [2, 3])
    func commandsFromScripts(_ version: Int) throws {
        let seed = testSeed()
        var generator = SeededGenerator(seed: seed)
        var commands = RandomCommands(seed: seed)
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never", "--durability", "os"])
        let pair = ConformancePair(redis: try redis.connect(), larder: try daemon.connect())
        if version == 3 { _ = try pair.call(ConformanceStep("HELLO 3")) }
        for _ in 0..<600 {
            var arguments: [[UInt8]] = []
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                var step = commands.next()
                while step.comparison != .exact || step.line.hasPrefix("SELECT") { step = commands.next() }
                arguments.append(Array("\(step.words.count)".utf8))
                arguments += step.words
            }
            let keys = generator.oneIn(2) ? [] : ["a", "b", "c"].prefix(Int.random(in: 1...3, using: &generator))
            let raises = generator.oneIn(3)
            let header = ["EVAL", Self.script(raises ? "call" : "pcall"), "\(keys.count)"] + keys
            let words = header.map { Array($0.utf8) } + arguments
            try pair.send(encodeRequest(words))
            let shown = arguments.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
            pair.expectSame(try pair.replies(), ConformanceStep(shown))
            // The values that the script has stored.
            pair.expectSame(try pair.call(ConformanceStep("MGET a b c")), ConformanceStep("MGET a b c"))
        }
    }
}
