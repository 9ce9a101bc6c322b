import LarderTestSupport
import Testing

/// Tests of larderctl's verbs, run as a process with a larder in memory: the commands they send, their output and exit
/// codes.
@Suite struct LarderctlVerbTests {
    private func withTool(_ body: (Larderctl, FakeServer) throws -> Void) throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        try body(Larderctl(socketPath: server.path), server)
    }

    private func expect(
        _ result: Larderctl.Result, _ text: String, exit code: CInt = 0, errors: String = "",
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(result.text == text, sourceLocation: location)
        #expect(result.exitCode == code, sourceLocation: location)
        #expect(result.errors == errors, sourceLocation: location)
    }

    @Test("get and set send and print values") func getAndSet() throws {
        try withTool { larderctl, server in
            expect(try larderctl("set", "k", "v"), "OK\n")
            expect(try larderctl("get", "k"), "v")
            expect(try larderctl("get", "none"), "", exit: 1)
            expect(try larderctl("--json", "set", "k", "a\"\\\n\u{1}本"), #"{"key":"k","stored":true}"# + "\n")
            expect(
                try larderctl("get", "k", "--json"),
                #"{"key":"k","found":true,"value":"a\"\\\n\u0001本"}"# + "\n")
            expect(
                try larderctl("--json", "get", "none"), #"{"key":"none","found":false,"value":null}"# + "\n", exit: 1)
        }
    }

    @Test func setReadsItsValueFromArgumentFileOrInput() throws {
        try withTool { larderctl, server in
            let directory = try TemporaryDirectory(inMemory: true)
            let bytes: [UInt8] = [0, 0xFF, 10]
            expect(try larderctl("set", "in", input: bytes), "OK\n")
            #expect(try larderctl("get", "in").output == bytes)
            expect(try larderctl("set", "in", "-", input: [1]), "OK\n")
            #expect(try larderctl("get", "in").output == [1])
            expect(try larderctl("set", "in", input: []), "OK\n")
            #expect(try larderctl("get", "in").output == [])
            let file = try directory.makeFile("value", [UInt8](repeating: 0xFE, count: 300_000))
            expect(try larderctl("set", "file", "--file", file), "OK\n")
            #expect(try larderctl("get", "file").output == [UInt8](repeating: 0xFE, count: 300_000))
            expect(try larderctl("set", "file", "--file=\(file)"), "OK\n")
        }
    }

    @Test func setSendsTheLifetime() throws {
        try withTool { larderctl, server in
            expect(try larderctl("set", "k", "v", "--policy", "HIGH"), "OK\n")
            expect(try larderctl("set", "--policy=90", "k", "v"), "OK\n")
            expect(try larderctl("set", "k", "v", "--ttl", "0.5"), "OK\n")
            #expect(
                server.requests.map { Array($0.dropFirst(3)) } == [
                    ["POLICY", "high"], ["POLICY", "every:90"], ["POLICY", "every:0.500"],
                ])
        }
    }

    /// Keys and values that are not UTF-8 must be sent unchanged, and be readable in JSON.
    @Test func keysAndValuesThatAreNotTextAreSentUnchanged() throws {
        try withTool { larderctl, _ in
            let (key, value): ([UInt8], [UInt8]) = ([0x6B, 0xFF], [0xFE, 0x80])
            #expect(try larderctl.run([Array("set".utf8), key, value]).exitCode == 0)
            #expect(try larderctl.run([Array("get".utf8), key]).output == value)
            #expect(try larderctl.run([Array("GET".utf8), key]).output == value + [10])
            expect(
                try larderctl.run(["--json", "get"].map { Array($0.utf8) } + [key]),
                #"{"key":{"base64":"a/8="},"found":true,"value":{"base64":"/oA="}}"# + "\n")
            #expect(try larderctl("keys").output == key + [10])
            expect(try larderctl("keys", "--json"), #"[{"base64":"a/8="}]"# + "\n")
        }
    }

    #if os(Linux)
        @Test("a value on a terminal is followed by a line break") func valuesOnATerminalEndWithALineBreak() throws {
            try withTool { larderctl, _ in
                _ = try larderctl("set", "k", "v")
                #expect(try larderctl.runOnTerminal(["get", "k"]) == Array("v\r\n".utf8))
            }
        }

        /// A key or a value must not write control characters to the terminal.
        @Test func controlCharactersAreNotWrittenToATerminal() throws {
            let evil = "\u{1B}]0;title\u{7} \u{9B}2J \r\u{8}\u{7F} é € 😀 a\\b gpj.\u{202E}exe"
            let shown = "\\x1b]0;title\\x07 \\xc2\\x9b2J \\r\\x08\\x7f é € 😀 a\\b gpj.\\xe2\\x80\\xaeexe"
            try withTool { larderctl, _ in
                func terminal(_ words: String...) throws -> String {
                    String(decoding: try larderctl.runOnTerminal(words), as: UTF8.self)
                }
                _ = try larderctl("set", "k", evil)
                #expect(try terminal("get", "k") == shown + "\r\n")
                #expect(try terminal("GET", "k") == shown + "\r\n")
                #expect(try terminal("get", "k", "--raw") == evil + "\r\n")
                expect(try larderctl("get", "k"), evil)
                _ = try larderctl("set", "k", "two\tlines\nof text")
                #expect(try terminal("get", "k") == "two\tlines\r\nof text\r\n")
                _ = try larderctl("del", "k")
                _ = try larderctl("set", "\u{1B}[2J\nother", "v")
                #expect(try terminal("keys") == "\\x1b[2J\\nother\r\n")
                expect(try larderctl("keys"), "\u{1B}[2J\nother\n")
                #expect(!(try larderctl("--json", "keys").output.contains(0x1B)))
                let refused = try larderctl("SET", "k", "v", "\u{1B}[2J")
                #expect(!refused.errors.utf8.contains(0x1B))
            }
        }
    #endif

    @Test("del removes entries, and ttl prints the remaining time") func delAndTTL() throws {
        try withTool { larderctl, _ in
            _ = try larderctl("set", "a", "1")
            _ = try larderctl("set", "own", "1")
            expect(try larderctl("ttl", "a"), "never\n")
            expect(try larderctl("ttl", "own"), "12.345\n")
            expect(try larderctl("ttl", "none"), "", exit: 1)
            expect(try larderctl("--json", "ttl", "a"), #"{"key":"a","found":true,"ttl":null}"# + "\n")
            expect(try larderctl("--json", "ttl", "own"), #"{"key":"own","found":true,"ttl":12345}"# + "\n")
            expect(try larderctl("--json", "ttl", "none"), #"{"key":"none","found":false,"ttl":null}"# + "\n", exit: 1)
            expect(try larderctl("del", "a", "own", "none"), "2\n")
            expect(try larderctl("del", "a"), "0\n", exit: 1)
            expect(try larderctl("del", "a", "--json"), #"{"removed":0}"# + "\n", exit: 1)
        }
    }

    @Test("meta prints the metadata of an entry") func meta() throws {
        try withTool { larderctl, _ in
            _ = try larderctl("set", "a", "123")
            _ = try larderctl("set", "own", "1")
            expect(
                try larderctl("meta", "own"),
                """
                stored at  2026-01-31 23:59:59.999 UTC
                age        1.500 s
                deadline   2026-02-01 00:00:13.844 UTC
                ttl        12.345 s
                rule       its own
                grace      none
                size       1 byte
                codec      json
                state      fresh

                """)
            expect(
                try larderctl("meta", "a", "--json"),
                #"{"key":"a","found":true,"stored-at":1769903999999,"age":1500,"deadline":null,"ttl":null,"#
                    + #""rule":"governed","policy":"never","grace":0,"size":3,"codec":"json","state":"fresh"}"# + "\n")
            expect(try larderctl("meta", "none"), "", exit: 1)
            expect(try larderctl("meta", "none", "--json"), #"{"key":"none","found":false}"# + "\n", exit: 1)
        }
    }

    @Test("keys lists the keys of a database") func keys() throws {
        try withTool { larderctl, _ in
            expect(try larderctl("keys"), "")
            expect(try larderctl("keys", "--json"), "[]\n")
            for key in ["a1", "a2", "a3", "b", "c"] { _ = try larderctl("set", key, "x") }
            expect(try larderctl("keys"), "a1\na2\na3\nb\nc\n")
            expect(try larderctl("keys", "a*"), "a1\na2\na3\n")
            expect(try larderctl("--json", "keys", "a*"), #"["a1","a2","a3"]"# + "\n")
            _ = try larderctl("set", "two\nlines", "x")
            for option in ["-0", "--null"] {
                expect(try larderctl("keys", option), "a1\0a2\0a3\0b\0c\0two\nlines\0")
            }
            expect(try larderctl("get", "-0"), "", exit: 1)
            #expect(try larderctl("keys", "-0", "--json").errors.contains("cannot be combined"))
        }
    }

    #if os(Linux)
        /// An interactive user is asked before a database is emptied; a script is not.
        @Test func purgeAsksForConfirmationOnATerminal() throws {
            try withTool { larderctl, _ in
                let tool = try DaemonProcess.program("larderctl")
                /// Runs a purge. Returns the exit code, and whether the database is unchanged.
                func purge(_ options: String, answer: String) throws -> (Int, Bool) {
                    let socket = try #require(larderctl.socketPath)
                    let (_, output, _) = try ChildProcess.run(
                        "script", ["-qec", "\(tool) --socket \(socket) purge \(options); echo code $?", "/dev/null"],
                        input: Array(answer.utf8))
                    let code = try #require(output.firstMatch(of: /code (\d+)/)?.output.1)
                    return (Int(code) ?? -1, !output.contains("removed "))
                }
                // A mistyped name must not look like an empty database.
                #expect(try purge("--database nosuch", answer: "y\n") == (1, true))
                #expect(try larderctl("set", "k", "v").exitCode == 0)
                #expect(try purge("", answer: "n\n") == (1, true))
                #expect(try purge("", answer: "\n") == (1, true))
                #expect(try purge("", answer: "\u{4}") == (1, true))
                #expect(try purge("", answer: "y\n") == (0, false))
                #expect(try purge("--yes", answer: "") == (0, false))
                #expect(try larderctl("purge", input: Array("n\n".utf8)).text.hasPrefix("removed "))
            }
        }
    #endif

    @Test("policy and databases print and change policies") func policiesAndDatabases() throws {
        try withTool { larderctl, server in
            expect(try larderctl("policy"), "every 90, 90 seconds\n")
            expect(
                try larderctl("policy", "--json"),
                #"{"policy":"every 90","interval":90000,"grace":0,"jitter":0}"# + "\n")
            expect(try larderctl("policy", "low"), "OK\n")
            expect(try larderctl("policy", "never", "--json"), #"{"policy":"never","interval":null}"# + "\n")
            #expect(server.requests.suffix(2) == [["POLICY", "low"], ["POLICY", "never"]])
            expect(
                try larderctl("databases"),
                """
                NAME    POLICY  ENTRIES  STALE    BYTES  AT MOST  STATE
                0       lowest        3      ?      120        -  open
                userdb  never     61234      ?  9876543        -  closed

                """)
            expect(
                try larderctl("databases", "--json"),
                #"[{"name":"0","policy":"lowest","interval":604800000,"grace":0,"jitter":0,"entries":3,"stale":null,"bytes":120,"limit":null,"state":"open","damage":null},"#
                    + #"{"name":"userdb","policy":"never","interval":null,"grace":0,"jitter":0,"entries":61234,"stale":null,"#
                    + #""bytes":9876543,"limit":null,"state":"closed","damage":null}]"# + "\n")
        }
    }

    @Test("stats, purge and ping print their results") func statsPurgePing() throws {
        try withTool { larderctl, server in
            expect(
                try larderctl("stats"),
                "# Server\nname:larderd\nversion:0.1.0\n\n# Load Now\nratio:0.25\nclients:2\n")
            expect(
                try larderctl("stats", "load", "--json"),
                #"{"server":{"name":"larderd","version":"0.1.0"},"load-now":{"ratio":0.25,"clients":2}}"# + "\n")
            expect(try larderctl("purge"), "removed 3 entries, 120 bytes, in 1 ms\n")
            expect(try larderctl("purge", "--json"), #"{"entries":3,"bytes":120,"milliseconds":1}"# + "\n")
            expect(try larderctl("purge", "--expired"), "removed 3 entries, 120 bytes, in 1 ms\n")
            expect(try larderctl("purge", "--prefix", "a:"), "removed 3 entries, 120 bytes, in 1 ms\n")
            #expect(
                server.requests.suffix(4) == [["PURGE"], ["PURGE"], ["PURGE", "EXPIRED"], ["PURGE", "PREFIX", "a:"]])
            expect(try larderctl("ping"), "PONG\n")
            expect(try larderctl("--json", "ping"), #"{"answer":"PONG"}"# + "\n")
        }
    }

    @Test func theOptionDatabaseSelectsTheDatabase() throws {
        try withTool { larderctl, server in
            _ = try larderctl("--database", "userdb", "get", "k")
            _ = try larderctl("get", "--database=userdb", "k")
            #expect(server.requests == [["SELECT", "userdb"], ["GET", "k"], ["SELECT", "userdb"], ["GET", "k"]])
        }
    }

    @Test func redisCommandsAreSentUnchanged() throws {
        try withTool { larderctl, server in
            expect(try larderctl("SET", "k", "--json", "EX", "5"), "OK\n")
            expect(try larderctl("strlen", "k"), "6\n")
            expect(try larderctl("GET", "k"), "--json\n")
            expect(try larderctl("GET", "none"), "", exit: 1)
            expect(try larderctl("--json", "GET", "none"), "null\n", exit: 1)
            expect(try larderctl("--json", "strlen", "k"), "6\n")
            #expect(server.requests[0] == ["SET", "k", "--json", "EX", "5"])
            expect(try larderctl("MGET", "k", "none"), "--json\n(nil)\n")
            expect(try larderctl("--json", "MGET", "k", "none"), #"["--json",null]"# + "\n")
            expect(
                try larderctl("COMMAND"),
                "1\n(nil)\n-\n  name: one\n  flags:\n    fast\n    0.5\n(error) ERR inner\n")
            expect(
                try larderctl("--json", "COMMAND"),
                #"[1,null,{"name":"one","flags":["fast",0.5]},{"error":"ERR inner"}]"# + "\n")
            expect(
                try larderctl("EXPIRE", "k"), "", exit: 4, errors: "larderctl: ERR unknown command 'EXPIRE'\n")
        }
    }
}
