import LarderTestSupport
import Testing

/// Tests of redis-cli and redis-benchmark, which come with Redis.
@Suite struct RedisCLITests {
    private func redisCLI(_ path: String, _ arguments: [String], input: String = "") throws -> String {
        try ClientProgram.require("redis-cli", package: "redis-tools")
        let (end, output, errors) = try ChildProcess.run(
            "redis-cli", ["-s", path] + arguments, input: Array(input.utf8))
        #expect(end == .exited(0), "redis-cli \(arguments): \(errors)")
        return output
    }

    /// On a terminal, redis-cli requests COMMAND DOCS for its hints and its help.
    @Test("redis-cli shows hints, completion and help on a terminal", arguments: LiveServer.allCases)
    func redisCLIShowsHintsOnATerminal(_ server: LiveServer) throws {
        try ClientProgram.require("redis-cli", package: "redis-tools")
        // The script needs only Python's standard library.
        try server.run {
            try ClientProgram.run(
                "/usr/bin/python3", "redis_cli_terminal.py", [$0], environment: ["PYTHONDONTWRITEBYTECODE=1"])
        }
    }

    @Test("redis-cli runs Larder's own commands from a pipe", arguments: [1, 2])
    func ownCommandsFromAPipe(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let commands = """
            SET greeting "hello world"
            GET greeting
            MGET greeting nothing
            SELECT books
            SET title 一本书
            GET title
            POLICY low
            POLICY

            """
        let replies = """
            OK
            hello world
            hello world

            OK
            OK
            一本书
            OK
            policy
            low
            interval
            86400000
            grace
            0
            jitter
            0

            """
        #expect(try redisCLI(daemon.socketPath, [], input: commands) == replies)
        #expect(try redisCLI(daemon.socketPath, ["-3", "--json", "META", "nothing"]) == "null\n")
        #expect(
            try redisCLI(daemon.socketPath, ["-3", "--json", "-n", "0", "POLICY"])
                == #"{"policy":"lowest","interval":604800000,"grace":0,"jitter":0}"# + "\n")
    }

    /// redis-cli shows help for Larder's own commands in the same way as for Redis' commands.
    @Test("redis-cli shows help for the commands that only larderd has") func helpAboutOwnCommands() throws {
        let daemon = try DaemonProcess()
        let (end, output, _) = try ChildProcess.run(
            "script", ["-qec", "env TERM=dumb redis-cli -s \(daemon.socketPath)", "/dev/null"],
            input: Array("help set\nhelp @larder\nexit\n".utf8))
        #expect(end == .exited(0))
        for text in ["key value [NX | XX", "POLICY", "SNAPSHOT", "OPEN | CLOSE"] {
            #expect(output.contains(text), "\(text): \(output)")
        }
    }

