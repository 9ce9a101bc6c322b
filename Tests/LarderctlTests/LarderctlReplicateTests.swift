import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of `larderctl replicate`.
@Suite(.timeLimit(.minutes(10))) struct LarderctlReplicateTests {
    private let source: DaemonProcess
    private let target: DaemonProcess
    private let larderctl = Larderctl(socketPath: nil)

    init() throws {
        source = try DaemonProcess()
        target = try DaemonProcess()
    }

    private func set(_ client: SocketClient, _ pairs: [String]) throws {
        for pair in pairs { _ = try client.call(["SET", pair, "value of \(pair)"]) }
    }

    @Test func replicateCopiesAllDatabases() throws {
        let client = try source.connect()
        try set(client, ["a", "b"])
        _ = try client.call(["SELECT", "shop"])
        _ = try client.call(["POLICY", "low", "GRACE", "9"])
        try set(client, ["c"])
        let first = try larderctl("replicate", source.socketPath, "unix://" + target.socketPath)
        #expect(first.exitCode == 0 && first.errors.isEmpty, "\(first.errors)")
        #expect(first.text == "0: 2 changes, 2 stored, in a full pass\nshop: 1 change, 1 stored, in a full pass\n")
        let other = try target.connect()
        #expect(try other.call("GET a") == "$10\r\nvalue of a\r\n")
        _ = try other.call(["SELECT", "shop"])
        #expect(try other.call("POLICY") == client.call("POLICY"), "a new database gets the source's policy")
        _ = try client.call(["DEL", "c"])
        let second = try larderctl("replicate", "--json", "--database", "shop", source.socketPath, target.socketPath)
        #expect(
            second.text.contains(
                #""database":"shop","state":"idle","total":1,"done":1,"stored":0,"removed":1,"kept":0,"passes":0,"ever":2}"#
            ), "\(second.text)")
        #expect(try other.call("DBSIZE") == ":0\r\n")
        #expect(
            try larderctl("replicate", source.socketPath, target.socketPath).text
                == "0: nothing new\nshop: nothing new\n")
    }

    @Test("invalid tags are refused", arguments: ["", String(repeating: "x", count: 129)])
    func replicateRefusesInvalidTags(_ tag: String) throws {
        let result = try larderctl("replicate", "--tag", tag, source.socketPath, target.socketPath)
        #expect(result.exitCode == 2 && result.text.isEmpty, "\(result)")
        #expect(result.errors.contains("--tag: a tag must have 1 to 128 bytes, not \(tag.utf8.count)"), "\(result)")
    }

    @Test func replicateAcceptsTheLongestTag() throws {
        let tag = String(repeating: "x", count: 128)
        _ = try source.connect().call(["SET", "a", "1", "TAGS", "1", tag])
        _ = try source.connect().call(["SET", "b", "1"])
        let result = try larderctl("replicate", "--tag", tag, source.socketPath, target.socketPath)
        #expect(result.exitCode == 0 && result.text.contains(" 1 stored"), "\(result)")
    }

    /// A prefix purge also removes entries that only the target has. The source may have evicted these entries, and
    /// does not remember which entries it has evicted.
    @Test(arguments: [[], ["--prefix", "a:1"], ["--prefix", "a"]])
    func prefixPurgesAreReplicated(_ filter: [String]) throws {
        let (client, other) = (try source.connect(), try target.connect())
        let words = ["replicate"] + filter + [source.socketPath, target.socketPath]
        try set(client, ["a:1", "a:2", "b"])
        #expect(try larderctl.run(words).exitCode == 0)
        try set(other, ["a:1:evicted", "b:kept"])
        _ = try client.call("PURGE PREFIX a:")
        try set(client, ["a:1:later"])
        let result = try larderctl.run(words)
        #expect(result.exitCode == 0 && !result.text.contains("full pass"), "\(result)")
        let kept = filter.isEmpty ? ["a:1:later", "b", "b:kept"] : ["a:1:later", "b:kept"]
        for key in kept { #expect(try other.call("EXISTS \(key)") == ":1\r\n", "\(key)") }
        #expect(try other.call("DBSIZE") == ":\(kept.count)\r\n")
    }

    /// Writes to a database whose origin is not available, so that the write stays in the outbox.
    private func hold(_ key: String, in daemon: DaemonProcess) throws {
        let client = try daemon.connect()
        _ = try client.call(["SELECT", "shop"])
        #expect(try client.call("ORIGIN unix:///nowhere BEHIND") == "+OK\r\n")
        #expect(try client.call("SET \(key) waits") == "+OK\r\n")
    }

    @Test func pendingWritesAreNotReplicated() throws {
        try hold("theirs", in: source)
        let paths = [source.socketPath, target.socketPath]
        let first = try larderctl("replicate", paths[0], paths[1])
        #expect(first.exitCode == 0 && first.text.hasPrefix("shop: 1 change"), "\(first)")
        #expect(!first.text.contains("outbox"), "\(first)")
        let other = try target.connect()
        #expect(try !other.call("DATABASES").contains("shop.outbox"))
        // The target also has a write in its outbox. After the source's write was delivered, its removal is not
        // replicated.
        try hold("mine", in: target)
        let named = try larderctl("replicate", "--database", "shop.outbox", paths[0], paths[1])
        #expect(named.exitCode == 2 && named.errors.contains("is not copied"), "\(named)")
        let client = try source.connect()
        _ = try client.call(["SELECT", "shop.outbox"])
        for line in ["CHANGES SINCE 0", "UNPLACE mine 9-9", "PLACE x y STOREDAT 5"] {
            let reply = try client.call(line)
            #expect(reply.hasPrefix("-") && reply.contains("outbox"), "\(line): \(reply)")
        }
        _ = try client.call(["SELECT", "shop"])
        #expect(try client.call("ORIGIN NONE DISCARD") == "+OK\r\n")
        #expect(try larderctl("replicate", paths[0], paths[1]).exitCode == 2)
        _ = try other.call(["SELECT", "shop.outbox"])
        #expect(try other.call("KEYS *") == "*1\r\n$4\r\nmine\r\n")
    }

    @Test(arguments: [false, true]) func aRefusedDatabaseDoesNotStopTheReplicationOfOthers(asJSON: Bool) throws {
        let (client, other) = (try source.connect(), try target.connect())
        for name in ["a", "b", "c", "d"] {
            _ = try client.call(["SELECT", name])
            try set(client, ["key"])
        }
        _ = try other.call(["SELECT", "a"])
        try set(other, ["own"])
        _ = try other.call(["SELECT", "c"])
        _ = try other.call(["ORIGIN", "unix:///nowhere"])
        let result = try larderctl.run(
            (asJSON ? ["--json"] : []) + ["replicate", source.socketPath, target.socketPath])
        #expect(result.exitCode == 2, "\(result)")
        let (refused, way) = ("a: the database 'a' of the target has entries", "remove its origin first")
        #expect(result.errors.contains(refused) && result.errors.contains(way), "\(result)")
        #expect(!asJSON || !result.errors.contains(#""exit":3"#), "\(result)")
        #expect(asJSON == result.text.contains(#""database":"c","state":"error""#), "\(result)")
        for name in ["b", "d"] {
            _ = try other.call(["SELECT", name])
            #expect(try other.call("EXISTS key") == ":1\r\n", "\(name)")
        }
    }

    @Test func replicationErrorsAreExplained() throws {
        let paths = [source.socketPath, target.socketPath]
        let same = try larderctl("replicate", paths[0], paths[0])
        #expect(same.exitCode == 2 && same.errors.contains("the target are the same larder"), "\(same.errors)")
        #expect(try larderctl("replicate", paths[0]).exitCode == 2)
        let url = try larderctl("replicate", "redis://localhost", paths[1])
        #expect(url.exitCode == 2 && url.errors.contains("not the socket of a larder"), "\(url.errors)")
        let database = try larderctl("replicate", "--database", "nothere", paths[0], paths[1])
        #expect(database.exitCode == 2 && database.errors.contains("no database 'nothere'"), "\(database.errors)")
        let nobody = try larderctl("replicate", paths[0], paths[1] + "x")
        #expect(nobody.exitCode == 3 && nobody.errors.contains("no daemon answers"), "\(nobody.errors)")
        #expect(try larderctl("replicate", "", paths[1]).exitCode == 2)
    }

    /// Starts `larderctl replicate` as a process that keeps running.
    private func start() throws -> ChildProcess {
        try ChildProcess(
            try DaemonProcess.program("larderctl"),
            ["replicate", "--continuous", "--json", "--database", "0", source.socketPath, target.socketPath])
    }

    /// Waits until a key was replicated.
    /// - Throws: if the follower has exited, or the key does not arrive within a minute.
    private func wait(for key: String, _ client: SocketClient, _ follower: ChildProcess) throws {
        let deadline = MonotonicClock.milliseconds() + 60_000
        while try client.call("EXISTS \(key)") == ":0\r\n" {
            try #require(!follower.hasEnded(), "the follower has ended: \(follower.errors)")
            try #require(MonotonicClock.milliseconds() < deadline, "\(key) was not replicated: \(follower.errors)")
        }
    }

    @Test func replicationResumesAfterKills() throws {
        let (client, other) = (try source.connect(), try target.connect())
        var follower = try start()
        for round in 0..<4 {
            try set(client, (0..<50).map { "r\(round)k\($0)" } + ["end\(round)"])
            if round % 2 == 0 {
                // Kill the follower during its work.
                follower.killNow()
                follower = try start()
            }
            _ = try client.call(["DEL", "r\(round)k7"])
            try set(client, ["last\(round)"])
            try wait(for: "last\(round)", other, follower)
        }
        #expect(try other.call("DBSIZE") == client.call("DBSIZE"))
        follower.send(signal: SIGINT)
        #expect(try follower.waitForExit() == .killed(signal: SIGINT))
        let lines = follower.output.split(separator: "\n")
        #expect(lines.last?.contains(#""state":"stopped""#) == true, "\(follower.output)")
    }

    @Test func replicationWaitsForARestartedDaemon() throws {
        let place = try TemporaryDirectory(inMemory: true)
        var daemon = try DaemonProcess(in: place)
        let follower = try ChildProcess(
            try DaemonProcess.program("larderctl"),
            ["replicate", "--continuous", "--database", "0", daemon.socketPath, target.socketPath])
        defer { follower.killNow() }
        let other = try target.connect()
        try set(try daemon.connect(), ["a"])
        try wait(for: "a", other, follower)
        daemon.kill()
        _ = try follower.waitForErrorLine(containing: "trying again")
        daemon = try DaemonProcess(in: place)
        try set(try daemon.connect(), ["b"])
        try wait(for: "b", other, follower)
        #expect(follower.output.isEmpty, "no progress is written to a pipe")
    }
}
