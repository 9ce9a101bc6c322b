import LarderTestSupport
import Testing

/// Tests of larderctl with a real daemon.
@Suite struct LarderctlDaemonTests {
    @Test func basicVerbsWorkWithARealDaemon() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        #expect(try larderctl("ping").text == "PONG\n")
        #expect(try larderctl("set", "k", "v", "--policy", "never").text == "OK\n")
        #expect(try larderctl("get", "k").text == "v")
        #expect(try larderctl("ttl", "k").text == "never\n")
        #expect(try larderctl("meta", "k").text.contains("\nrule       its own: it never expires\n"))
        #expect(try larderctl("keys", "--json").text == #"["k"]"# + "\n")
        #expect(try larderctl("policy").text == "lowest, 7 days\n")
        #expect(try larderctl("policy", "90").text == "OK\n")
        #expect(
            try larderctl("policy", "--json").text == #"{"policy":"every:90","interval":90000,"grace":0,"jitter":0}"#
                + "\n")
        #expect(try larderctl("databases").text.hasPrefix("NAME  POLICY    ENTRIES"))
        #expect(try larderctl("stats", "server", "--json").text.hasPrefix(#"{"server":{"#))
        #expect(try larderctl("SET", "k", "w", "GET").text == "v\n")
        #expect(try larderctl("--json", "META", "none").exitCode == 1)
        #expect(try larderctl("SET", "k").exitCode == 4)
        #expect(try larderctl("--database", "Bad Name", "get", "k").exitCode == 4)
        let missing = try larderctl("--database", "99", "get", "k")
        #expect(missing.exitCode == 4 && missing.errors.contains("the numbers 0 to 15 and"), "\(missing)")
        #expect(try larderctl("del", "k", "none").text == "1\n")
        #expect(try larderctl("get", "k").exitCode == 1)
        #expect(try larderctl("purge", "--json").text.hasPrefix(#"{"entries":0,"bytes":"#))
        #expect(try larderctl("SHUTDOWN").exitCode == 0)
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(try larderctl("ping").exitCode == 3)
    }

    @Test("query prints tables") func queryPrintsTables() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        for (key, text) in [("b:1", #"{"author":"Bo","year":1999}"#), ("b:2", #"{"author":"Al","year":null}"#)] {
            #expect(try larderctl("set", key, text).exitCode == 0)
        }
        #expect(try larderctl("query", "count", "where", "author", "exists").text == "2\n")
        let selected = try larderctl("query", "select", "2", "author", "none", "sort", "year", "desc")
        #expect(selected.text == "KEY  author  none\nb:1  \"Bo\"    -\nb:2  \"Al\"    -\n")
        #expect(
            try larderctl("query", "--json", "SELECT", "1", "year").text
                == #"[{"@key":"b:1","year":1999},{"@key":"b:2","year":null}]"# + "\n")
        #expect(
            try larderctl("query", "--json", "where", "author", "=", "Bo").text
                == #"[{"key":"b:1","value":{"author":"Bo","year":1999}}]"# + "\n")
        // Members of the same name appear once, and a field named "key" is not taken for the key.
        #expect(
            try larderctl("query", "--json", "select", "3", "key", "year", "@key", "limit", "1").text
                == #"[{"@key":"b:1","key":null,"year":1999}]"# + "\n")
        #expect(
            try larderctl("query", "group", "author", "count", "sum", "year").text
                == "author  COUNT  SUM year\n\"Al\"    1      -\n\"Bo\"    1      1999\n")
        let page = try larderctl("query", "keys", "limit", "1")
        #expect(page.text == "KEY\nb:1\n" && page.errors.hasPrefix("more follow: AFTER "))
        let nothing = try larderctl("query", "keys", "where", "autor", "=", "Bo")
        #expect(nothing.text == "KEY\n" && nothing.errors == "no entry has the field 'autor'; did you mean 'author'?\n")
        #expect(try larderctl("query", "count", "where", "author", "=", "x").errors == "")
        // Without LIMIT, all pages are printed.
        let client = try daemon.connect()
        for key in 0..<1100 { #expect(try client.call("SET \(key) {}") == "+OK\r\n") }
        #expect(try larderctl("query", "keys", "where", "year", "missing").text.split(separator: "\n").count == 1101)
        // Also behind a cursor, and if a value looks like LIMIT.
        let cut = try larderctl("query", "keys", "where", "year", "missing", "limit", "50")
        let cursor = String(try #require(cut.errors.split(separator: " ").last).dropLast())
        let rest = try larderctl("query", "keys", "where", "year", "missing", "after", cursor)
        #expect(rest.exitCode == 0 && rest.text.split(separator: "\n").count == 1051, "\(rest.errors)")
        #expect(try larderctl("query", "keys", "skip", "7").text.split(separator: "\n").count == 1096)
        let value = try larderctl("query", "keys", "where", "year", "!=", "limit")
        #expect(value.text.split(separator: "\n").count == 1103 && value.errors.isEmpty, "\(value.errors)")
        #expect(try larderctl("index", "create", "byYear", "on", "year", "desc").text == "OK\n")
        let indexes = try larderctl("index").text
        #expect(indexes.hasPrefix("NAME    PATHS      PREFIX  STATE") && indexes.contains("byYear  year DESC  "))
        #expect(
            try larderctl("index", "--json").text.hasPrefix(#"[{"name":"byYear","paths":["year DESC"],"prefix":"","#))
        #expect(try larderctl("index", "drop", "byYear", "--json").text == #"{"done":true}"# + "\n")
        #expect(try larderctl("index", "drop", "byYear").exitCode == 4)
        let wrong = try larderctl("query", "wher", "a", "=", "1")
        #expect(wrong.exitCode == 4 && wrong.errors.contains("did you mean WHERE?"))
        #if os(Linux)
            // On a terminal, a key cannot look like another row.
            #expect(try larderctl("set", "evil\nfake", #"{"n":"evil"}"#).exitCode == 0)
            let shown = try larderctl.runOnTerminal(["query", "keys", "where", "n", "=", "evil"])
            #expect(String(decoding: shown, as: UTF8.self) == "KEY\r\nevil\\nfake\r\n")
        #endif
    }

    @Test("grace, jitter and tags are set and shown") func graceJitterAndTags() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        #expect(try larderctl("policy", "low", "--grace", "3600", "--jitter", "10").text == "OK\n")
        #expect(try larderctl("policy").text == "low, 1 day, grace 1 hour, jitter 10 %\n")
        #expect(
            try larderctl("policy", "--json").text
                == #"{"policy":"low","interval":86400000,"grace":3600000,"jitter":10}"# + "\n")
        #expect(
            try larderctl("--json", "policy", "low", "--grace=0").text
                == #"{"policy":"low","interval":86400000,"grace":0}"# + "\n")
        #expect(try larderctl("policy").text == "low, 1 day, jitter 10 %\n")
        #expect(try larderctl("databases", "--json").text.contains(#""grace":0,"jitter":10,"#))
        let stored = try larderctl(
            "set", "page:1", "a", "--tag", "article:17", "--tag=front", "--ttl", "90", "--grace", "7.5", "--jitter", "5"
        )
        #expect(stored.text == "OK\n", "\(stored.errors)")
        #expect(try larderctl("set", "page:2", "b", "--tag", "front").exitCode == 0)
        #expect(try larderctl("set", "page:3", "c").exitCode == 0)
        #expect(try larderctl("meta", "page:1").text.contains("\ngrace      7.500 s\n"))
        #expect(try larderctl("meta", "page:2").text.contains("\ngrace      none\n"))
        #expect(try larderctl("tags", "page:1").text == "article:17\nfront\n")
        #expect(
            try larderctl("tags", "page:1", "--json").text
                == #"{"key":"page:1","found":true,"tags":["article:17","front"]}"# + "\n")
        #expect(try larderctl("tags", "page:3").text == "")
        #expect(try larderctl("tags", "none").exitCode == 1)
        #expect(try larderctl("purge", "--tag", "article:17", "--soft").text == "OK\n")
        #expect(try larderctl("get", "page:1").exitCode == 1)
        #expect(try larderctl("fetch", "page:1", "--tag", "again", "--", "printf", "x").text == "x")
        #expect(try larderctl("tags", "page:1").text == "again\n")
        #expect(try larderctl("get", "page:2").text == "b")
        #expect(
            try larderctl("--json", "purge", "--tag", "front", "--tag", "again").text
                == #"{"tags":["front","again"],"soft":false}"# + "\n")
        #expect(try larderctl("keys").text == "page:3\n")
    }

    /// Tags set by other programs need not be text.
    @Test func tagsThatAreNotTextCanBeUsed() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let tag: [UInt8] = [0x74, 0xFF]
        func words(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }
        #expect(try larderctl.run(words("SET", "k", "v", "TAGS", "2", "ok") + [tag]).exitCode == 0)
        #expect(try larderctl("tags", "k").output == Array("ok\n".utf8) + tag + [0x0A])
        #expect(
            try larderctl("--json", "tags", "k").text
                == #"{"key":"k","found":true,"tags":["ok",{"base64":"dP8="}]}"# + "\n")
        let purge = try larderctl.run(words("--json", "purge", "--tag") + [tag])
        #expect(purge.exitCode == 0 && purge.text == #"{"tags":[{"base64":"dP8="}],"soft":false}"# + "\n")
        #expect(try larderctl("get", "k").exitCode == 1)
    }

    /// Times can be written with units.
    @Test func timesMayBeWrittenWithUnits() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        #expect(try larderctl("policy", "5m", "--grace", "90s").exitCode == 0)
        #expect(
            try larderctl("--json", "policy").text
                == #"{"policy":"every:300","interval":300000,"grace":90000,"jitter":0}"# + "\n")
        #expect(try larderctl("set", "k", "v", "--ttl", "2h", "--grace", "0s").exitCode == 0)
        #expect(try larderctl("meta", "k").text.contains("grace      none\n"))
        #expect(try larderctl("lock", "l", "--for", "30s", "--wait", "0ms", "--", "true").exitCode == 0)
        for words in [
            ["policy", "9999999999"], ["policy", "5q"], ["set", "k", "v", "--ttl", "0s"],
            ["set", "k", "v", "--ttl", "high"],
        ] { #expect(try larderctl.run(words).exitCode == 2, "\(words)") }
    }

    @Test("an unknown name gets a suggestion") func unknownNamesGetASuggestion() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let section = try larderctl("stats", "memry")
        #expect(
            section.exitCode == 2
                && section.errors.contains(
                    "unknown section 'memry'; did you mean memory?; there are server, clients, memory,"),
            "\(section.errors)")
        #expect(try larderctl("stats", "commandstats").exitCode == 0)
        let command = try larderctl("latency", "nope")
        #expect(
            command.exitCode == 2 && command.errors.contains("unknown command 'nope'")
                && command.errors.contains("; commands that have run: "), "\(command.errors)")
        #expect(try larderctl("latency", "append", "config", "config|get").exitCode == 0)
        let limit = try larderctl("limit", "boks", "20M")
        #expect(limit.exitCode == 4 && limit.errors.contains("there is no database 'boks'"), "\(limit.errors)")
        #expect(try larderctl("databases", "--json").text == "[]\n")
        let lock = try larderctl("lock", "", "--", "true")
        #expect(lock.exitCode == 2 && lock.errors.contains("the lock's name is empty"))
    }

    @Test("an invalid grace, jitter or tag is refused") func invalidGraceJitterAndTagsAreRefused() throws {
        let daemon = try DaemonProcess()
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let seventeen = (1...17).flatMap { ["--tag", "\($0)"] }
        for (words, text) in [
            (
                ["set", "k", "v", "--grace", "-1"],
                "--grace -1: must be a number of seconds, also with a fraction, or one followed by us, ms, s, "
            ),
            (
                ["set", "k", "v", "--grace", "low"],
                "--grace low: must be a number of seconds, also with a fraction, or one followed by us, ms, s, "
            ),
            (["set", "k", "v", "--jitter", "101"], "--jitter 101: must be a number from 0 to 100"),
            (
                ["policy", "low", "--grace", "x"],
                "--grace x: must be a number of seconds, also with a fraction, or one followed by us, ms, s, "
            ),
            (["policy", "--grace", "5"], "--grace and --jitter need a policy"),
            (["set", "k", "v", "--tag", ""], "a tag must have 1 to 128 bytes, not 0"),
            (["set", "k", "v", "--tag", String(repeating: "x", count: 129)], "1 to 128 bytes, not 129"),
            (["set", "k", "v"] + seventeen, "at most 16 tags, not 17"),
            (["fetch", "k"] + seventeen + ["--", "echo"], "at most 16 tags, not 17"),
            (["purge", "--tag="], "a tag must have 1 to 128 bytes, not 0"),
            (["purge", "--soft"], "--soft needs --tag"),
            (["purge", "--tag", "t", "--expired"], "--tag and --expired cannot be combined"),
            (["purge", "--tag", "t", "--prefix", "p"], "--tag and --prefix cannot be combined"),
            (["purge", "--tag", "t", "tag"], "too many arguments"),
        ] {
            let result = try larderctl.run(words)
            #expect(result.exitCode == 2, "\(words)")
            #expect(result.errors.contains(text), "\(words): \(result.errors)")
        }
        #expect(try larderctl("get", "k").exitCode == 1)
        #expect(try larderctl.run(["purge"] + seventeen).text == "OK\n")
    }

    @Test func everyCommandHasHelp() throws {
        let larderctl = Larderctl(socketPath: nil)
        let overview = try larderctl("help").text
        let commands = ["GET", "SET", "SCAN", "EXPIRE", "HELLO", "INFO", "META", "POLICY", "PURGE", "SNAPSHOT"]
        for command in commands {
            #expect(overview.contains(" \(command) ") || overview.contains(" \(command)\n"))
            let help = try larderctl("help", command)
            #expect(help.exitCode == 0)
            #expect(help.text.hasPrefix("usage: larderctl [OPTION…] \(command)"))
        }
    }
}
