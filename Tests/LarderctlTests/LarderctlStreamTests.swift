import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of commands that run until they are stopped, and print the messages of channels and the changes of entries.
/// Also tests listings of any length.
@Suite struct LarderctlStreamTests {
    private func daemon() throws -> (DaemonProcess, Larderctl) {
        let daemon = try DaemonProcess()
        return (daemon, Larderctl(socketPath: daemon.socketPath))
    }

    private func start(_ words: [String], _ larderctl: Larderctl) throws -> ChildProcess {
        try ChildProcess(try DaemonProcess.program("larderctl"), words, environment: larderctl.environment)
    }

    @Test func subscribePrintsMessagesWhenTheyArrive() throws {
        let (daemon, larderctl) = try daemon()
        let plain = try start(["subscribe", "a b", "news"], larderctl)
        let json = try start(["--json", "subscribe", "--pattern", "n?ws"], larderctl)
        while try larderctl("PUBSUB", "NUMSUB", "news").text != "news\n1\n" { nap() }
        while try larderctl("PUBSUB", "NUMPAT").text != "1\n" { nap() }
        #expect(try larderctl("PUBLISH", "a b", "one").text == "1\n")
        #expect(try larderctl("PUBLISH", "news", "two\tx").text == "2\n")
        try plain.waitForOutput { $0 == "a b\tone\nnews\ttwo\tx\n" }
        try json.waitForOutput { $0 == #"{"channel":"news","pattern":"n?ws","message":"two\tx"}"# + "\n" }
        plain.send(signal: SIGINT)
        #expect(try plain.waitForExit() == .killed(signal: SIGINT))
        daemon.kill()
        #expect(try json.waitForExit() == .exited(3))
        #expect(json.errors.hasPrefix(#"{"error":{"code":"closed","#), "\(json.errors)")
        #expect(try larderctl("subscribe").exitCode == 2)
        #expect(try larderctl("SUBSCRIBE", "a").errors.contains("use larderctl subscribe"))
    }

    @Test func watchPrintsChangesWhenTheyHappen() throws {
        let (daemon, larderctl) = try daemon()
        let all = try start(["watch"], larderctl)
        let some = try start(["--json", "watch", "--prefix", "a*"], larderctl)
        let one = try start(["watch", "k"], larderctl)
        while try larderctl("PUBSUB", "NUMPAT").text != "2\n" { nap() }
        while try larderctl("PUBSUB", "NUMSUB", "__change@0__:k").text != "__change@0__:k\n1\n" { nap() }
        for key in ["k", "ab", "a*b"] { #expect(try larderctl("set", key, "v", "--tag", "t").exitCode == 0) }
        #expect(try larderctl("del", "k").exitCode == 0)
        #expect(try larderctl("purge", "--tag", "t").exitCode == 0)
        #expect(try larderctl("purge").exitCode == 0)
        func ends(_ child: ChildProcess) throws -> [String] {
            let lines = { (text: String) in text.split(separator: "\n").map(String.init) }
            try child.waitForOutput {
                lines($0).last.map { $0.hasSuffix("all entries") || $0.hasSuffix(#""purged"}"#) } ?? false
            }
            return lines(child.output).map { String($0.drop { $0 != "C" && $0 != "," }.dropFirst()) }
        }
        #expect(
            try ends(all) == [
                "  stored      k", "  stored      ab", "  stored      a*b", "  removed     k",
                "  purged      all entries with the tag t", "  purged      all entries",
            ])
        #expect(
            try ends(some) == [
                #""database":"0","change":"stored","key":"a*b"}"#, #""database":"0","change":"purged","tag":"t"}"#,
                #""database":"0","change":"purged"}"#,
            ])
        #expect(try ends(one).prefix(2) == ["  stored      k", "  removed     k"])
        daemon.kill()
        #expect(try all.waitForExit() == .exited(3))
        #expect(try larderctl("watch", "k", "--prefix", "a").exitCode == 2)
    }

    @Test(.timeLimit(.minutes(2)), arguments: ["subscribe x", "monitor", "watch", "query live keys"])
    func streamsEndWithTheReaderOfTheirOutput(_ words: String) throws {
        let (daemon, larderctl) = try daemon()
        let command = "'\(try DaemonProcess.program("larderctl"))' \(words) | true"
        #expect(try ChildProcess.run("sh", ["-c", command], environment: larderctl.environment).end == .exited(0))
        daemon.kill()
    }

    @Test func queryLivePrintsRowsAndTheirChanges() throws {
        let (daemon, larderctl) = try daemon()
        #expect(try larderctl("set", "b:1", "{\"n\":\n1}").exitCode == 0)
        let plain = try start(["query", "live", "keys", "where", "n", ">", "0"], larderctl)
        let json = try start(["--json", "query", "LIVE", "POSITIONS", "where", "n", ">", "0"], larderctl)
        while try !larderctl("INFO", "clients").text.contains("live_queries:2") { nap() }
        #expect(try larderctl("set", "b:2", "{\"n\":2}").exitCode == 0)
        var lines = "row    b:1\nset    b:2\n"
        var objects = #"{"event":"row","key":"b:1","value":{"n": 1}}"# + "\n"
        objects += #"{"event":"set","key":"b:2","value":{"n":2},"position":1}"# + "\n"
        try plain.waitForOutput { [lines] in $0 == lines }
        try json.waitForOutput { [objects] in $0 == objects }
        #expect(try larderctl("del", "b:1").exitCode == 0)
        lines += "out    b:1  removed\n"
        objects += #"{"event":"out","key":"b:1","reason":"removed"}"# + "\n"
        try plain.waitForOutput { [lines] in $0 == lines }
        try json.waitForOutput { [objects] in $0 == objects }
        let wrong = try larderctl("query", "live", "count")
        #expect(wrong.exitCode == 4 && wrong.errors.contains("a live query has rows or KEYS"), "\(wrong)")
        let command = try larderctl("QUERY", "LIVE", "KEYS")
        #expect(command.exitCode == 2 && command.errors.contains("use larderctl query"), "\(command)")
        let shell = try larderctl("shell", input: Array("query live keys\n".utf8))
        #expect(shell.output.isEmpty && shell.errors.contains("watch, monitor or query"), "\(shell)")
        plain.send(signal: SIGINT)
        #expect(try plain.waitForExit() == .killed(signal: SIGINT))
        daemon.kill()
        #expect(try json.waitForExit() == .exited(3))
    }

    @Test func keysWithLongPrintsTheMetadata() throws {
        let (daemon, larderctl) = try daemon()
        #expect(try larderctl("set", "a:1", "hello", "--policy", "never").exitCode == 0)
        #expect(try larderctl("set", "a:2", "x", "--ttl", "90", "--tag", "t").exitCode == 0)
        #expect(try larderctl("SET", "b", "xy", "PX", "1", "GRACE", "60").exitCode == 0)
        #expect(try larderctl("set", "c", "").exitCode == 0)
        while try larderctl("EXISTS", "b").text != "0\n" { nap() }
        let lines = try larderctl("keys", "--long").text.split(separator: "\n")
        #expect(lines.count == 5 && lines[0] == "     SIZE  EXPIRES IN  POLICY     STATE  KEY", "\(lines)")
        #expect(lines[1] == "        5       never  never      fresh  a:1")
        #expect(lines[2].contains(" 1 min ") && lines[2].hasSuffix("  own        fresh  a:2"))
        #expect(lines[3].hasPrefix("        2") && lines[3].hasSuffix("  own        stale  b"))
        #expect(lines[4].hasSuffix("6 d 23 h  lowest     fresh  c"))
        let json = try larderctl("--json", "keys", "-l", "a:[2]").text
        #expect(json.hasPrefix(#"{"key":"a:2","size":1,"ttl":"#) && json.split(separator: "\n").count == 1)
        #expect(json.hasSuffix(#","rule":"own","state":"fresh","codec":"raw","tags":["t"]}"# + "\n"), "\(json)")
        #expect(try larderctl("keys", "--long", "-0").exitCode == 2)
        #expect(try larderctl("keys", "--long", "none").exitCode == 0)
        withExtendedLifetime(daemon) {}
    }
}
