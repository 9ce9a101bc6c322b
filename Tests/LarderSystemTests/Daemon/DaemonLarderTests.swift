import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that only one process at a time can open a larder, and tests of purges from the command line.
@Suite struct DaemonLarderTests {
    /// SHUTDOWN replies, and the socket is removed, before the process has exited.
    @Test func aDaemonCanBeStartedRightAfterSHUTDOWN() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        // A daemon is killed when its object is released.
        var daemons: [DaemonProcess] = []
        for round in 0..<6 {
            daemons.append(try DaemonProcess(in: directory))
            let client = try daemons[round].connect()
            let value = String(repeating: "v", count: 4_000_000)
            #expect(try client.call(["SET", "k:\(round)", value]) == Array("+OK\r\n".utf8))
            try client.send(["SHUTDOWN"])
            _ = try? client.receiveToEnd()
        }
        daemons.append(try DaemonProcess(in: directory))
        #expect(try daemons[6].connect().call("DBSIZE") == ":6\r\n")
    }

    @Test("a second daemon fails, and reports which process holds the larder")
    func aSecondDaemonReportsWhichProcessHoldsTheLarder() throws {
        let daemon = try DaemonProcess()
        let (end, _, errors) = try DaemonProcess.run(["--dir", daemon.larder, "--socket", daemon.socketPath + "2"])
        #expect(end == .exited(3))
        #expect(
            errors.contains(
                "error open larder: the larder \(daemon.larder) is in use by process \(daemon.process.pid): use it "
                    + "through its socket \(daemon.socketPath) (larderctl, LarderClient, any Redis client)"),
            "\(errors)")
        #expect(access(daemon.socketPath + "2", F_OK) != 0)
        #expect(try daemon.connect().call("PING") == "+PONG\r\n")
    }

    /// The system frees the memory of a killed process before it closes the process's socket and files.
    @Test func aDaemonWaitsForOneThatWasKilled() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let first = try DaemonProcess(in: directory)
        let pid = first.process.pid
        #expect(try first.connect().call("SET k v") == "+OK\r\n")
        // A stopped process is like a killed one until the system has closed its socket: it listens, but never replies.
        first.send(signal: SIGSTOP)
        while try !String(decoding: Files.read("/proc/\(pid)/stat"), as: UTF8.self).contains(") T ") { nap() }
        let second = try DaemonProcess(in: directory, ready: "waiting up to 60 s for process \(pid), which does not")
        first.kill()
        _ = try second.process.waitForErrorLine(containing: " info larderd ")
        #expect(try second.connect().call("GET k") == "$1\r\nv\r\n")
    }

    /// Creates two databases with three and two entries, one of which has expired.
    private func fill(_ daemon: DaemonProcess) throws {
        let client = try daemon.connect()
        #expect(try client.call("MSET a 1 b 2 c 3") == "+OK\r\n")
        #expect(try client.call("SELECT books") == "+OK\r\n")
        #expect(try client.call("SET d 4") == "+OK\r\n")
        #expect(try client.call("POLICY low") == "+OK\r\n")
        #expect(try client.call("SET soon 5 PX 1") == "+OK\r\n")
        while try client.call("GET soon") != "$-1\r\n" { nap() }
    }

    /// A purge has the same results and messages, whether the daemon runs or not.
    @Test("--purge works with a running and a stopped daemon", arguments: [true, false])
    func purging(_ running: Bool) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        try fill(daemon)
        if !running { #expect(try daemon.stop() == .exited(0)) }
        func purge(_ arguments: String...) throws -> (ProcessEnd, [String], String) {
            let (end, output, errors) = try DaemonProcess.run(arguments + ["--dir", daemon.larder])
            // The numbers of bytes and milliseconds differ from run to run.
            let lines = output.split(separator: "\n").map { line in
                line.split(separator: ",").enumerated().map { index, part in
                    index == 0 ? String(part) : String(part.drop { $0 == " " || $0.isNumber })
                }.joined(separator: ",")
            }
            return (end, lines, errors)
        }
        func said(_ name: String, _ entries: Int) -> String {
            "purged database '\(name)': \(entries) \(entries == 1 ? "entry" : "entries"),bytes,ms"
        }

        #expect(try purge("--purge=nosuch") == (.exited(4), [], "larderd: there is no database 'nosuch'\n"))
        // Entries that had expired when the daemon stopped were not written to LevelDB.
        #expect(try purge("--purge-expired") == (.exited(0), [said("0", 0), said("books", running ? 1 : 0)], ""))
        #expect(try purge("--purge=0") == (.exited(0), [said("0", 3)], ""))
        #expect(try purge("--purge") == (.exited(0), [said("0", 0), said("books", 1)], ""))
        #expect(try purge("--purge") == (.exited(0), [said("0", 0), said("books", 0)], ""))

        let after = running ? daemon : try DaemonProcess(in: place)
        let client = try after.connect()
        #expect(try client.call("DBSIZE") == ":0\r\n")
        #expect(try client.call("SELECT books") == "+OK\r\n")
        #expect(try client.call("DBSIZE") == ":0\r\n")
        #expect(try client.call("POLICY").contains("$3\r\nlow\r\n"), "the policy stays")
        #expect(try client.call("SET e 1") == "+OK\r\n")
        #expect(try client.call("GET e") == "$1\r\n1\r\n")
    }

    @Test("--purge of a missing or empty larder reports that there is nothing to purge")
    func purgingWhereThereIsNothing() throws {
        let place = try TemporaryDirectory()
        let (end, output, errors) = try DaemonProcess.run(["--purge", "--dir", place.path + "/nothing"])
        #expect(end == .exited(4))
        #expect(output == "")
        #expect(errors == "larderd: there is no larder at \(place.path)/nothing: nothing to purge (--dir)\n")
        mkdir(place.path + "/empty", 0o700)
        let (end2, output2, errors2) = try DaemonProcess.run(["--purge", "--dir", place.path + "/empty"])
        #expect((end2, output2, errors2) == (.exited(0), "the larder has no databases: nothing to purge\n", ""))
    }

    /// A directory that is not a larder, such as the home directory, is refused.
    @Test func purgeDoesNotRemoveOtherDirectories() throws {
        let place = try TemporaryDirectory()
        mkdir(place.path + "/projects", 0o700)
        mkdir(place.path + "/projects/src", 0o700)
        for arguments in [["--purge"], ["--purge-expired"]] {
            let (end, output, _) = try DaemonProcess.run(arguments + ["--dir", place.path])
            #expect(end == .exited(0))
            #expect(output == "the larder has no databases: nothing to purge\n")
        }
        let (end, _, errors) = try DaemonProcess.run(["--purge=projects", "--dir", place.path])
        #expect(end == .exited(4))
        #expect(errors == "larderd: there is no database 'projects'\n")
        #expect(access(place.path + "/projects/src", F_OK) == 0)
        #expect(try FileSystem.list(place.path) == ["projects"])
    }

    /// The socket named in LOCK may belong to the daemon of another larder.
    @Test func purgeNeverAffectsAnotherLarder() throws {
        let held = try DaemonProcess()
        let other = try DaemonProcess()
        #expect(try other.connect().call("SET k v") == "+OK\r\n")
        // The text of LOCK is only a hint: make it name the socket of the other larder.
        let file = open(held.larder + "/LOCK", O_WRONLY | O_TRUNC)
        let text = "pid \(held.process.pid)\nsocket \(other.socketPath)\n"
        #expect(write(file, text, text.utf8.count) == text.utf8.count)
        close(file)
        let (end, _, errors) = try DaemonProcess.run(["--purge", "--dir", held.larder])
        #expect(end == .exited(3))
        #expect(errors.contains("does not serve the larder \(held.larder): nothing was purged"), "\(errors)")
        #expect(try other.connect().call("DBSIZE") == ":1\r\n")
    }

    @Test func purgeSendsThePassword() throws {
        let place = try TemporaryDirectory()
        let (right, wrong) = (
            try place.makeFile("pw", Array("secret\n".utf8)), try place.makeFile("no", Array("x\n".utf8))
        )
        let daemon = try DaemonProcess(["--password-file", right])
        let client = try daemon.connect()
        #expect(try client.call("AUTH secret") == "+OK\r\n")
        #expect(try client.call("SET k v") == "+OK\r\n")
        func purge(_ more: String...) throws -> (ProcessEnd, String) {
            let (end, _, errors) = try DaemonProcess.run(["--purge", "--dir", daemon.larder] + more)
            return (end, errors)
        }
        let without = try purge()
        #expect(without.0 == .exited(1) && without.1.contains("needs a password"), "\(without)")
        let refused = try purge("--password-file", wrong)
        #expect(refused.0 == .exited(1) && refused.1.contains("refuses the password"), "\(refused)")
        #expect(try client.call("DBSIZE") == ":1\r\n")
        #expect(try purge("--password-file", right) == (.exited(0), ""))
        #expect(try client.call("DBSIZE") == ":0\r\n")
    }

    @Test("--purge fails if the process that holds the larder serves no socket")
    func purgingALarderThatServesNoSocket() throws {
        let daemon = try DaemonProcess()
        let file = open(daemon.larder + "/LOCK", O_WRONLY | O_TRUNC)
        let text = "pid \(daemon.process.pid)\n"
        #expect(write(file, text, text.utf8.count) == text.utf8.count)
        close(file)
        let (end, _, errors) = try DaemonProcess.run(["--purge", "--dir", daemon.larder])
        #expect(end == .exited(3))
        #expect(errors.contains("is in use by process \(daemon.process.pid): it serves no socket"), "\(errors)")
    }

    @Test("--purge fails soon if the daemon is stopped") func purgingThroughAStoppedDaemon() throws {
        let daemon = try DaemonProcess()
        #expect(kill(daemon.process.pid, SIGSTOP) == 0)
        let start = ContinuousClock.now
        let (end, _, errors) = try DaemonProcess.run(["--purge", "--dir", daemon.larder])
        #expect(kill(daemon.process.pid, SIGCONT) == 0)
        #expect(end == .exited(1) && errors.contains("does not answer"), "\(errors)")
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    @Test("--purge fails if the socket of the daemon was removed") func purgingThroughARemovedSocket() throws {
        let daemon = try DaemonProcess()
        unlink(daemon.socketPath)
        let (end, _, errors) = try DaemonProcess.run(["--purge", "--dir", daemon.larder])
        #expect(end == .exited(1))
        #expect(errors.contains("\(daemon.socketPath), which has the larder open, does not answer"), "\(errors)")
    }
}

private func == (
    left: (ProcessEnd, [String], String), right: (ProcessEnd, [String], String)
) -> Bool {
    left.0 == right.0 && left.1 == right.1 && left.2 == right.2
}

private func == (left: (ProcessEnd, String, String), right: (ProcessEnd, String, String)) -> Bool {
    left.0 == right.0 && left.1 == right.1 && left.2 == right.2
}
