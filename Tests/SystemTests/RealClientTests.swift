import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Clients that other people wrote.
@Suite struct RealClientTests {
    // MARK: redis-cli

    private func redisCLI(_ daemon: DaemonProcess, _ arguments: [String], input: String = "") throws -> String {
        let (end, output, errors) = try ChildProcess.run(
            "redis-cli", ["-s", daemon.socketPath] + arguments, input: Array(input.utf8))
        #expect(end == .exited(0), "redis-cli is installed by `make test`: \(errors)")
        return output
    }

    @Test(arguments: [1, 2]) func redisCLIFromAPipe(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let commands = """
            SET greeting "hello world"
            GET greeting
            MGET greeting nothing
            LPUSH list a
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

            ERR unknown command 'LPUSH', with args beginning with: 'list' 'a' \n
            OK
            OK
            一本书
            OK
            policy
            low
            interval
            86400000

            """
        #expect(try redisCLI(daemon, [], input: commands) == replies)
        #expect(
            try redisCLI(daemon, ["-3", "-n", "0"], input: "MGET greeting nothing\nGET nothing\n")
                == "hello world\n\n\n")
        #expect(try redisCLI(daemon, ["-3", "--json", "META", "nothing"]) == "null\n")
        #expect(
            try redisCLI(daemon, ["-3", "--json", "-n", "0", "POLICY"]) == #"{"policy":"lowest","interval":604800000}"#
                + "\n")
    }

    @Test func redisCLIScansAndPipes() throws {
        let daemon = try DaemonProcess()
        let commands = (1000..<4000).map { "SET key:\($0) \($0)\r\n" }.joined()
        #expect(try redisCLI(daemon, ["--pipe"], input: commands).contains("errors: 0, replies: 3000"))
        let keys = try redisCLI(daemon, ["--scan"]).split(separator: "\n")
        #expect(keys.map(String.init) == (1000..<4000).map { "key:\($0)" })
        #expect(try redisCLI(daemon, ["--scan", "--pattern", "key:20?0"]).split(separator: "\n").count == 10)
        #expect(try redisCLI(daemon, ["DBSIZE"]) == "3000\n")
        #expect(try redisCLI(daemon, ["--bigkeys"]).contains("Sampled 3000 keys in the keyspace!"))
    }

    /// With a terminal redis-cli asks for COMMAND DOCS, which its help comes from.
    @Test func redisCLIInteractively() throws {
        let daemon = try DaemonProcess()
        #expect(try daemon.connect().call("SET k v") == "+OK\r\n")
        let environment = ["TERM=dumb", "PATH=" + (getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin")]
        let (end, output, _) = try ChildProcess.run(
            "script", ["-qec", "redis-cli -s \(daemon.socketPath)", "/dev/null"],
            input: Array("GET k\nhelp set\nhelp @larder\nexit\n".utf8), environment: environment)
        #expect(end == .exited(0))
        for text in ["\"v\"", "SET", "key value [NX | XX] [GET]", "Stores a value", "SNAPSHOT", "OPEN | CLOSE"] {
            #expect(output.contains(text), "\(text): \(output)")
        }
    }

    @Test func redisBenchmark() throws {
        let daemon = try DaemonProcess(["--threads", "2", "--durability", "os"])
        let (end, output, errors) = try ChildProcess.run(
            "redis-benchmark", ["-s", daemon.socketPath, "-n", "2000", "-P", "16", "-t", "ping,set,get,mset", "-q"])
        #expect(end == .exited(0), "\(errors)")
        for name in ["PING_INLINE", "PING_MBULK", "SET", "GET", "MSET (10 keys)"] {
            #expect(output.contains("\(name): "), "\(output)")
        }
    }

    // MARK: redis-py

    /// Where Python with redis-py is: `LARDER_PYTHON`, or the environment that `make test` makes.
    private static func python() throws -> String {
        if let path = getenv("LARDER_PYTHON") { return String(cString: path) }
        var place = try DaemonProcess.program()
        while let slash = place.lastIndex(of: "/") {
            place = String(place[..<slash])
            let candidate = place + "/venv/bin/python"
            if access(candidate, X_OK) == 0 { return candidate }
        }
        throw ChildProcess.Failure(
            description: "no Python with redis-py: `make test` makes .build/venv; or set LARDER_PYTHON")
    }

    @Test(arguments: [2, 3], [1, 2]) func redisPy(_ version: Int, _ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let (end, output, errors) = try ChildProcess.run(
            try Self.python(), ["-", daemon.socketPath, "\(version)"], input: Array(redisPyScript.utf8))
        #expect(end == .exited(0), "\(errors)")
        #expect(output == "all is well\n")
    }

    @Test(arguments: [2, 3], [1, 2]) func redisPyPubSub(_ version: Int, _ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)"])
        let (end, output, errors) = try ChildProcess.run(
            try Self.python(), ["-", daemon.socketPath, "\(version)"], input: Array(redisPyPubSubScript.utf8))
        #expect(end == .exited(0), "\(errors)")
        #expect(output == "all is well\n")
    }

    @Test(arguments: [1, 2]) func redisPyTracking(_ threads: Int) throws {
        let daemon = try DaemonProcess(["--threads", "\(threads)", "--notify-keyspace-events", "Ex"])
        let (end, output, errors) = try ChildProcess.run(
            try Self.python(), ["-", daemon.socketPath], input: Array(redisPyTrackingScript.utf8))
        #expect(end == .exited(0), "\(errors)")
        #expect(output == "all is well\n")
    }
}