    @Test("redis-cli runs commands from a pipe", arguments: LiveServer.allCases)
    func fromAPipe(_ server: LiveServer) throws {
        try server.run { path in
            let commands = "SET k v\nINCR n\nMGET k nothing\nGET\n"
            let replies = "OK\n1\nv\n\nERR wrong number of arguments for 'get' command\n\n"
            #expect(try redisCLI(path, [], input: commands) == replies)
            #expect(try redisCLI(path, ["-3"], input: "MGET k nothing\nGET nothing\n") == "v\n\n\n")
            #expect(try redisCLI(path, ["-3", "--json", "MGET", "k", "nothing"]) == #"["v",null]"# + "\n")
            #expect(try redisCLI(path, ["--no-raw", "MGET", "k", "nothing"]) == "1) \"v\"\n2) (nil)\n")
            #expect(try redisCLI(path, ["--csv", "MGET", "k", "nothing"]) == "\"v\",NULL\n")
            #expect(try redisCLI(path, ["-x", "SET", "k"], input: "from a pipe\n") == "OK\n")
            #expect(try redisCLI(path, ["-X", "TAG", "SET", "TAG", "v"], input: "k") == "OK\n")
            #expect(try redisCLI(path, ["GET", "k"]) == "v\n")
            #expect(try redisCLI(path, ["-r", "5", "INCR", "n"]) == "2\n3\n4\n5\n6\n")
            #expect(try redisCLI(path, ["-n", "3", "GET", "n"]) == "\n")
            #expect(try redisCLI(path, ["-2", "PING"]) == "PONG\n")
            #expect(
                try redisCLI(path, [], input: "MULTI\nSET t 1\nINCR t\nEXEC\n") == "OK\nQUEUED\nQUEUED\nOK\n2\n")
            // With -e, an error reply also sets the exit code.
            let (end, output, _) = try ChildProcess.run("redis-cli", ["-s", path, "-e", "INCR", "k"])
            #expect(end == .exited(1) && output.isEmpty)
        }
    }

    @Test("redis-cli --pipe and --scan work", arguments: LiveServer.allCases)
    func pipesAndScans(_ server: LiveServer) throws {
        try server.run { path in
            let commands = (1000..<4000).map { "SET key:\($0) \($0)\r\n" }.joined()
            #expect(try redisCLI(path, ["--pipe"], input: commands).contains("errors: 0, replies: 3000"))
            let broken = "SET a 1\r\nINCR key:1000 x\r\nSET b 2\r\n"
            let (end, output, errors) = try ChildProcess.run(
                "redis-cli", ["-s", path, "--pipe"], input: Array(broken.utf8))
            #expect(end == .exited(1) && output.contains("errors: 1, replies: 3"), "\(output) \(errors)")
            let keys = try redisCLI(path, ["--scan"]).split(separator: "\n").map(String.init)
            #expect(keys.sorted() == (["a", "b"] + (1000..<4000).map { "key:\($0)" }))
            #expect(try redisCLI(path, ["--scan", "--pattern", "key:20?0"]).split(separator: "\n").count == 10)
            #expect(try redisCLI(path, ["DBSIZE"]) == "3002\n")
        }
    }

    @Test("redis-cli --bigkeys and --memkeys work", arguments: LiveServer.allCases)
    func redisCLIFindsBigKeys(_ server: LiveServer) throws {
        try server.run { path in
            #expect(
                try redisCLI(path, ["MSET", "a", "1", "b", "22", "ccc", String(repeating: "x", count: 999)]) == "OK\n")
            let big = try redisCLI(path, ["--bigkeys"])
            for text in [
                "Sampled 3 keys in the keyspace!", "Total key length in bytes is 5 (avg len 1.67)",
                "Biggest string found '\"ccc\"' has 999 bytes", "3 strings with 1002 bytes (100.00% of keys",
            ] {
                #expect(big.contains(text), "\(big)")
            }
            let memory = try redisCLI(path, ["--memkeys"])
            #expect(memory.contains("Biggest string found '\"ccc\"' has "), "\(memory)")
        }
    }

    /// Without a terminal, redis-cli prints the minimum, maximum and mean in milliseconds, and the number of PINGs
    /// answered in a second.
    @Test("redis-cli --latency measures PINGs", arguments: LiveServer.allCases)
    func latency(_ server: LiveServer) throws {
        try server.run { path in
            let words = try redisCLI(path, ["--latency", "-i", "1"]).split(whereSeparator: \.isWhitespace)
            #expect(words.count == 4 && words.allSatisfy { Double($0) != nil } && Int(words[3]) ?? 0 > 0, "\(words)")
        }
    }

    @Test(arguments: LiveServer.allCases) func redisBenchmarkRuns(_ server: LiveServer) throws {
        try ClientProgram.require("redis-benchmark", package: "redis-tools")
        try server.run { path in
            for more in [["-P", "16"], ["-P", "1", "-3"], ["--threads", "2", "-r", "1000"]] {
                let (end, output, errors) = try ChildProcess.run(
                    "redis-benchmark",
                    ["-s", path, "-n", "2000", "-t", "ping,set,get,incr,mset", "-q"] + more)
                #expect(end == .exited(0) && !output.contains("Error"), "\(more): \(output) \(errors)")
                for name in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"] {
                    #expect(output.contains("\(name): "), "\(more): \(output)")
                }
            }
            // redis-benchmark can run any command.
            let (end, output, errors) = try ChildProcess.run(
                "redis-benchmark", ["-s", path, "-n", "1000", "-r", "10", "--csv", "APPEND", "list:__rand_int__", "x"])
            #expect(end == .exited(0) && output.contains("APPEND list:__rand_int__ x"), "\(output) \(errors)")
            // The writes were executed, not only sent: the keys contain all appended values.
            let keys = try redisCLI(path, ["--scan", "--pattern", "list:*"]).split(separator: "\n")
            let lengths = try keys.map { key in
                Int(try redisCLI(path, ["STRLEN", String(key)]).dropLast()) ?? 0
            }
            #expect(keys.count <= 10 && lengths.reduce(0, +) == 1000)
        }
    }
}
