import Platform
import TestSupport
import Testing

/// `larderctl replicate`.
@Suite(.timeLimit(.minutes(3))) struct LarderctlReplicateTests {
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

    @Test func allDatabasesComeOver() throws {
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

    @Test func mistakesAreToldClearly() throws {
        let paths = [source.socketPath, target.socketPath]
        let same = try larderctl("replicate", paths[0], paths[0])
        #expect(same.exitCode == 2 && same.errors.contains("both ends are the same larder"), "\(same.errors)")
        #expect(try larderctl("replicate", paths[0]).exitCode == 2)
        let url = try larderctl("replicate", "redis://localhost", paths[1])
        #expect(url.exitCode == 2 && url.errors.contains("not the socket of a larder"), "\(url.errors)")
        let database = try larderctl("replicate", "--database", "nothere", paths[0], paths[1])
        #expect(database.exitCode == 2 && database.errors.contains("no database 'nothere'"), "\(database.errors)")
        let nobody = try larderctl("replicate", paths[0], paths[1] + "x")
        #expect(nobody.exitCode == 3 && nobody.errors.contains("no daemon answers"), "\(nobody.errors)")
        #expect(try larderctl("replicate", "", paths[1]).exitCode == 2)
    }

    /// A follower that goes on, as a process.
    private func start() throws -> ChildProcess {
        try ChildProcess(
            try DaemonProcess.program("larderctl"),
            ["replicate", "--continuous", "--json", "--database", "0", source.socketPath, target.socketPath])
    }

    /// Waits until a key has come over.
    /// - Throws: when the follower has ended, or nothing comes for a minute.
    private func wait(for key: String, _ client: SocketClient, _ follower: ChildProcess) throws {
        let deadline = MonotonicClock.milliseconds() + 60_000
        while try client.call("EXISTS \(key)") == ":0\r\n" {
            try #require(!follower.hasEnded(), "the follower has ended: \(follower.errors)")
            try #require(MonotonicClock.milliseconds() < deadline, "\(key) does not come: \(follower.errors)")
        }
    }

    @Test func itGoesOnWhoeverIsKilled() throws {
        let (client, other) = (try source.connect(), try target.connect())
        var follower = try start()
        for round in 0..<4 {
            try set(client, (0..<50).map { "r\(round)k\($0)" } + ["end\(round)"])
            if round % 2 == 0 {
                // In the middle of whatever it does.
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

    @Test func aDaemonThatGoesAwayIsWaitedFor() throws {
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
        #expect(follower.output.isEmpty, "silence in a pipe")
    }
}
